// The contract between an attention mechanism and its layer, common to all mechanisms.
//
// A mechanism is one file, src/attention/NAME.cpp, with its options, saved memory, forward, backward and cost. It works
// on plain matrices, without batches, threads, tape or files: the layer (nn/attention.h, ops/attention.h) splits the
// batch into images, passes the heads of each as matrices inside the output of the qkv projection, and adds the
// gradients of shared tensors in a fixed order. Optional features of mechanisms are in capabilities/.
#pragma once

#include "heed/base/memory_layout.h"
#include "heed/base/parameters.h"
#include "heed/cost/counted.h"
#include "heed/kernels/products/gemm_bf16.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// The heads of one image: `count` matrices of the same shape, `distance` elements apart, for example in the output of
/// a projection.
template <class T>
struct Heads {
  Matrix<T> first;
  Index count = 0, distance = 0;

  /// Returns the matrix of head h.
  Matrix<T> operator[](Index h) const { return {first.data + h * distance, first.rows, first.columns, first.stride}; }
};

/// The sizes of one call of a mechanism: all heads of one image, or a single head if heads are independent.
struct AttentionShape {
  Index heads = 1;        ///< number of query and output heads
  Index queries = 0;      ///< N
  Index keys = 0;         ///< M; equals N except in cross attention
  Index width = 0;        ///< d, channels per head of queries, or of values if there are no queries
  Index value_width = 0;  ///< e, channels per head of values and outputs
  Index grid_height = 0;  ///< rows of the grid of image tokens, stored row by row; 0: no grid
  Index grid_width = 0;
  Index class_token = 0;  ///< number of tokens before the grid or sequence: a class token, registers

  // For sequences, which have no grid.
  Index longest = 0;     ///< maximum tokens of a sequence, which fixes the parameters' shapes; 0: not a sequence
  bool whole = true;     ///< every example has `longest` tokens; otherwise nothing is prepared
  bool growing = false;  ///< tokens are appended later: results must not depend on the number of tokens

  bool sequence() const { return longest > 0; }
  /// Returns false if this is a sequence shorter than `longest`. (`whole` refers to all examples of a batch.)
  bool full_length() const { return !sequence() || queries == longest; }

  /// Returns the number of tokens of the grid or sequence, without the class token.
  Index body() const { return queries - class_token; }

  /// The sizes, named as in the equations.
  struct Sizes {
    Index N, M, d, e;
  };
  Sizes sizes() const { return {queries, keys, width, value_width}; }
};

/// The division of the qkv projection's output: q of `heads` heads, then k and then v of `key_heads` heads each.
struct AttentionLayout {
  Index heads = 1;                                        ///< number of query and output heads
  Index query_width = 0, key_width = 0, value_width = 0;  ///< channels per head; 0: not used
  Index key_heads = heads;                                ///< number of key and value heads; query heads may share them

  Index total() const { return heads * query_width + key_heads * (key_width + value_width); }
  /// Returns the keys' channels per head if queries have `width` channels instead of query_width: `width` if queries
  /// and keys are equally wide in this layout, otherwise key_width.
  Index key_channels(Index width) const { return key_width > 0 && key_width == query_width ? width : key_width; }

  /// Returns `shape` with this layout's sizes for attention among n tokens, or from n queries to m keys.
  AttentionShape among(Index n, const AttentionShape& shape) const { return among(n, n, shape); }
  AttentionShape among(Index n, Index m, AttentionShape shape) const {
    shape.heads = heads;
    shape.queries = n;
    shape.keys = m;
    shape.width = query_width > 0 ? query_width : value_width;
    shape.value_width = value_width;
    return shape;
  }
};

/// Returns the row ranges of a qkv projection: "q", "k" and "v", if they are used.
inline std::vector<RowPart> projection_parts(const AttentionLayout& layout) {
  std::vector<RowPart> parts;
  if (layout.query_width > 0) parts.push_back({"q", layout.heads * layout.query_width});
  if (layout.key_width > 0) parts.push_back({"k", layout.key_heads * layout.key_width});
  if (layout.value_width > 0) parts.push_back({"v", layout.key_heads * layout.value_width});
  return parts;
}

/// Memory that a mechanism lays out (base/memory_layout.h). In checks, `guard` elements follow each part.
template <class T>
struct AttentionMemory {
  T* data = nullptr;
  Index guard = 0;
};

/// Inputs of a forward pass, for all heads of one image.
template <class T>
struct AttentionInput {
  AttentionShape shape;
  Heads<const T> q, k, v;
  std::span<const View<const T>> parameters{};  ///< in declaration order; may be empty if `prepared` is not
  AttentionMemory<const T> prepared{};          ///< computed from `parameters` (capabilities/preparation.h)
  Products products = Products::exact;          ///< precision of products of queries, keys and values
};

/// Gradients written by a backward pass. Every element of the gradients of q, k and v is written with `update`; the
/// gradients of `prepared`, or of `parameters` if nothing is prepared, are always accumulated.
template <class T>
struct AttentionGradient {
  Update update = Update::assign;
  Heads<T> q{}, k{}, v{};
  std::span<const View<T>> parameters{};
  AttentionMemory<T> prepared{};
};

/// Arguments of forward(). `saved` is read by backward().
template <class T>
struct AttentionForward {
  AttentionInput<T> in;
  Heads<T> out;
  AttentionMemory<T> saved, scratch;
};
/// Arguments of backward(): the forward pass's input and results, dout, and the gradients to compute.
template <class T>
struct AttentionBackward {
  AttentionInput<T> in;
  Heads<const T> out, dout;  ///< out and saved: the results of forward
  AttentionMemory<T> saved, scratch;
  AttentionGradient<T> gradient;
};

/// Memory sizes in elements: of the tensors prepared once per step and, per image, of saved and scratch memory.
struct AttentionMemorySize {
  Index prepared = 0, saved = 0, scratch = 0;
};

/// Offsets of the guard regions in prepared, saved and scratch memory.
struct AttentionGuards {
  std::vector<Index> prepared, saved, scratch;
};

/// Properties that layers, commands and checks query, so that none depends on a mechanism's name.
struct MechanismTraits {
  bool qk_norm = true;  ///< queries and keys may be normalised
  bool cross = false;   ///< the numbers of queries and keys may differ
  /// Heads depend only on their own q, k and v. Layers may then pass one head at a time.
  bool independent_heads = false;
  std::string surrogate{};  ///< describes backward()'s gradient if it is not forward()'s derivative
};

/// An option of a mechanism, as shown by `heed list`.
struct OptionInfo {
  std::string name, fallback, meaning;
  std::vector<std::string> choices{};  ///< the valid values, for an option with named values
};

/// Values of options as text, by name.
using OptionValues = std::map<std::string, std::string>;

/// A mechanism with its options set. Derive from MechanismBase (mechanism_base.h) instead of this.
class Mechanism {
 public:
  virtual ~Mechanism() = default;

  virtual const char* name() const = 0;
  virtual MechanismTraits traits() const = 0;

  /// Returns the division of the qkv projection of a layer with `dim` channels and `heads` heads.
  virtual AttentionLayout layout(Index dim, Index heads) const = 0;

  /// Throws Error if the mechanism does not support this shape.
  virtual void check(const AttentionShape& shape) const = 0;

  /// Sets options that are sizes of a model (a rank, a number of features) from the shapes of given tensors.
  virtual void read_sizes(const std::map<std::string, Shape>& tensors) = 0;

  /// Returns the mechanism's parameters and buffers for this shape, named relative to the layer.
  virtual std::vector<ParameterSpec> parameters(const AttentionShape& shape) const = 0;

  /// Returns the cost of a forward and a backward pass on one image.
  virtual Cost cost(const AttentionShape& shape) const = 0;

  virtual AttentionMemorySize memory(const AttentionShape& shape) const = 0;

  /// Returns the offsets of the guard regions, each `guard` elements long.
  virtual AttentionGuards guards(const AttentionShape& shape, Index guard) const = 0;

  virtual void forward(const OfNumber<AttentionForward>&) const = 0;
  virtual void backward(const OfNumber<AttentionBackward>&) const = 0;

  /// Optional capabilities (attention/capabilities/); null if this mechanism, with its options, lacks them.
  virtual const class MapCapability* maps() const = 0;
  virtual const class PreparationCapability* preparation() const = 0;
  virtual const class PenaltyCapability* penalty_term() const = 0;
  virtual const class InverseCapability* inverse() const = 0;
  virtual const class PicturesCapability* pictures() const = 0;
  virtual const class DecodingCapability* decoding() const = 0;
};

/// A labelled set of a mechanism's options, for benchmarks, scaling and tables.
struct MechanismSetting {
  std::string label;
  OptionValues options{};
  bool linear = false;  ///< true if the time is linear in the number of tokens
};

/// An option that has no effect unless the option `other` has one of `values`.
struct OptionNeed {
  std::string option, other;
  std::vector<std::string> values;
};

/// An entry of the list of mechanisms.
struct MechanismEntry {
  const char* name;
  const char* summary;     ///< one line
  const char* complexity;  ///< time and memory in N, d, ...
  /// Creates a mechanism with the given options; throws Error for unknown names and bad values.
  std::unique_ptr<Mechanism> (*make)(const OptionValues& options);
  std::vector<OptionInfo> (*options)();
  /// Option sets that together reach every branch of the mechanism's code. For each set, gradients, costs and number
  /// types are checked with every test shape that the mechanism accepts.
  std::vector<OptionValues> (*variants)();
  /// Option sets that are worth comparing with other mechanisms.
  std::vector<MechanismSetting> (*settings)();
  std::vector<OptionNeed> (*needs)();
};

template <class M>
MechanismEntry mechanism_entry();

/// Returns all mechanisms, built in or from plugins.
std::span<const MechanismEntry> mechanisms();

/// Returns the entry `name`; throws Error with the nearest name if there is none.
const MechanismEntry& find_mechanism(const std::string& name);

/// Returns the names of the accepted options: the mechanism's own, and `causal`. A mechanism without a causal form
/// accepts only causal=false.
std::vector<std::string> option_names(const MechanismEntry& entry);

/// Creates a mechanism by name, with options as text.
std::unique_ptr<Mechanism> make_mechanism(const std::string& name, const OptionValues& options);

}  // namespace heed
