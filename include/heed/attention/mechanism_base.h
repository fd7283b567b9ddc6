// The base class of all mechanisms.
#pragma once

#include "heed/attention/options.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace heed {

/// The memory layout of mechanisms that need no memory.
struct NoMemory {};

/// Lays out a matrix [rows, columns] for each head, without gaps.
template <class T>
Heads<T> lay_out_heads(Index heads, Index rows, Index columns, MemoryLayout<T>& layout) {
  const Matrix<T> all = layout.matrix(heads * rows, columns);
  return {all.top_rows(rows), heads, rows * columns};
}

/// Returns a tensor as a matrix with a row for each index of its first axis.
template <class T>
Matrix<T> as_matrix(View<T> x) {
  return {x.data(), x.shape()[0], x.shape().elements() / x.shape()[0]};
}

/// Returns shapes.at(name)[axis], for read_sizes. Throws Error if the tensor is missing or its number of axes differs
/// from that of `expected`, such as "[m, d]".
inline Index size_of(const std::map<std::string, Shape>& shapes, const std::string& name, const char* expected,
                     Index axis) {
  const auto found = shapes.find(name);
  require(found != shapes.end(), "tensor '{}' is missing; expected {}", name, expected);
  const Index axes = 1 + std::count(expected, expected + std::strlen(expected), ',');
  require(found->second.rank() == axes, "tensor '{}' has shape {}; expected {}", name, found->second, expected);
  return found->second[axis];
}

/// Converts an index or a count, stored as an element of type T, to an Index.
template <class T>
Index as_index(T number) {
  return static_cast<Index>(static_cast<double>(number));
}

/// Returns 1 / sqrt(d), the scale of inner products of d channels (Vaswani et al., 2017, Section 3.2.1).
inline double score_scale(const AttentionShape& shape) { return 1 / std::sqrt(static_cast<double>(shape.width)); }

/// Implements the virtual functions of Mechanism with members of Derived:
///
///   static constexpr const char *mechanism_name, *summary, *complexity
///   options(visit)                        its options (attention/options.h)
///   static variants()                     option sets that together reach every branch of its code
///   saved(shape, layout), scratch(shape, layout)          the layout of its memory; omitted for none
///   run_forward(in, out, saved, scratch)
///   run_backward(in, out, dout, saved, scratch, gradient)
///   cost(shape)
///
/// and static settings(), if several option sets are worth comparing or one has linear time, and static needs(), if
/// some options have no effect with some values of others. Members that take memory or elements are templates of the
/// number type, T = float, double or Counted. Everything else has a default: q, k and v of equal width, any shape, no
/// parameters.
///
/// A capability (attention/capabilities/) requires another base class, such as WithMap<Derived>, and its members. If
/// the mechanism has the capability only with some options, Derived overrides the function that returns it, such as
/// maps().
template <class Derived>
class MechanismBase : public Mechanism {
 public:
  static std::vector<MechanismSetting> settings() { return {{Derived::mechanism_name}}; }
  static std::vector<OptionNeed> needs() { return {}; }

  const char* name() const override { return Derived::mechanism_name; }
  MechanismTraits traits() const override { return {}; }
  AttentionLayout layout(Index dim, Index heads) const override {
    return {heads, dim / heads, dim / heads, dim / heads};
  }
  void check(const AttentionShape&) const override {}
  void read_sizes(const std::map<std::string, Shape>&) override {}
  std::vector<ParameterSpec> parameters(const AttentionShape&) const override { return {}; }

  template <class T>
  NoMemory prepared(const AttentionShape&, MemoryLayout<T>&) const {
    return {};
  }
  template <class T>
  NoMemory saved(const AttentionShape&, MemoryLayout<T>&) const {
    return {};
  }
  template <class T>
  NoMemory scratch(const AttentionShape&, MemoryLayout<T>&) const {
    return {};
  }

  AttentionMemorySize memory(const AttentionShape& shape) const override {
    MemoryLayout<float> prepared, saved, scratch;
    lay_out_all(shape, prepared, saved, scratch);
    return {prepared.taken(), saved.taken(), scratch.taken()};
  }
  AttentionGuards guards(const AttentionShape& shape, Index guard) const override {
    MemoryLayout<float> prepared({}, guard), saved({}, guard), scratch({}, guard);
    lay_out_all(shape, prepared, saved, scratch);
    return {prepared.guards(), saved.guards(), scratch.guards()};
  }

  void forward(const OfNumber<AttentionForward>& call) const override {
    std::visit(
        [this](const auto& c) {
          static_assert(
              requires {
                self().run_forward(c.in, c.out, saved_of(c.in.shape, c.saved), scratch_of(c.in.shape, c.scratch));
              },
              "run_forward must be run_forward(const AttentionInput<T>& in, Heads<T> out, saved, scratch) const, "
              "saved and scratch of the types that saved() and scratch() return");
          self().run_forward(c.in, c.out, saved_of(c.in.shape, c.saved), scratch_of(c.in.shape, c.scratch));
        },
        call);
  }
  void backward(const OfNumber<AttentionBackward>& call) const override {
    std::visit(
        [this](const auto& c) {
          static_assert(
              requires {
                self().run_backward(c.in, c.out, c.dout, saved_of(c.in.shape, c.saved),
                                    scratch_of(c.in.shape, c.scratch), c.gradient);
              },
              "run_backward must be run_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const T> dout, "
              "saved, scratch, const AttentionGradient<T>& gradient) const");
          self().run_backward(c.in, c.out, c.dout, saved_of(c.in.shape, c.saved), scratch_of(c.in.shape, c.scratch),
                              c.gradient);
        },
        call);
  }

  const MapCapability* maps() const override { return as<MapCapability>(); }
  const PreparationCapability* preparation() const override { return as<PreparationCapability>(); }
  const PenaltyCapability* penalty_term() const override { return as<PenaltyCapability>(); }
  const InverseCapability* inverse() const override { return as<InverseCapability>(); }
  const PicturesCapability* pictures() const override { return as<PicturesCapability>(); }
  const DecodingCapability* decoding() const override { return as<DecodingCapability>(); }

  /// Return memory in the mechanism's layout.
  template <class T>
  auto prepared_of(const AttentionShape& shape, AttentionMemory<T> memory) const {
    MemoryLayout<T> layout(memory.data, memory.guard);
    return self().prepared(shape, layout);
  }
  // Not inlined: laying out memory is long code with several callers, a third of a small mechanism's object code.
  template <class T>
  [[gnu::noinline]] auto saved_of(const AttentionShape& shape, AttentionMemory<T> memory) const {
    MemoryLayout<T> layout(memory.data, memory.guard);
    return self().saved(shape, layout);
  }
  template <class T>
  [[gnu::noinline]] auto scratch_of(const AttentionShape& shape, AttentionMemory<T> memory) const {
    MemoryLayout<T> layout(memory.data, memory.guard);
    return self().scratch(shape, layout);
  }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }

  template <class Capability>
  const Capability* as() const {
    if constexpr (std::is_base_of_v<Capability, Derived>)
      return &self();
    else
      return nullptr;
  }

  [[gnu::noinline]] void lay_out_all(const AttentionShape& shape, MemoryLayout<float>& prepared,
                                     MemoryLayout<float>& saved, MemoryLayout<float>& scratch) const {
    self().prepared(shape, prepared), self().saved(shape, saved), self().scratch(shape, scratch);
  }
};

/// Creates an M (a mechanism or its options) from options as text; throws Error for unknown names and bad values.
template <class M>
M read_options(const char* owner, const OptionValues& values) {
  M options;
  OptionReader reader(owner, values);
  options.options(reader);
  reader.finish();
  return options;
}

/// Returns the options of an M with their defaults.
template <class M>
std::vector<OptionInfo> list_options() {
  M options;
  OptionLister lister;
  options.options(lister);
  return lister.found;
}

/// Returns the entry of mechanism M in the list. M's file ends with `template MechanismEntry mechanism_entry<M>();`.
template <class M>
MechanismEntry mechanism_entry() {
  return {M::mechanism_name,
          M::summary,
          M::complexity,
          [](const OptionValues& values) -> std::unique_ptr<Mechanism> {
            return std::make_unique<M>(read_options<M>(M::mechanism_name, values));
          },
          list_options<M>,
          [] { return M::variants(); },
          [] { return M::settings(); },
          [] { return M::needs(); }};
}

}  // namespace heed
