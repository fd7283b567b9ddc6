// Memory faults planted in a mechanism, each of which must be reported by name. heed's own mechanisms have none.
#include "heed/attention/capabilities/decoding.h"
#include "heed/attention/capabilities/map.h"
#include "heed/attention/capabilities/penalty.h"
#include "heed/attention/capabilities/preparation.h"
#include "heed/attention/mechanism_base.h"
#include "heed/checks/gradcheck.h"
#include "src/checks/memory.h"

#include <boost/test/unit_test.hpp>

#include <limits>
#include <tuple>

using namespace heed;

namespace {

enum class Fault {
  none,
  past_saved,
  before_saved,
  far_past_saved,
  unsized,
  unread,
  unread_hidden,
  unread_in_backward,
  unread_saved,
  unread_in_map,
  ignores_update,
  unwritten,
  unwritten_out,
  changes_saved,
  beside,
  beside_map,
  beside_gradient,
  past_scratch_in_backward,
  past_saved_in_map,
  past_scratch_in_map,
  wrong_map
};

/// The mechanism out = 2 v, which saves v and has one fault.
struct Faulty : MechanismBase<Faulty>, WithMap<Faulty> {
  static constexpr const char *mechanism_name = "faulty", *summary = "", *complexity = "";
  Fault fault = Fault::none;

  AttentionLayout layout(Index dim, Index heads) const override { return {heads, 0, 0, dim / heads}; }

  template <class T>
  struct Saved {
    Matrix<T> v, rest;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    const Index missing = fault == Fault::past_saved;
    return {layout.matrix(s.queries - missing, s.value_width), layout.matrix(1, s.value_width)};
  }
  template <class T>
  Matrix<T> scratch(const AttentionShape&, MemoryLayout<T>& layout) const {
    return layout.matrix(1, 1);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, Matrix<T> scratch) const {
    const auto [N, M, d, e] = in.shape.sizes();
    for (Index i = 0; i < N; ++i)
      for (Index c = 0; c < e; ++c) {
        saved.v.data[i * e + c] = in.v[0](i, c);
        if (fault != Fault::unwritten_out || i > 0) out[0](i, c) = T(2) * in.v[0](i, c);
      }
    if (fault == Fault::unsized) scratch.data[1] = T(0);
    if (fault == Fault::beside) out[0](0, e) = T(0);
    if (fault == Fault::before_saved) saved.v.data[-1] = T(0);
    if (fault == Fault::far_past_saved) saved.rest.data[e + 100] = T(0);
    if (fault == Fault::unread_hidden) out[0](1, 1) += saved.rest(0, 0) > T(0) ? T(1) : T(0);  // false for a NaN
    if (fault == Fault::unread) out[0](1, 1) += T(0) * saved.rest(0, 0);
  }
  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const Saved<T>& saved, Matrix<T> scratch) const {
    const T hidden = fault == Fault::unread_in_map && scratch(0, 0) > T(0) ? T(1) : T(0);
    for (Index i = 0; i < in.shape.queries; ++i)
      for (Index j = 0; j < in.shape.keys; ++j) map[0](i, j) = i == j ? T(2) + hidden : T(0);
    if (fault == Fault::wrong_map) map[0](0, 0) = T(3);
    if (fault == Fault::beside_map) map[0](0, in.shape.keys) = T(0);
    if (fault == Fault::past_saved_in_map) saved.rest.data[in.shape.value_width] = T(0);
    if (fault == Fault::past_scratch_in_map) scratch.data[1] = T(0);
  }
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& saved,
                    Matrix<T> scratch, const AttentionGradient<T>& gradient) const {
    const auto [N, M, d, e] = in.shape.sizes();
    const bool hidden = (fault == Fault::unread_in_backward && scratch(0, 0) > T(0)) ||
                        (fault == Fault::unread_saved && saved.rest(0, 0) > T(0));  // false for a NaN
    const Update update = fault == Fault::ignores_update ? Update::assign : gradient.update;
    if (fault == Fault::changes_saved) saved.v(0, 0) = T(1);
    if (fault == Fault::beside_gradient) gradient.v[0](0, e) = T(0);
    if (fault == Fault::past_scratch_in_backward) scratch.data[1] = T(0);
    for (Index i = 0; i < N; ++i)
      for (Index c = 0; c < e; ++c)
        if (fault != Fault::unwritten || i + c > 0)
          write(update, gradient.v[0](i, c), (hidden ? T(3) : T(2)) * dout[0](i, c));
  }
  Cost cost(const AttentionShape&) const override { return {}; }
};

/// out[i,c] = p[c] v[i,c] with p = w (plus noise in training), prepared; the loss includes sum_c w[c]^2.
struct FaultyTensors : MechanismBase<FaultyTensors>, WithPreparation<FaultyTensors>, WithPenalty<FaultyTensors> {
  enum class Fault {
    none,
    past_prepared_in_training,
    unwritten_in_training,
    unread_hidden,
    overwrites_prepared,
    past_prepared_gradient,
    past_gradient,
    overwrites_gradient,
    leaves_out_gradient,
    past_penalty,
    overwrites_penalty,
    leaves_out_penalty,
    penalty_not_finite
  };
  static constexpr const char *mechanism_name = "faulty", *summary = "", *complexity = "";
  Fault fault = Fault::none;

  AttentionLayout layout(Index dim, Index heads) const override { return {heads, 0, 0, dim / heads}; }
  std::vector<ParameterSpec> parameters(const AttentionShape& s) const override {
    return {{"w", {s.value_width}, Initial::normal(1)}};
  }
  Shape noise(const AttentionShape& s) const override { return Shape{s.value_width}; }

  template <class T>
  T* prepared(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return layout.numbers(s.value_width);
  }

  template <class T>
  void run_prepare(const AttentionPreparation<T>& of, T* p) const {
    const Index e = of.shape.value_width;
    const Index first = of.training && fault == Fault::unwritten_in_training ? 1 : 0;
    for (Index c = first; c < e; ++c) {
      const bool hidden = fault == Fault::unread_hidden && p[c] > T(0);  // false for a NaN
      p[c] = of.parameters[0][c] + (of.training ? of.noise[c] : T(0)) + T(hidden);
    }
    if (of.training && fault == Fault::past_prepared_in_training) p[e] = T(0);
  }
  template <class T>
  void run_prepare_backward(const AttentionPreparation<T>& of, const T*, const T* dp,
                            std::span<const View<T>> gradient) const {
    const Index e = of.shape.value_width;
    const Update update = fault == Fault::overwrites_gradient ? Update::assign : Update::accumulate;
    for (Index c = fault == Fault::leaves_out_gradient ? 1 : 0; c < e; ++c) write(update, gradient[0].data()[c], dp[c]);
    if (fault == Fault::past_gradient) gradient[0].data()[e] = T(0);
  }
  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, NoMemory, NoMemory) const {
    const T* const p = prepared_of(in.shape, in.prepared);
    for (Index i = 0; i < in.shape.queries; ++i)
      for (Index c = 0; c < in.shape.value_width; ++c) out[0](i, c) = p[c] * in.v[0](i, c);
  }
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, NoMemory, NoMemory,
                    const AttentionGradient<T>& gradient) const {
    const T* const p = prepared_of(in.shape, in.prepared);
    T* const dp = prepared_of(in.shape, gradient.prepared);
    const Update update = fault == Fault::overwrites_prepared ? Update::assign : Update::accumulate;
    for (Index i = 0; i < in.shape.queries; ++i)
      for (Index c = 0; c < in.shape.value_width; ++c) {
        write(gradient.update, gradient.v[0](i, c), p[c] * dout[0](i, c));
        write(update, dp[c], in.v[0](i, c) * dout[0](i, c));
      }
    if (fault == Fault::past_prepared_gradient) dp[in.shape.value_width] = T(0);
  }
  template <class T>
  T run_penalty(const AttentionPenalty<T>& call) const {
    T sum(0);
    const View<const T> w = call.parameters[0];
    for (const T value : w) sum += value * value;
    if (fault == Fault::penalty_not_finite) sum = T(std::numeric_limits<double>::quiet_NaN());
    if (call.gradient.empty()) return sum;
    T* const dw = call.gradient[0].data();
    const Update update = fault == Fault::overwrites_penalty ? Update::assign : Update::accumulate;
    for (Index c = fault == Fault::leaves_out_penalty ? 1 : 0; c < w.size(); ++c)
      write(update, dw[c], T(2) * call.factor * w[c]);
    if (fault == Fault::past_penalty) dw[w.size()] = T(0);
    return sum;
  }
  Cost cost(const AttentionShape&) const override { return {}; }
};

/// Two heads that share a key head, operands of three widths and two parameters without preparation. The backward pass
/// has a fault in the gradient of one operand or parameter, or in the saved memory.
struct FaultySides : MechanismBase<FaultySides> {
  enum class Fault {
    none,
    unwritten,
    beside,
    beside_if_added,
    assigned,
    unread,
    past_saved,
    past_parameter,
    parameter_assigned,
    parameter_left_out,
    parameter_unread
  };
  static constexpr const char *mechanism_name = "sides", *summary = "", *complexity = "";
  Fault fault = Fault::none;
  std::size_t of = 0;     ///< operand q, k or v, or parameter a or b
  bool in_float = false;  ///< the fault is in float only

  AttentionLayout layout(Index, Index) const override { return {2, 3, 4, 5, 1}; }
  std::vector<ParameterSpec> parameters(const AttentionShape&) const override {
    return {{"a", {3}, Initial::normal(1)}, {"b", {2, 2}, Initial::normal(1)}};
  }
  template <class T>
  Matrix<T> saved(const AttentionShape&, MemoryLayout<T>& layout) const {
    return layout.matrix(1, 1);
  }
  template <class T>
  Matrix<T> scratch(const AttentionShape&, MemoryLayout<T>& layout) const {
    return layout.matrix(1, 1);
  }

  /// out depends on every element of the parameters.
  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, Matrix<T> saved, Matrix<T>) const {
    saved(0, 0) = T(1);
    for (Index h = 0; h < out.count; ++h)
      for (Index i = 0; i < in.shape.queries; ++i)
        for (Index c = 0; c < in.shape.value_width; ++c)
          out[h](i, c) = in.parameters[0].data()[c % 3] + in.parameters[1].data()[c % 4];
  }
  template <class T>
  void run_backward(const AttentionInput<T>&, Heads<const T>, Heads<const T>, Matrix<T> saved, Matrix<T> scratch,
                    const AttentionGradient<T>& gradient) const {
    const Fault here = in_float && !std::is_same_v<T, float> ? Fault::none : fault;
    const T one = scratch(0, 0) > T(0) ? T(2) : T(1);  // 1 for a NaN
    if (here == Fault::past_saved) saved.data[1] = T(0);
    const Heads<T> operands[] = {gradient.q, gradient.k, gradient.v};
    for (std::size_t o = 0; o < 3; ++o) {
      const Heads<T>& to = operands[o];
      const Index last = to.first.rows - 1, beyond = to.first.columns;
      const Fault f = o == of ? here : Fault::none;
      for (Index h = 0; h < to.count; ++h)
        for (Index i = 0; i <= last; ++i)
          for (Index c = 0; c < beyond; ++c)
            if (f != Fault::unwritten || h + i + c > 0)
              write(f == Fault::assigned ? Update::assign : gradient.update, to[h](i, c),
                    f == Fault::unread ? one : T(3));
      if (f == Fault::beside || (f == Fault::beside_if_added && gradient.update == Update::accumulate))
        to[to.count - 1](last, beyond) = T(0);
    }
    for (std::size_t p = 0; p < 2; ++p) {
      const Fault f = p == of ? here : Fault::none;
      const View<T> to = gradient.parameters[p];
      for (Index i = f == Fault::parameter_left_out ? 1 : 0; i < to.size(); ++i)
        write(f == Fault::parameter_assigned ? Update::assign : Update::accumulate, to.data()[i],
              f == Fault::parameter_unread ? one : T(3));
      if (f == Fault::past_parameter) to.data()[to.size()] = T(0);
    }
  }
  Cost cost(const AttentionShape&) const override { return {}; }
};

/// Returns the reported lines for six queries and four keys, without "[sides] backward ".
std::string faults_of(FaultySides::Fault fault, std::size_t of, bool in_float) {
  FaultySides mechanism;
  mechanism.fault = fault, mechanism.of = of, mechanism.in_float = in_float;
  const AttentionLayout layout = mechanism.layout(0, 0);
  std::string all;
  for (const std::string& line : memory_faults(mechanism, layout, layout.among(6, 4, {}))) {
    BOOST_TEST(line.starts_with("[sides] backward "), line);
    all += (all.empty() ? "" : "; ") + line.substr(line.find("backward ") + 9);
  }
  return all;
}

/// out_i is the sum of v over the keys up to i. Decoding has a fault.
struct FaultyDecoding : MechanismBase<FaultyDecoding>, WithDecoding<FaultyDecoding> {
  enum class Fault { none, leak, late, in_float, not_finite, past_state, past_sums, past_scratch, beside, unread };
  static constexpr const char *mechanism_name = "sums", *summary = "", *complexity = "";
  Fault fault = Fault::none;

  AttentionLayout layout(Index dim, Index heads) const override { return {heads, 0, 0, dim / heads}; }
  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, NoMemory, NoMemory) const {
    for (Index h = 0; h < out.count; ++h)
      for (Index i = 0; i < in.shape.queries; ++i)
        for (Index c = 0; c < in.shape.value_width; ++c)
          out[h](i, c) = in.v[h](i, c) + (i > 0 ? out[h](i - 1, c) : T(0));
    if (fault == Fault::leak) out[1](2, 0) += in.v[1](3, 0);
  }
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, NoMemory, NoMemory,
                    const AttentionGradient<T>& gradient) const {
    for (Index h = 0; h < dout.count; ++h)
      for (Index c = 0; c < in.shape.value_width; ++c) {
        T sum(0);
        for (Index i = in.shape.queries; i-- > 0;) write(gradient.update, gradient.v[h](i, c), sum += dout[h](i, c));
      }
  }
  AttentionStateSize state_size(const AttentionShape& s, Index) const override {
    return {.state = 1, .sums = s.heads * s.value_width, .scratch = 1};
  }
  template <class T>
  void run_decode(const AttentionDecoding<T>& call) const {
    const Index H = call.in.shape.heads, e = call.in.shape.value_width;
    for (Index h = 0; h < H; ++h)
      for (Index c = 0; c < e; ++c) {
        double& sum = call.sums[h * e + c];
        sum = (call.position > 0 ? sum : 0) + static_cast<double>(call.in.v[h](0, c));
        call.out[h](0, c) = static_cast<T>(sum);
      }
    T& y = call.out[1](0, 0);
    if (fault == Fault::late && call.position >= 3) y += T(0.5);
    if (fault == Fault::in_float && std::is_same_v<T, float>) y += T(0.5);
    if (fault == Fault::not_finite) y /= T(0);
    if (fault == Fault::past_state) call.state[1] = T(0);
    if (fault == Fault::past_sums) call.sums[H * e] = 0;
    if (fault == Fault::past_scratch) call.scratch[1] = T(0);
    if (fault == Fault::beside) call.out[1](0, e) = T(0);
    if (fault == Fault::unread && call.state[0] > T(0)) y += T(0.5);  // false for a NaN
  }
  Cost cost(const AttentionShape&) const override { return {}; }
};

std::string faults_of(FaultyDecoding::Fault fault, bool growing = true) {
  FaultyDecoding mechanism;
  mechanism.fault = fault;
  const AttentionLayout layout = mechanism.layout(6, 2);
  std::string all;
  for (const std::string& line : memory_faults(mechanism, layout, layout.among(5, {.longest = 5, .growing = growing})))
    all += line + "\n";
  return all;
}

template <class M, class Fault>
std::string faults_in(Fault fault) {
  M mechanism;
  mechanism.fault = fault;
  const AttentionLayout layout = mechanism.layout(3, 1);
  std::string all;
  for (const std::string& line : memory_faults(mechanism, layout, layout.among(5, {}))) all += line + "\n";
  return all;
}

std::string faults_of(Fault fault) { return faults_in<Faulty>(fault); }
std::string faults_of(FaultyTensors::Fault fault) { return faults_in<FaultyTensors>(fault); }

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_check)

BOOST_AUTO_TEST_CASE(sound_use_is_not_blamed) {
  BOOST_TEST(faults_of(Fault::none) == "");
  BOOST_TEST(faults_of(FaultyTensors::Fault::none) == "");
}

BOOST_AUTO_TEST_CASE(each_fault_is_told_by_name) {
  BOOST_TEST(faults_of(Fault::past_saved) == "[faulty] forward writes outside part 1 of its saved memory\n");
  BOOST_TEST(faults_of(Fault::before_saved) == "[faulty] forward writes outside part 1 of its saved memory\n");
  BOOST_TEST(faults_of(Fault::far_past_saved) == "[faulty] forward writes outside part 2 of its saved memory\n");
  BOOST_TEST(faults_of(Fault::unread_hidden) ==
             "[faulty] forward computes out from memory that it never wrote: 1 elements differ\n");
  BOOST_TEST(faults_of(Fault::unsized) == "[faulty] forward writes outside part 1 of its scratch memory\n");
  BOOST_TEST(faults_of(Fault::unread) ==
             "[faulty] forward computes out from memory that it never wrote: 1 elements are not finite\n");
  for (const Fault fault : {Fault::unread_in_backward, Fault::unread_saved})
    BOOST_TEST(faults_of(fault) ==
               "[faulty] backward computes the gradient of v from memory that it never wrote: 15 elements differ\n");
  BOOST_TEST(faults_of(Fault::unread_in_map) ==
             "[faulty] map computes the map from memory that it never wrote: 5 elements differ\n");
  BOOST_TEST(faults_of(Fault::ignores_update) ==
             "[faulty] backward ignores `update`: 15 elements of the gradient of v were not added\n");
  BOOST_TEST(faults_of(Fault::unwritten) == "[faulty] backward leaves 1 elements of the gradient of v unwritten\n");
  BOOST_TEST(faults_of(Fault::unwritten_out) == "[faulty] forward leaves 3 elements of out unwritten\n");
  BOOST_TEST(faults_of(Fault::changes_saved) == "[faulty] backward changes the memory saved by forward\n");
  BOOST_TEST(faults_of(Fault::beside) == "[faulty] forward writes outside the rows of out\n");
  BOOST_TEST(faults_of(Fault::beside_map) == "[faulty] map writes outside the rows of the map\n");
  BOOST_TEST(faults_of(Fault::beside_gradient) == "[faulty] backward writes outside the rows of the gradient of v\n");
  BOOST_TEST(faults_of(Fault::past_scratch_in_backward) ==
             "[faulty] backward writes outside part 1 of its scratch memory\n");
  BOOST_TEST(faults_of(Fault::past_saved_in_map) == "[faulty] map writes outside part 2 of its saved memory\n");
  BOOST_TEST(faults_of(Fault::past_scratch_in_map) == "[faulty] map writes outside part 1 of its scratch memory\n");
  BOOST_TEST(faults_of(Fault::wrong_map).starts_with("[faulty] the map times v differs from out by up to "));
}

// Gradients of q [2, 6, 3], k [1, 4, 4] and v [1, 4, 5], with faults in every number type, then in float alone.
BOOST_AUTO_TEST_CASE(each_operand_is_watched) {
  using Of = FaultySides::Fault;
  const std::string names[] = {"q", "k", "v"};
  const int sizes[] = {36, 16, 20};
  for (const bool in_float : {false, true})
    for (std::size_t o = 0; o < 3; ++o) {
      const std::string gradient = "the gradient of " + names[o], size = std::to_string(sizes[o]);
      const auto check = [&](Of fault, const std::string& expected) {
        BOOST_TEST(faults_of(fault, o, in_float) == expected, (in_float ? "in float: " : "") << expected);
      };
      check(Of::none, "");
      check(Of::unwritten, "leaves 1 elements of " + gradient + " unwritten");
      check(Of::beside, "writes outside the rows of " + gradient);
      check(Of::beside_if_added, "writes outside the rows of " + gradient);
      check(Of::assigned, "ignores `update`: " + size + " elements of " + gradient + " were not added");
      check(Of::unread, "computes " + gradient + " from memory that it never wrote: " + size + " elements differ");
      check(Of::past_saved, "writes outside part 1 of its saved memory; changes the memory saved by forward");
    }
}

// Parameters of a mechanism that prepares nothing: a [3] and b [2, 2].
BOOST_AUTO_TEST_CASE(each_parameter_is_watched) {
  using Of = FaultySides::Fault;
  for (const bool in_float : {false, true})
    for (const auto& [p, name, size] : {std::tuple(0, "a", 3), {1, "b", 4}}) {
      const std::string gradient = fmt::format("the gradient of its tensor {}", name);
      const auto check = [&, at = static_cast<std::size_t>(p)](Of fault, const std::string& expected) {
        BOOST_TEST(faults_of(fault, at, in_float) == expected, (in_float ? "in float: " : "") << expected);
      };
      check(Of::past_parameter, "writes outside " + gradient);
      check(Of::parameter_assigned, fmt::format("overwrites {} elements of {}", size, gradient));
      check(Of::parameter_left_out, "leaves 1 elements of " + gradient + " unwritten");
      check(Of::parameter_unread,
            fmt::format("computes {} from memory that it never wrote: {} elements differ", gradient, size));
    }
}

BOOST_AUTO_TEST_CASE(faults_with_own_tensors_are_told_by_name) {
  using Of = FaultyTensors::Fault;
  BOOST_TEST(faults_of(Of::past_prepared_in_training) ==
             "[faulty] prepare writes outside part 1 of its prepared memory, in training\n");
  BOOST_TEST(faults_of(Of::unwritten_in_training) ==
             "[faulty] forward computes out from memory that it never wrote: 5 elements are not finite, in training\n");
  BOOST_TEST(faults_of(Of::unread_hidden) ==
             "[faulty] prepare computes out from memory that it never wrote: 15 elements differ\n");
  BOOST_TEST(faults_of(Of::overwrites_prepared) ==
             "[faulty] backward overwrites 3 elements of the gradient of the prepared tensors\n");
  BOOST_TEST(faults_of(Of::past_prepared_gradient) ==
             "[faulty] backward writes outside part 1 of its prepared gradient memory\n");
  BOOST_TEST(faults_of(Of::penalty_not_finite) ==
             "[faulty] penalty computes its term of the loss from memory that it never wrote: 1 elements are not "
             "finite\n");
  BOOST_TEST(faults_of(Of::past_gradient) == "[faulty] prepare_backward writes outside the gradient of its tensor w\n");
  BOOST_TEST(faults_of(Of::overwrites_gradient) ==
             "[faulty] prepare_backward overwrites 3 elements of the gradient of its tensor w\n");
  BOOST_TEST(faults_of(Of::leaves_out_gradient) ==
             "[faulty] prepare_backward leaves 1 elements of the gradient of its tensor w unwritten\n");
  BOOST_TEST(faults_of(Of::past_penalty) == "[faulty] penalty writes outside the gradient of its tensor w\n");
  BOOST_TEST(faults_of(Of::overwrites_penalty) ==
             "[faulty] penalty overwrites 3 elements of the gradient of its tensor w\n");
  BOOST_TEST(faults_of(Of::leaves_out_penalty) ==
             "[faulty] penalty leaves 1 elements of the gradient of its tensor w unwritten\n");
}

BOOST_AUTO_TEST_CASE(decoding_is_compared_with_the_full_pass) {
  using Of = FaultyDecoding::Fault;
  BOOST_TEST(faults_of(Of::none) == "");
  BOOST_TEST(faults_of(Of::leak, false) == "");  // not causal
  BOOST_TEST(faults_of(Of::leak).starts_with(
      "[sums] causal=true, but the first 3 tokens of out change by up to 1 with later tokens\n"));
  BOOST_TEST(faults_of(Of::late, false) == "");  // not causal
  BOOST_TEST(faults_of(Of::late) == "[sums] decode differs from forward by up to 0.5, first at token 3\n");
  BOOST_TEST(faults_of(Of::in_float) == "[sums] decode differs from forward by up to 0.5 in float, first at token 0\n");
  BOOST_TEST(faults_of(Of::not_finite) == "[sums] decode differs from forward by up to inf, first at token 0\n");
  BOOST_TEST(faults_of(Of::unread) == "[sums] decode differs from forward by up to 0.5, first at token 0\n");
  BOOST_TEST(faults_of(Of::past_state) == "[sums] decode writes outside part 1 of its state memory\n");
  BOOST_TEST(faults_of(Of::past_sums) == "[sums] decode writes outside part 1 of its sums memory\n");
  BOOST_TEST(faults_of(Of::past_scratch) == "[sums] decode writes outside part 1 of its scratch memory\n");
  BOOST_TEST(faults_of(Of::beside) == "[sums] decode writes outside the rows of out\n");
}

BOOST_AUTO_TEST_CASE(mechanisms_use_their_memory_soundly) {
  Index watched = 0;
  for (const CheckCase& c : all_check_cases()) {
    if (!c.memory_faults) continue;
    ++watched;
    for (const std::string& fault : c.memory_faults()) BOOST_ERROR(fault << " (" << c.name << ")");
  }
  BOOST_TEST(watched >= static_cast<Index>(mechanisms().size()));
}

BOOST_AUTO_TEST_SUITE_END()
