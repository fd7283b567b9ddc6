#include "heed/ops/dropout.h"

#include "heed/cost/for_each_number.h"

namespace heed {

namespace {

/// Elements [begin, end) of a tensor, and the position of their first group in the random stream.
struct DropRange {
  Index begin, end, draw;
};

/// Calls f(range) for ranges that cover x. Group g of an image uses the random number at position (image * groups per
/// image + g), with images numbered in the whole batch: results do not depend on the division into microbatches. A
/// group is `group` elements, or a whole image if `group` is 0. A sequence counts as an image of the maximum length.
template <class T, class F>
void for_drop_ranges(Var<T> x, Index first_image, Index group, const F& f) {
  const Pass<T>& pass = x.tape().pass();
  const Index n = x.size(), width = x.shape().row_size();
  if (const Segments* const s = pass.examples.segments) {
    for (Index i = 0; i < s->count(); ++i)
      f(DropRange{s->start(i) * width, s->start(i + 1) * width,
                  (s->first + i) * (group == 0 ? 1 : s->longest * width / group)});
    return;
  }
  const Index images = x.shape().rank() == 0 ? 1 : x.shape()[0], image = images == 0 ? 0 : n / images;
  for (Index i = 0; i < images; ++i)
    f(DropRange{i * image, (i + 1) * image, (first_image + i) * (group == 0 ? 1 : image / group)});
}

/// Multiplies groups of `group` neighbouring elements, or whole images if `group` is 0, by 0 with probability `rate`,
/// otherwise by 1 / (1 - rate).
template <class T>
Var<T> drop(const char* name, Var<T> x, double rate, std::uint64_t place, Index group) {
  Tape<T>& tape = tape_of(name, x);
  require(rate >= 0 && rate < 1, "[{}] the rate is {}; expected 0 <= rate < 1", name, rate);
  if (!tape.draws() || rate == 0) return x;
  const Index n = x.size();
  const RandomStream stream = tape.pass().random.derive(name).derive(place);
  const T scale(1 / (1 - rate));
  const Index first_image = tape.pass().examples.first;
  const auto apply = [=](const T* from, Update update, T* to) {
    for_drop_ranges(x, first_image, group, [&](const DropRange& range) {
      const Index step = group == 0 ? range.end - range.begin : group;
      for (Index i = range.begin, draw = range.draw; i < range.end; i += step, ++draw) {
        const T factor = stream.uniform(draw) < rate ? T(0) : scale;
        for (Index j = i; j < i + step; ++j) write(update, to[j], factor * from[j]);
      }
    });
  };
  Cost cost;
  cost.forward = cost.backward = {.mul = n};
  return tape.record(
      {name, cost}, x.shape(), {x}, [=](T* y) { apply(x.data(), Update::assign, y); },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto dx = tape.target(x)) apply(dy.data(), dx.update, dx.data);
      });
}

}  // namespace

template <class T>
Var<T> dropout(Var<T> x, double rate, std::uint64_t place) {
  return drop("dropout", x, rate, place, 1);
}

template <class T>
Var<T> stochastic_depth(Var<T> x, double rate, std::uint64_t place) {
  return drop("stochastic_depth", x, rate, place, 0);
}

#define INSTANTIATE(T)                                    \
  template Var<T> dropout(Var<T>, double, std::uint64_t); \
  template Var<T> stochastic_depth(Var<T>, double, std::uint64_t);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
