#include "heed/kernels/sums/exp_sums.h"

#ifndef HEED_NO_SIMD

#include "src/kernels/shared/channel_blocks.h"

namespace heed::kernels {

using namespace simd;

namespace {

template <bool biased>
void sums_of(KeysAndValues<const float> keys, [[maybe_unused]] const float* bias, ExpSums<float> sums) {
  const Exp exp;
  const auto add_bias = [&](Vector x, Index s) {
    if constexpr (biased) return hn::Add(x, set(bias[s]));
    return x;
  };
  for_each_block(keys.k.columns, [=](Index first, auto count, auto use) {
    Vector scale[count], mass[count], value[count];
    for (Index s = 0; s < keys.k.rows; ++s)
      for (int i = 0; i < count; ++i) {
        const Vector x = add_bias(use.load(keys.k[s] + first + i * lanes), s);
        scale[i] = s == 0 ? x : hn::Max(scale[i], x);
      }
    for (int i = 0; i < count; ++i) mass[i] = value[i] = hn::Zero(tag);
    const auto sum = [&](const auto& exponent) {
      for (Index s = 0; s < keys.k.rows; ++s)
        for (int i = 0; i < count; ++i) {
          const Vector e = exp.below_88(exponent(use.load(keys.k[s] + first + i * lanes), scale[i], s));
          mass[i] = hn::Add(mass[i], e);
          value[i] = hn::MulAdd(e, use.load(keys.v[s] + first + i * lanes), value[i]);
        }
    };
    const auto fine = [&](Vector k, Vector scale, Index s) { return add_bias(hn::Sub(k, scale), s); };
    const auto is_fine = [](Vector scale) { return hn::Lt(hn::Abs(scale), set(coarse<float>)); };
    bool all_fine = true;
    for (int i = 0; i < count && biased; ++i) all_fine &= hn::AllTrue(tag, is_fine(scale[i]));
    if (all_fine)
      sum(fine);
    else
      sum([&](Vector k, Vector scale, Index s) {
        return hn::IfThenElse(is_fine(scale), fine(k, scale, s), hn::Sub(add_bias(k, s), scale));
      });
    for (int i = 0; i < count; ++i) {
      const Index c = first + i * lanes;
      use.store(scale[i], sums.scale.data + c), use.store(mass[i], sums.mass.data + c);
      use.store(value[i], sums.value.data + c);
    }
  });
}

}  // namespace

void exp_sums_of(KeysAndValues<const float> keys, const float* bias, ExpSums<float> sums) {
  const auto of = bias ? sums_of<true> : sums_of<false>;
  of(keys, bias, sums);
}

void exp_sums_at_key(KeysAndValues<const float> key, ExpSums<const float> queries, Update update,
                     KeysAndValues<float> gradient, const float* origin) {
  const Exp exp;
  const float *const k = key.k.data, *const v = key.v.data;
  const float *const scale = queries.scale.data, *const mass = queries.mass.data, *const value = queries.value.data;
  float *const dk = gradient.k.data, *const dv = gradient.v.data;
  for_each_vector(gradient.k.columns, [&](Index c, auto use) {
    const Vector e = exp(hn::Add(use.load(k + c), use.load(scale + c))), weight = use.load(mass + c);
    const Vector distance = origin ? hn::Sub(use.load(v + c), use.load(origin + c)) : use.load(v + c);
    write(update, use, hn::Mul(e, weight), dv + c);
    write(update, use, hn::Mul(e, hn::Sub(hn::Mul(distance, weight), use.load(value + c))), dk + c);
  });
}

void exp_of_columns(KeysAndValues<const float> keys, float* maximum, Matrix<float> f, const float* origin) {
  const Exp exp;
  const Index n = keys.k.columns;
  for_each_block(n, [=](Index first, auto count, auto use) {
    Vector largest[count];
    for (int i = 0; i < count; ++i) largest[i] = use.load(keys.k[0] + first + i * lanes);
    for (Index s = 1; s < keys.k.rows; ++s)
      for (int i = 0; i < count; ++i) largest[i] = hn::Max(largest[i], use.load(keys.k[s] + first + i * lanes));
    for (Index s = 0; s < keys.k.rows; ++s)
      for (int i = 0; i < count; ++i) {
        const Index c = first + i * lanes;
        const Vector e = exp.below_88(hn::Sub(use.load(keys.k[s] + c), largest[i]));
        use.store(e, f[s] + c);
        const Vector v = use.load(keys.v[s] + c);
        use.store(hn::Mul(e, origin ? hn::Sub(v, use.load(origin + c)) : v), f[s] + n + c);
      }
    for (int i = 0; i < count; ++i) use.store(largest[i], maximum + first + i * lanes);
  });
}

float exp_of_row(Matrix<const float> x, Index first, Index last, Matrix<float> e) {
  const Exp exp;
  const float* const from = x.data + first;
  float* const to = e.data;
  Vector largest = set(from[0]);
  for_each_vector(last - first,
                  [&](Index s, auto use) { largest = use.otherwise(hn::Max(largest, use.load(from + s)), largest); });
  // Avoids simd::maximum(), whose intrinsic GCC 12 warns about outside of loops.
  HWY_ALIGN float of_lanes[lanes];
  hn::Store(largest, tag, of_lanes);
  const float greatest = *std::max_element(of_lanes, of_lanes + lanes);
  std::fill(to, to + first, 0.0f);
  for_each_vector(last - first, [&](Index s, auto use) {
    use.store(exp.below_88(hn::Sub(use.load(from + s), set(greatest))), to + first + s);
  });
  std::fill(to + last, to + e.columns, 0.0f);
  return greatest;
}

}  // namespace heed::kernels

#endif
