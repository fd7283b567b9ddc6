// What every mechanism is derived from.
#pragma once

#include "heed/attention/options.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace heed {

/// The memory of a mechanism that needs none.
struct NoMemory {};

/// A matrix [rows, columns] for each head, without gaps.
template <class T>
Heads<T> carve_heads(Index heads, Index rows, Index columns, Carver<T>& carve) {
  const Matrix<T> all = carve.matrix(heads * rows, columns);
  return {all.top_rows(rows), heads, rows * columns};
}

/// A tensor as a matrix, with a row for each element of its first axis.
template <class T>
Matrix<T> as_matrix(View<T> x) {
  return {x.data(), x.shape()[0], x.shape().elements() / x.shape()[0]};
}

/// A size that the shape of a tensor says, for read_sizes: shapes.at(name)[axis], of a tensor that has the axes
/// `expected`, such as "[m, d]". Throws Error where it is missing or has another number of axes.
inline Index size_of(const std::map<std::string, Shape>& shapes, const std::string& name, const char* expected,
                     Index axis) {
  const auto found = shapes.find(name);
  require(found != shapes.end(), "tensor '{}' is missing; expected {}", name, expected);
  const Index axes = 1 + std::count(expected, expected + std::strlen(expected), ',');
  require(found->second.rank() == axes, "tensor '{}' has shape {}; expected {}", name, found->second, expected);
  return found->second[axis];
}

/// A whole number, a place or a count, that is kept among numbers of another type.
template <class T>
Index as_index(T number) {
  return static_cast<Index>(static_cast<double>(number));
}

/// 1 / sqrt(d), by which inner products of d channels are scaled (Vaswani et al., 2017, Section 3.2.1).
inline double score_scale(const AttentionShape& shape) { return 1 / std::sqrt(static_cast<double>(shape.width)); }

/// Serves the virtual functions of Mechanism from Derived, which has
///
///   static constexpr const char *mechanism_name, *summary, *complexity
///   options(visit)                        its options (attention/options.h)
///   static variants()                     settings that reach every branch of its code
///   saved(shape, carve), scratch(shape, carve)          its memory, each part taken from the carver; left out for none
///   run_forward(in, out, saved, scratch)
///   run_backward(in, out, dout, saved, scratch, gradient)
///   cost(shape)
///
/// and, where it has several that are worth comparing or one that is linear in the tokens, static settings(). Where its
/// traits() promise them
///
///   run_map(in, map, saved, scratch)      the map, map_shape() per head
///   run_penalty(call)                     what it adds to the loss
///   run_decode(call)                      the next token; with it state_size(shape, tokens)
///   prepared(shape, carve), run_prepare(of, prepared), run_prepare_backward(of, prepared, dprepared, gradient)
///
/// and, where there is something to look at beside the map or in place of one, pictures() and picture(name, in).
///
/// Those with memory or numbers are templates on the number type, T = float, double or Counted. What a mechanism leaves
/// out of the rest is as usual: q, k and v of one width, any shape, no tensors of its own.
template <class Derived>
class MechanismBase : public Mechanism {
 public:
  static std::vector<MechanismSetting> settings() { return {{Derived::mechanism_name}}; }

  const char* name() const override { return Derived::mechanism_name; }
  MechanismTraits traits() const override { return {}; }
  std::vector<PictureInfo> pictures() const override { return {}; }
  AttentionLayout layout(Index dim, Index heads) const override {
    return {heads, dim / heads, dim / heads, dim / heads};
  }
  void check(const AttentionShape&) const override {}
  void read_sizes(const std::map<std::string, Shape>&) override {}
  std::vector<ParameterSpec> parameters(const AttentionShape&) const override { return {}; }
  Shape noise(const AttentionShape&) const override { return Shape{0}; }
  Cost preparation_cost(const AttentionShape&) const override { return {}; }
  Cost penalty_cost(const AttentionShape&) const override { return {}; }
  Tensor<float> inverted(const AttentionInput<float>&) const override { fail("[{}] inverts nothing", name()); }
  Tensor<float> picture(const std::string& picture, const AttentionInput<float>&) const override {
    fail("[{}] has no picture '{}'", name(), picture);
  }

  template <class T>
  NoMemory prepared(const AttentionShape&, Carver<T>&) const {
    return {};
  }
  template <class T>
  NoMemory saved(const AttentionShape&, Carver<T>&) const {
    return {};
  }
  template <class T>
  NoMemory scratch(const AttentionShape&, Carver<T>&) const {
    return {};
  }

  AttentionMemorySize memory(const AttentionShape& shape) const override {
    Carver<float> prepared, saved, scratch;
    carve_all(shape, prepared, saved, scratch);
    return {prepared.taken(), saved.taken(), scratch.taken()};
  }
  AttentionFences fences(const AttentionShape& shape, Index fence) const override {
    Carver<float> prepared({}, fence), saved({}, fence), scratch({}, fence);
    carve_all(shape, prepared, saved, scratch);
    return {prepared.fences(), saved.fences(), scratch.fences()};
  }

  void prepare(const OfNumber<AttentionPreparation>& call) const override {
    std::visit(
        [this](const auto& of) {
          if constexpr (requires { self().run_prepare(of, prepared_of(of.shape, of.prepared)); })
            self().run_prepare(of, prepared_of(of.shape, of.prepared));
        },
        call);
  }
  void prepare_backward(const OfNumber<AttentionPreparationBackward>& call) const override {
    std::visit(
        [this](const auto& c) {
          const auto prepared = prepared_of(c.of.shape, c.of.prepared),
                     dprepared = prepared_of(c.of.shape, c.dprepared);
          if constexpr (requires { self().run_prepare_backward(c.of, prepared, dprepared, c.gradient); })
            self().run_prepare_backward(c.of, prepared, dprepared, c.gradient);
        },
        call);
  }
  void forward(const OfNumber<AttentionForward>& call) const override {
    std::visit(
        [this](const auto& c) {
          self().run_forward(c.in, c.out, saved_in(c.in.shape, c.saved), scratch_in(c.in.shape, c.scratch));
        },
        call);
  }
  void backward(const OfNumber<AttentionBackward>& call) const override {
    std::visit(
        [this](const auto& c) {
          self().run_backward(c.in, c.out, c.dout, saved_in(c.in.shape, c.saved), scratch_in(c.in.shape, c.scratch),
                              c.gradient);
        },
        call);
  }
  void map(const OfNumber<AttentionMap>& call) const override {
    std::visit(
        [this](const auto& c) {
          if constexpr (requires {
                          self().run_map(c.in, c.map, saved_in(c.in.shape, c.saved), scratch_in(c.in.shape, c.scratch));
                        })
            self().run_map(c.in, c.map, saved_in(c.in.shape, c.saved), scratch_in(c.in.shape, c.scratch));
          else
            fail("[{}] has no map", name());
        },
        call);
  }
  AttentionStateSize state_size(const AttentionShape&, Index) const override { return {}; }
  void decode(const AnyDecoding& call) const override {
    std::visit(
        [this](const auto& c) {
          if constexpr (requires { self().run_decode(c); })
            self().run_decode(c);
          else
            fail("[{}] has no causal form", name());
        },
        call);
  }
  void penalty(const OfNumber<AttentionPenalty>& call) const override {
    std::visit(
        [this](const auto& c) {
          if constexpr (requires { self().run_penalty(c); })
            *c.penalty = self().run_penalty(c);
          else
            fail("[{}] has no penalty", name());
        },
        call);
  }

 protected:
  /// Memory as the mechanism divides it; `memory` holds what prepare() left, or is for it.
  template <class T>
  auto prepared_of(const AttentionShape& shape, AttentionMemory<T> memory) const {
    Carver<T> carve(memory.data, memory.fence);
    return self().prepared(shape, carve);
  }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }

  // What divides memory is long where it is inline, and has several users: a third of what a small mechanism compiles.
  [[gnu::noinline]] void carve_all(const AttentionShape& shape, Carver<float>& prepared, Carver<float>& saved,
                                   Carver<float>& scratch) const {
    self().prepared(shape, prepared), self().saved(shape, saved), self().scratch(shape, scratch);
  }
  template <class T>
  [[gnu::noinline]] auto saved_in(const AttentionShape& shape, AttentionMemory<T> memory) const {
    Carver<T> carve(memory.data, memory.fence);
    return self().saved(shape, carve);
  }
  template <class T>
  [[gnu::noinline]] auto scratch_in(const AttentionShape& shape, AttentionMemory<T> memory) const {
    Carver<T> carve(memory.data, memory.fence);
    return self().scratch(shape, carve);
  }
};

/// The entry of mechanism M, for the list. M's file ends with `template MechanismEntry mechanism_entry<M>();`.
template <class M>
MechanismEntry mechanism_entry() {
  return {M::mechanism_name,
          M::summary,
          M::complexity,
          [](const OptionValues& values) -> std::unique_ptr<Mechanism> {
            auto mechanism = std::make_unique<M>();
            OptionReader reader(M::mechanism_name, values);
            mechanism->options(reader);
            reader.finish();
            return mechanism;
          },
          [] {
            M mechanism;
            OptionLister lister;
            mechanism.options(lister);
            return lister.found;
          },
          [] { return M::variants(); },
          [] { return M::settings(); }};
}

}  // namespace heed
