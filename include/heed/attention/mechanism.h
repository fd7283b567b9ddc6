// The contract between an attention mechanism and the layer around it.
//
// A mechanism is one file in attention/: its options, what its forward pass saves, forward, backward, cost.
// It is written on plain arrays. Heads, batches, threads, the tape, files and options' syntax are the business
// of others: the layer (nn/attention.h, ops/attention.h) cuts the batch into pieces, hands each piece over as
// views into the output of the qkv projection, and adds up the gradients of shared tensors in a fixed order.
#pragma once

#include "heed/cost/counts.h"
#include "heed/cost/counted.h"
#include "heed/kernels/gemm_bf16.h"
#include "heed/base/parameters.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// The heads of one image: `count` row-major matrices of `rows` x `columns`; rows are `row_stride` numbers
/// apart, heads `stride`. Reads and writes the output of a projection in place.
template <class T>
struct Heads {
  T* data = nullptr;
  Index count = 0, rows = 0, columns = 0, row_stride = 0, stride = 0;

  /// First element of head h.
  T* operator[](Index h) const { return data + h * stride; }
};

/// A matrix whose rows are `stride` numbers apart.
template <class T>
struct Rows {
  T* data = nullptr;
  Index stride = 0;

  /// First element of row i.
  T* operator[](Index i) const { return data + i * stride; }
};

/// The sizes of one call of a mechanism: all heads of one image.
struct AttentionShape {
  Index heads = 1;
  Index queries = 0;      ///< N
  Index keys = 0;         ///< M; equals N but for cross attention
  Index width = 0;        ///< d, channels per head of queries and keys
  Index value_width = 0;  ///< channels per head of values and outputs
  Index grid_height = 0;  ///< the tokens' image grid, row-major, after the class token; 0 if there is none
  Index grid_width = 0;
  bool class_token = false;  ///< does a class token stand in front of the grid?

  /// The sizes by the letters of the equations.
  struct Sizes {
    Index N, M, d, e;
  };
  Sizes sizes() const { return {queries, keys, width, value_width}; }
};

/// How a mechanism divides the output of the qkv projection: q, then k, then v, each of `heads` parts.
struct AttentionLayout {
  Index heads = 1;
  Index query_width = 0, key_width = 0, value_width = 0;  ///< channels per head; 0: not used

  Index total() const { return heads * (query_width + key_width + value_width); }

  /// The shape of attention among so many tokens, with the grid and class token of `shape`.
  AttentionShape among(Index tokens, AttentionShape shape) const {
    shape.heads = heads;
    shape.queries = shape.keys = tokens;
    shape.width = query_width > 0 ? query_width : value_width;
    shape.value_width = value_width;
    return shape;
  }
};

/// What a forward pass reads, for all heads of one image.
template <class T>
struct AttentionInput {
  AttentionShape shape;
  Heads<const T> q, k, v;
  std::span<const View<const T>> parameters{};  ///< the mechanism's own tensors, in the order it declares them
  bool training = false;
  View<const T> noise{};  ///< standard Gumbel noise of the shape it asked for (Mechanism::noise), in training
  Products products = Products::exact;  ///< of queries, keys and values: softmax, pointwise, SimA
};

/// Where a backward pass leaves its gradients. q, k and v are written as `update` says, all of them;
/// gradients of `parameters` are always added to what is there.
template <class T>
struct AttentionGradient {
  Update update = Update::assign;
  Heads<T> q, k, v;
  std::span<const View<T>> parameters;
};

/// An option of a mechanism, as `heed list` shows it.
struct OptionInfo {
  std::string name, fallback, meaning;
  std::vector<std::string> choices{};  ///< the values it takes, if they have names
};

/// Values of options as text, by name.
using OptionValues = std::map<std::string, std::string>;

/// A mechanism with its options set. Derive from MechanismBase (below), not from this.
class Mechanism {
 public:
  template <class T>
  using OwnTensors = std::span<const View<const T>>;
  template <class T>
  using OwnGradients = std::span<const View<T>>;

  virtual ~Mechanism() = default;

  virtual const char* name() const = 0;

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

  /// Numbers that forward keeps for backward, and that either needs while it runs, per image.
  virtual Index saved(const AttentionShape& shape) const = 0;
  virtual Index scratch(const AttentionShape& shape) const = 0;

  /// Cost per image.
  virtual Cost cost(const AttentionShape& shape) const = 0;

  /// Where the backward pass is meant not to be the derivative of the forward pass: what it is instead, in a few
  /// words. Empty for exact gradients.
  virtual std::string surrogate() const = 0;

  /// Has it a map [N, M], the matrix that multiplies v?
  virtual bool has_map() const = 0;

  /// Does it add a term of its own to the training loss, and what does that cost?
  virtual bool has_penalty() const = 0;
  virtual Cost penalty_cost(const AttentionShape& shape) const = 0;

  virtual void forward(const AttentionInput<float>&, Heads<float> out, float* saved, float* scratch) const = 0;
  virtual void forward(const AttentionInput<double>&, Heads<double> out, double* saved, double* scratch) const = 0;
  virtual void forward(const AttentionInput<Counted>&, Heads<Counted> out, Counted* saved, Counted* scratch) const = 0;

  /// `out` and `saved` are what forward left.
  virtual void backward(const AttentionInput<float>&, Heads<const float> out, Heads<const float> dout,
                        const float* saved, float* scratch, const AttentionGradient<float>&) const = 0;
  virtual void backward(const AttentionInput<double>&, Heads<const double> out, Heads<const double> dout,
                        const double* saved, double* scratch, const AttentionGradient<double>&) const = 0;
  virtual void backward(const AttentionInput<Counted>&, Heads<const Counted> out, Heads<const Counted> dout,
                        const Counted* saved, Counted* scratch, const AttentionGradient<Counted>&) const = 0;

  /// The attention map of each head, [heads, N, M] in row-major order. Only where has_map().
  virtual void map(const AttentionInput<float>&, float* map) const = 0;
  virtual void map(const AttentionInput<double>&, double* map) const = 0;

  /// A term of the training loss that depends on the mechanism's own tensors alone, once per step. Its gradient times
  /// `factor` is added to `gradient`, unless that is empty. scratch as in forward. Only where has_penalty().
  virtual float penalty(const AttentionShape&, OwnTensors<float> own, float factor, OwnGradients<float> gradient,
                        float* scratch) const = 0;
  virtual double penalty(const AttentionShape&, OwnTensors<double> own, double factor, OwnGradients<double> gradient,
                         double* scratch) const = 0;
  virtual Counted penalty(const AttentionShape&, OwnTensors<Counted> own, Counted factor,
                          OwnGradients<Counted> gradient, Counted* scratch) const = 0;
};

/// Serves the virtual functions from the templates of Derived: forward<T>, backward<T>, map<T>.
template <class Derived>
class MechanismBase : public Mechanism {
 public:
  const char* name() const override { return Derived::mechanism_name; }
  AttentionLayout layout(Index dim, Index heads) const override {
    return {heads, dim / heads, dim / heads, dim / heads};
  }
  void check(const AttentionShape&) const override {}
  void read_sizes(const std::map<std::string, Shape>&) override {}
  Shape noise(const AttentionShape&) const override { return Shape{0}; }
  std::vector<ParameterSpec> parameters(const AttentionShape&) const override { return {}; }
  std::string surrogate() const override { return {}; }
  bool has_map() const override { return true; }
  bool has_penalty() const override { return false; }
  Cost penalty_cost(const AttentionShape&) const override { return {}; }

  void forward(const AttentionInput<float>& in, Heads<float> out, float* saved, float* scratch) const override {
    self().run_forward(in, out, saved, scratch);
  }
  void forward(const AttentionInput<double>& in, Heads<double> out, double* saved, double* scratch) const override {
    self().run_forward(in, out, saved, scratch);
  }
  void forward(const AttentionInput<Counted>& in, Heads<Counted> out, Counted* saved, Counted* scratch) const override {
    self().run_forward(in, out, saved, scratch);
  }
  void backward(const AttentionInput<float>& in, Heads<const float> out, Heads<const float> dout, const float* saved,
                float* scratch, const AttentionGradient<float>& gradient) const override {
    self().run_backward(in, out, dout, saved, scratch, gradient);
  }
  void backward(const AttentionInput<double>& in, Heads<const double> out, Heads<const double> dout,
                const double* saved, double* scratch, const AttentionGradient<double>& gradient) const override {
    self().run_backward(in, out, dout, saved, scratch, gradient);
  }
  void backward(const AttentionInput<Counted>& in, Heads<const Counted> out, Heads<const Counted> dout,
                const Counted* saved, Counted* scratch, const AttentionGradient<Counted>& gradient) const override {
    self().run_backward(in, out, dout, saved, scratch, gradient);
  }
  void map(const AttentionInput<float>& in, float* map) const override { self().run_map(in, map); }
  void map(const AttentionInput<double>& in, double* map) const override { self().run_map(in, map); }
  float penalty(const AttentionShape& shape, OwnTensors<float> own, float factor, OwnGradients<float> gradient,
                float* scratch) const override {
    return self().run_penalty(shape, own, factor, gradient, scratch);
  }
  double penalty(const AttentionShape& shape, OwnTensors<double> own, double factor, OwnGradients<double> gradient,
                 double* scratch) const override {
    return self().run_penalty(shape, own, factor, gradient, scratch);
  }
  Counted penalty(const AttentionShape& shape, OwnTensors<Counted> own, Counted factor, OwnGradients<Counted> gradient,
                  Counted* scratch) const override {
    return self().run_penalty(shape, own, factor, gradient, scratch);
  }

  // What a mechanism without a penalty or without a map is asked for.
  template <class T>
  T run_penalty(const AttentionShape&, OwnTensors<T>, T, OwnGradients<T>, T*) const {
    fail("[{}] has no penalty", name());
  }
  template <class T>
  void run_map(const AttentionInput<T>&, T*) const {
    fail("[{}] has no map", name());
  }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
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
};

/// All mechanisms: commands, tests, gradient checks and cost checks loop over them.
std::span<const MechanismEntry> mechanisms();

/// The entry called `name`; throws Error with the nearest name if there is none.
const MechanismEntry& find_mechanism(const std::string& name);

/// A mechanism by name with options as text.
std::unique_ptr<Mechanism> make_mechanism(const std::string& name, const OptionValues& options);

}  // namespace heed
