// The contract between an attention mechanism and the layer around it.
//
// A mechanism is one file, src/attention/NAME.cpp: its options, what its forward pass saves, forward, backward, cost.
// It is written on plain matrices. Batches, threads, the tape, files and options' syntax are the business of others:
// the layer (nn/attention.h, ops/attention.h) cuts the batch into images, hands the heads of each over as matrices in
// the output of the qkv projection, and adds up the gradients of shared tensors in a fixed order.
#pragma once

#include "heed/base/carver.h"
#include "heed/base/parameters.h"
#include "heed/cost/counted.h"
#include "heed/kernels/products/gemm_bf16.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// The heads of one image: `count` matrices of one shape, whose first elements lie `distance` numbers apart. Reads and
/// writes the output of a projection in place.
template <class T>
struct Heads {
  Matrix<T> first;
  Index count = 0, distance = 0;

  /// The matrix of head h.
  Matrix<T> operator[](Index h) const { return {first.data + h * distance, first.rows, first.columns, first.stride}; }
};

/// The sizes of one call of a mechanism: all heads of one image.
struct AttentionShape {
  Index heads = 1;        ///< of queries and outputs
  Index queries = 0;      ///< N
  Index keys = 0;         ///< M; equals N except in cross attention
  Index width = 0;        ///< d, channels per head of queries and keys
  Index value_width = 0;  ///< channels per head of values and outputs
  Index grid_height = 0;  ///< the tokens' image grid, row-major, after the class token; 0 if there is none
  Index grid_width = 0;
  bool class_token = false;  ///< does a class token stand in front of the grid, or of the sequence?

  // Of sequences. They have no grid.
  Index longest = 0;     ///< tokens of the longest, for which the mechanism's own tensors are made; 0: no sequence
  bool whole = true;     ///< are there so many tokens? If not, nothing is prepared, and tensors are used in part
  bool growing = false;  ///< tokens that come later must change nothing: no result may depend on how many there are

  bool sequence() const { return longest > 0; }
  /// Has this example all the tokens that there can be? (`whole` says so of every example of a batch.)
  bool full_length() const { return !sequence() || queries == longest; }

  /// The tokens that are no class token.
  Index body() const { return queries - class_token; }

  /// The sizes by the letters of the equations.
  struct Sizes {
    Index N, M, d, e;
  };
  Sizes sizes() const { return {queries, keys, width, value_width}; }
};

/// How a mechanism divides the output of the qkv projection: q of `heads` parts, then k, then v of `key_heads`.
struct AttentionLayout {
  Index heads = 1;                                        ///< of queries and outputs
  Index query_width = 0, key_width = 0, value_width = 0;  ///< channels per head; 0: not used
  Index key_heads = heads;                                ///< of keys and values, which several queries may share

  Index total() const { return heads * query_width + key_heads * (key_width + value_width); }

  /// The shape of attention among so many tokens, or of so many queries to so many keys, with all else that `shape`
  /// says about them.
  AttentionShape among(Index tokens, const AttentionShape& shape) const { return among(tokens, tokens, shape); }
  AttentionShape among(Index queries, Index keys, AttentionShape shape) const {
    shape.heads = heads;
    shape.queries = queries;
    shape.keys = keys;
    shape.width = query_width > 0 ? query_width : value_width;
    shape.value_width = value_width;
    return shape;
  }
};

/// The rows of a qkv projection by what they make: "q", "k" and "v", as far as they are used.
inline std::vector<RowPart> projection_parts(const AttentionLayout& layout) {
  std::vector<RowPart> parts;
  if (layout.query_width > 0) parts.push_back({"q", layout.heads * layout.query_width});
  if (layout.key_width > 0) parts.push_back({"k", layout.key_heads * layout.key_width});
  if (layout.value_width > 0) parts.push_back({"v", layout.key_heads * layout.value_width});
  return parts;
}

/// Memory that a mechanism divides as it likes (base/carver.h), with a fence behind each part where it is watched.
template <class T>
struct AttentionMemory {
  T* data = nullptr;
  Index fence = 0;
};

/// What a mechanism makes of its own tensors alone, once per step and not for each image.
template <class T>
struct AttentionPreparation {
  AttentionShape shape;
  std::span<const View<const T>> parameters;  ///< the mechanism's own tensors, in the order it declares them
  bool training = false;
  View<const T> noise{};  ///< standard Gumbel noise of the shape it asked for (Mechanism::noise), in training
  AttentionMemory<T> prepared;
};

/// Undoes it, once per step too: adds to `gradient`, of the own tensors, what follows from `dprepared`.
template <class T>
struct AttentionPreparationBackward {
  AttentionPreparation<T> of;  ///< with what it left in `prepared`
  AttentionMemory<T> dprepared;
  std::span<const View<T>> gradient;
};

/// What a forward pass reads, for all heads of one image.
template <class T>
struct AttentionInput {
  AttentionShape shape;
  Heads<const T> q, k, v;
  std::span<const View<const T>> parameters{};  ///< the mechanism's own tensors, in the order it declares them
  AttentionMemory<const T> prepared{};          ///< what it made of them
  Products products = Products::exact;          ///< of queries, keys and values, where those are what it is made of
};

/// Where a backward pass leaves its gradients. q, k and v are written as `update` says, all of them;
/// gradients of `prepared`, or of `parameters` where nothing is prepared, are always added to what is there.
template <class T>
struct AttentionGradient {
  Update update = Update::assign;
  Heads<T> q{}, k{}, v{};
  std::span<const View<T>> parameters{};
  AttentionMemory<T> prepared{};
};

/// One call of forward, backward, map and penalty, in a number type. `saved` is what forward keeps for backward.
template <class T>
struct AttentionForward {
  AttentionInput<T> in;
  Heads<T> out;
  AttentionMemory<T> saved, scratch;
};
template <class T>
struct AttentionBackward {
  AttentionInput<T> in;
  Heads<const T> out, dout;  ///< out, and saved, as forward left them
  AttentionMemory<T> saved, scratch;
  AttentionGradient<T> gradient;
};
template <class T>
struct AttentionMap {
  AttentionInput<T> in;
  Heads<T> map;                       ///< map_shape() per head
  AttentionMemory<T> saved, scratch;  ///< for what it makes on the way
};
template <class T>
struct AttentionPenalty {
  AttentionShape shape;
  std::span<const View<const T>> parameters;
  T factor{};                         ///< of the gradient
  std::span<const View<T>> gradient;  ///< to which it is added; empty where none is wanted
  T* penalty = nullptr;               ///< the result
};

/// One token of a sequence that is decoded token by token: q, k and v have a row, that of token `position`; `state` and
/// `sums` hold what is left of the tokens before it. `in.shape` is not whole: nothing is prepared.
template <class T>
struct AttentionDecoding {
  AttentionInput<T> in;
  Index position = 0;
  Heads<T> out;
  T* state = nullptr;
  double* sums = nullptr;
  T* scratch = nullptr;
};

/// A call of decode(), which needs no counting.
using AnyDecoding = std::variant<AttentionDecoding<float>, AttentionDecoding<double>>;

/// The size of a state after some tokens, and of scratch memory for the next.
struct AttentionStateSize {
  Index state = 0;    ///< numbers of T
  Index sums = 0;     ///< numbers of double: what float lost with every token would add up
  Index scratch = 0;  ///< numbers of T

  /// With that of another layer, which uses the same scratch memory.
  AttentionStateSize& operator+=(const AttentionStateSize& other) {
    state += other.state, sums += other.sums, scratch = std::max(scratch, other.scratch);
    return *this;
  }
};

/// How many numbers are prepared for a step; and, per image, kept by forward for backward, and needed by either
/// meanwhile.
struct AttentionMemorySize {
  Index prepared = 0, saved = 0, scratch = 0;
};

/// Where the fences of each lie, from its beginning.
struct AttentionFences {
  std::vector<Index> prepared, saved, scratch;
};

/// What the rows and columns of an attention map stand for.
enum class MapAxes {
  tokens,    ///< queries and keys: the map multiplies v
  channels,  ///< the channels of a query and those of a key: the map multiplies the transpose of v
};

/// What a mechanism is like. Layers, commands and checks ask for this, so that none of them knows a mechanism by name.
struct MechanismTraits {
  bool map = true;  ///< does it have an attention map, the matrix that multiplies v?
  MapAxes map_axes = MapAxes::tokens;
  bool identity = false;    ///< is the identity a part of that map, as in A + I?
  bool beside_map = false;  ///< is the output more than map times v, as where a convolution of v is added?
  bool inverts = false;     ///< does it invert a matrix (Mechanism::inverted)?
  bool qk_norm = true;      ///< may its queries and keys be normalised?
  bool cross = false;       ///< may there be another number of keys than queries in a model?
  bool penalty = false;     ///< does it add a term of its own to the training loss?
  std::string surrogate{};  ///< where backward is meant not to be the derivative of forward: what it is instead
};

/// What the numbers of a picture stand for. A picture has parts, which stand side by side: heads, or groups of
/// channels.
enum class PictureAxes {
  pairs,   ///< [parts, N, M]: of each query a number for each key, as an attention map has them
  tokens,  ///< [parts, N or M]: a number for each query or key
  matrix,  ///< [parts, rows, columns]: matrices that are to be seen as they are
};

/// What there is to look at in a mechanism at work beside its map, or in place of one.
struct PictureInfo {
  std::string name;     ///< by which it is asked for
  std::string meaning;  ///< one line, as the title of a drawing begins
  PictureAxes axes;
  std::string part = "head";
};

/// An option of a mechanism, as `heed list` shows it.
struct OptionInfo {
  std::string name, fallback, meaning;
  std::vector<std::string> choices{};  ///< the values it takes, if they have names
};

/// Values of options as text, by name.
using OptionValues = std::map<std::string, std::string>;

/// A mechanism with its options set. Derive from MechanismBase (mechanism_base.h), not from this.
class Mechanism {
 public:
  virtual ~Mechanism() = default;

  virtual const char* name() const = 0;
  virtual MechanismTraits traits() const = 0;
  virtual std::vector<PictureInfo> pictures() const = 0;

  /// How it divides the qkv projection of a layer of `dim` channels and `heads` heads.
  virtual AttentionLayout layout(Index dim, Index heads) const = 0;

  /// Throws Error if it cannot work on this shape.
  virtual void check(const AttentionShape& shape) const = 0;

  /// Takes sizes that are options of a model (a rank, a number of features) from the shapes of given tensors.
  virtual void read_sizes(const std::map<std::string, Shape>& tensors) = 0;

  /// Its trainable tensors and buffers for this shape, named relative to the layer.
  virtual std::vector<ParameterSpec> parameters(const AttentionShape& shape) const = 0;

  /// Shape of the random numbers it wants in training, the same for all images of a step; no elements for none.
  virtual Shape noise(const AttentionShape& shape) const = 0;

  /// Cost per image; of what it prepares, and of its penalty, once per step.
  virtual Cost cost(const AttentionShape& shape) const = 0;
  virtual Cost preparation_cost(const AttentionShape& shape) const = 0;
  virtual Cost penalty_cost(const AttentionShape& shape) const = 0;

  virtual AttentionMemorySize memory(const AttentionShape& shape) const = 0;

  /// Of memory with fences of so many numbers.
  virtual AttentionFences fences(const AttentionShape& shape, Index fence) const = 0;

  virtual void prepare(const OfNumber<AttentionPreparation>&) const = 0;
  virtual void prepare_backward(const OfNumber<AttentionPreparationBackward>&) const = 0;
  virtual void forward(const OfNumber<AttentionForward>&) const = 0;
  virtual void backward(const OfNumber<AttentionBackward>&) const = 0;

  /// The attention map of each head. Only where traits().map.
  virtual void map(const OfNumber<AttentionMap>&) const = 0;

  /// The size of its state after `tokens` tokens. It grows with them; memory for the longest sequence suffices for all.
  virtual AttentionStateSize state_size(const AttentionShape& shape, Index tokens) const = 0;

  /// out = what forward() gives in this row, up to rounding, and the state with this token in it. Only where it has a
  /// causal form, and is set to be causal.
  virtual void decode(const AnyDecoding&) const = 0;

  /// A term of the training loss that depends on its own tensors alone, once per step. Only where traits().penalty.
  virtual void penalty(const OfNumber<AttentionPenalty>&) const = 0;

  /// The matrix that it inverts, of each head: [heads, m, m]. Only where traits().inverts.
  virtual Tensor<float> inverted(const AttentionInput<float>& in) const = 0;

  /// One of its pictures, by name, of one image. `in` has its own tensors and what it has prepared of them.
  virtual Tensor<float> picture(const std::string& name, const AttentionInput<float>& in) const = 0;
};

/// The shape of the attention maps of one image: [heads, N, M], or [heads, d, d] among channels.
inline Shape map_shape(const Mechanism& mechanism, const AttentionShape& s) {
  if (mechanism.traits().map_axes == MapAxes::channels) return {s.heads, s.width, s.width};
  return {s.heads, s.queries, s.keys};
}

/// Settings of a mechanism under a label: what benchmarks, scaling and tables run over.
struct MechanismSetting {
  std::string label;
  OptionValues options{};
  bool linear = false;  ///< is its time linear in the number of tokens?
};

/// One line of the list of mechanisms.
struct MechanismEntry {
  const char* name;
  const char* summary;     ///< one line
  const char* complexity;  ///< time and memory in N, d, ...
  /// Makes one with the given options; throws Error at unknown names and bad values.
  std::unique_ptr<Mechanism> (*make)(const OptionValues& options);
  std::vector<OptionInfo> (*options)();
  /// Settings of its options that between them reach every branch of its code: what checks of gradients, costs and
  /// number types run over, each in every shape that it accepts.
  std::vector<OptionValues> (*variants)();
  /// Settings that are worth comparing with other mechanisms.
  std::vector<MechanismSetting> (*settings)();
};

template <class M>
MechanismEntry mechanism_entry();

/// All mechanisms: commands, tests, gradient checks and cost checks loop over them.
std::span<const MechanismEntry> mechanisms();

/// The entry called `name`; throws Error with the nearest name if there is none.
const MechanismEntry& find_mechanism(const std::string& name);

/// What it may be given: its options, and `causal`; one without a causal form accepts causal=false only.
std::vector<std::string> option_names(const MechanismEntry& entry);

/// A mechanism by name with options as text.
std::unique_ptr<Mechanism> make_mechanism(const std::string& name, const OptionValues& options);

}  // namespace heed
