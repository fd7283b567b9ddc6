// Mechanisms derived from a student's identity: definitions that can be printed, run and counted.
#pragma once

#include "heed/attention/mechanism.h"

#include <memory>
#include <string>

namespace heed {

/// A smooth function of c x, with moderate values for inputs from -2 to 2.
enum class Feature { identity, sigmoid, softplus, square, root, exp, silu, erf };

/// Divisor of features: none; each token's length; or each channel's length, over all tokens.
enum class Norm { none, token, channel };

/// Order of the products: scores of all pairs first, or a state of keys and values first.
enum class ProductOrder { pairs, state };

struct FeatureMap {
  Feature feature = Feature::identity;
  double c = 1;
};

/// A mechanism composed of F = norm(feature(q)), G = norm(feature(k)) and W = v or v gated by k:
///
///   pairs:  E = score(F G^T), P = A W with A = E / (row sums of E), or E / M
///   state:  Z = G^T W, P = F Z / (F sum_j G_j), or F Z / M
///   out = P times gate(q), element by element
struct Definition {
  ProductOrder order = ProductOrder::pairs;
  FeatureMap query, key, score, query_gate, key_gate;
  Norm query_norm = Norm::none, key_norm = Norm::none;
  double eps = 1;        ///< added to each squared length
  bool by_sums = false;  ///< divides by row sums, otherwise by M
};

/// Task of a personal lab: to write a mechanism, or to repair one with planted bugs. Only mechanisms to be written have
/// gates, so a header to be repaired never solves the writing task.
enum class PersonalTask { write, repair };

/// Throws Error for an identity with combining marks (U+0300 to U+036F): the same text in composed letters looks equal
/// but would be a different identity.
void require_composed(const std::string& identity);

/// Returns the identity with ASCII letters in lower case, without surrounding spaces. Throws Error as
/// require_composed() does.
std::string plain_identity(std::string identity);

/// Returns the definition derived from plain_identity() of an identity. Two identities rarely have the same
/// definition.
Definition definition_of(const std::string& identity, PersonalTask task);

/// Returns the definition as text: equations, shapes and constants.
std::string equations_of(const Definition& definition);

/// Creates the mechanism: forward and, by dual numbers, backward in every number type. The cost of its forward pass is
/// counted; the backward pass is assumed to execute three times as many operations and twice as many contractions.
std::unique_ptr<Mechanism> mechanism_of(const Definition& definition);

/// Planted bugs of a header, one for each marked point.
struct PlantedBugs {
  int query = 0, key = 0, value = 0, forward_cost = 0, backward_cost = 0;  ///< 0: none; 1, 2, ...: index of the bug
};

/// Returns an identity's bugs, one for each point.
PlantedBugs bugs_of(const std::string& identity);

/// Returns a header that computes the definition, as the mechanism `name`, with its backward pass, its cost and the
/// planted bugs.
std::string header_of(const Definition& definition, const std::string& name, const PlantedBugs& bugs = {});

/// Returns a header of the mechanism `name` with empty functions.
std::string stub_of(const Definition& definition, const std::string& name);

}  // namespace heed
