#include "heed/attention/capabilities/preparation.h"
#include "heed/analysis/scaling.h"

#include "heed/base/math.h"
#include "heed/base/with_threads.h"
#include "heed/ops/attention.h"
#include "heed/analysis/resident_memory.h"

#include <ctime>

namespace heed {

namespace {

constexpr std::size_t least_runs = 3;

/// Returns the CPU time of the calling thread.
double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Tensor<float> normal_tensor(const Shape& shape, const RandomStream& random) {
  Tensor<float> tensor(shape);
  for (Index i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<float>(random.normal(i));
  return tensor;
}

/// A mechanism with operands: the output of a qkv projection, and d(loss)/d(out).
class Subject {
 public:
  Subject(const Mechanism& mechanism, const AttentionLayout& layout, const AttentionShape& shape)
      : mechanism_(mechanism),
        layout_(layout),
        shape_(shape),
        parameters_(list_of(mechanism, shape)),
        gradients_(parameters_),
        noise_(noise_shape(mechanism, shape)),
        x_(normal_tensor({1, shape.queries, layout.total()}, RandomStream(1))),
        dout_(normal_tensor({1, shape.queries, layout.heads * layout.value_width}, RandomStream(2))) {
    parameters_.initialise(1);
  }

  void infer(Tape<float>& tape) {
    tape.clear({.parameters = &parameters_});
    run(tape, tape.constant(std::as_const(x_).view()));
  }
  Var<float> record(Tape<float>& tape) {
    gradients_.reset();
    tape.clear({.parameters = &parameters_, .gradients = &gradients_, .training = true});
    const Var<float> out = run(tape, tape.input(std::as_const(x_).view()));
    tape.start_backward(out, dout_.view());  // as in a model, dout is on the tape before the mechanism's backward pass
    return out;
  }

  /// Returns the size in bytes of the memory outside the tape. It includes the saved memory only without gradients;
  /// with gradients, the saved memory is on the tape.
  Index own_bytes(bool with_gradients) const {
    const AttentionMemorySize size = mechanism_.memory(shape_);
    const Index numbers = size.scratch + parameters_.size() + (with_gradients ? gradients_.size() : size.saved);
    return numbers * static_cast<Index>(sizeof(float));
  }

 private:
  static ParameterList list_of(const Mechanism& mechanism, const AttentionShape& shape) {
    ParameterList list;
    for (ParameterSpec& spec : mechanism.parameters(shape)) list.add(std::move(spec));
    return list;
  }

  Var<float> run(Tape<float>& tape, Var<float> x) {
    std::vector<Var<float>> own;
    for (ParameterId id = 0; id < parameters_.list().size(); ++id) own.push_back(tape.parameter(id));
    return attention<float>(mechanism_, packed_operands(x, layout_), layout_, shape_, own,
                            std::as_const(noise_).view());
  }

  const Mechanism& mechanism_;
  AttentionLayout layout_;
  AttentionShape shape_;
  Parameters<float> parameters_;
  Gradients<float> gradients_;
  Tensor<float> noise_, x_, dout_;
};

/// Runs `prepare`, then `timed` on its result: once to measure memory, then repeatedly to measure the time of `timed`.
template <class Prepare, class Timed>
ScalingPass measure_pass(Index own_bytes, double seconds, Index resident, const Prepare& prepare, const Timed& timed) {
  ScalingPass pass;
  Tape<float> tape;
  const bool peak_known = reset_peak_resident();
  timed(tape, prepare(tape));
  if (peak_known) pass.resident = peak_resident_bytes() - resident;
  pass.bytes = tape.reserved() + own_bytes;
  const double start = thread_seconds();
  while (thread_seconds() - start < seconds || pass.times.size() < least_runs) {
    const auto prepared = prepare(tape);
    const double call = thread_seconds();
    timed(tape, prepared);
    pass.times.push_back(thread_seconds() - call);
  }
  std::sort(pass.times.begin(), pass.times.end());
  return pass;
}

}  // namespace

AttentionShape scaling_shape(const Mechanism& mechanism, Index dim, Index heads, Index tokens) {
  AttentionShape shape = mechanism.layout(dim, heads).among(tokens, {});
  for (Index height = 1; height * height <= tokens; ++height)
    if (tokens % height == 0) shape.grid_height = height;
  shape.grid_width = tokens / shape.grid_height;
  return shape;
}

double scaling_bytes(const Mechanism& mechanism, Index dim, Index heads, Index tokens) {
  const AttentionLayout layout = mechanism.layout(dim, heads);
  const AttentionShape shape = scaling_shape(mechanism, dim, heads, tokens);
  // q, k, v, out and their gradients; mechanism parameters, prepared tensors and their gradients; saved and scratch
  // memory; a partial sum of the parameters' gradients, if there are several parameter tensors and no prepared tensors.
  const Index row = 2 * (layout.total() + layout.heads * layout.value_width);
  const AttentionMemorySize size = mechanism.memory(shape);
  const std::vector<ParameterSpec> own = mechanism.parameters(shape);
  const bool sums = size.prepared == 0 && own.size() > 1;
  Index numbers = tokens * row + 2 * size.prepared + size.saved + size.scratch;
  for (const ParameterSpec& spec : own) numbers += (sums ? 3 : 2) * spec.shape.elements();
  return sizeof(float) * static_cast<double>(numbers);
}

ScalingSize measure_scaling(const Mechanism& mechanism, Index dim, Index heads, Index tokens, double seconds,
                            Index resident) {
  const WithThreads one(1);  // operations of a composed mechanism would use all threads
  const AttentionShape shape = scaling_shape(mechanism, dim, heads, tokens);
  mechanism.check(shape);
  Subject subject(mechanism, mechanism.layout(dim, heads), shape);
  ScalingSize size{tokens};
  size.forward = measure_pass(
      subject.own_bytes(false), seconds, resident, [](Tape<float>&) { return 0; },
      [&](Tape<float>& tape, int) { subject.infer(tape); });
  size.backward = measure_pass(
      subject.own_bytes(true), seconds, resident, [&](Tape<float>& tape) { return subject.record(tape); },
      [](Tape<float>& tape, Var<float>) { tape.finish_backward(); });
  return size;
}

std::optional<double> fitted_exponent(const std::vector<std::pair<double, double>>& points) {
  if (points.size() < 2) return {};
  const double count = static_cast<double>(points.size());
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (const auto& [x, y] : points) mean_x += math::log(x) / count, mean_y += math::log(y) / count;
  for (const auto& [x, y] : points) {
    xx += (math::log(x) - mean_x) * (math::log(x) - mean_x);
    xy += (math::log(x) - mean_x) * (math::log(y) - mean_y);
  }
  return xy / xx;
}

}  // namespace heed
