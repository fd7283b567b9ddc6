// Mechanisms that are derived from a student's identity: each a definition that can be read, run and counted.
#pragma once

#include "heed/attention/mechanism.h"

#include <memory>
#include <string>

namespace heed {

/// A function of one number, of c x: smooth, and of moderate size for inputs from -2 to 2.
enum class Feature { identity, sigmoid, softplus, square, root, exp, silu, erf };

/// The divisor: none; the length of each token; for each channel, the length over all tokens.
enum class Norm { none, token, channel };

/// In which order the products are taken: scores of all pairs first, or a state of keys and values first.
enum class ProductOrder { pairs, state };

struct FeatureMap {
  Feature feature = Feature::identity;
  double c = 1;
};

/// A mechanism built of F = norm(feature(q)), G = norm(feature(k)) and W = v or v gated by k:
///
///   pairs:  E = score(F G^T), P = A W with A = E / (row sums of E), or E / M
///   state:  Z = G^T W, P = F Z / (F sum_j G_j), or F Z / M
///   out = P times gate(q), number by number
struct Definition {
  ProductOrder order = ProductOrder::pairs;
  FeatureMap query, key, score, query_gate, key_gate;
  Norm query_norm = Norm::none, key_norm = Norm::none;
  double eps = 1;        ///< added to the squares of each length
  bool by_sums = false;  ///< divides by row sums, otherwise by M
};

/// The task of a personal lab: a mechanism to write, or one with planted bugs to repair. Only those to be written
/// have gates, so that none of the others solves them.
enum class PersonalTask { write, repair };

/// Returns the identity's definition: always the same, and rarely that of another identity. Capitals and spaces around
/// an identity change nothing.
Definition definition_of(const std::string& identity, PersonalTask task);

/// The definition as text: equations, shapes and constants.
std::string equations_of(const Definition& definition);

/// The mechanism: forward and, by dual numbers, backward in every number type. Its cost is that of the executed forward
/// pass, and three times as much backward.
std::unique_ptr<Mechanism> mechanism_of(const Definition& definition);

/// The planted bugs of a header, one for each marked point.
struct PlantedBugs {
  int query = 0, key = 0, value = 0, forward_cost = 0, backward_cost = 0;  ///< 0: none; 1, 2, ..: which
};

/// The bugs of an identity: one of each sort.
PlantedBugs bugs_of(const std::string& identity);

/// A header that computes the definition, as the mechanism `name`, with its backward pass, its cost and bugs.
std::string header_of(const Definition& definition, const std::string& name, const PlantedBugs& bugs = {});

/// A header with the parts of such a mechanism, none of which is written yet.
std::string stub_of(const Definition& definition, const std::string& name);

}  // namespace heed
