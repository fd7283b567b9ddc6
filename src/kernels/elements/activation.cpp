// Computes gelu and its derivative from functions of t = |x| alone, because Phi(-t) = 1 - Phi(t):
//   gelu(x)  = max(x, 0) - h(t),                        h(t) = t (1 - Phi(t));
//   gelu'(x) = 1 - h'(t) for x > 0, h'(t) otherwise,    h'(t) = 1 - Phi(t) - t exp(-t^2 / 2) / sqrt(2 pi).
// h and h' are approximated by piecewise polynomials.
#include "heed/kernels/elements/activation.h"

#ifndef HEED_NO_SIMD

#include "heed/base/math.h"
#include "heed/kernels/shared/simd.h"

namespace heed::kernels {

using namespace simd;

namespace {

constexpr double density_at_zero = std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2;

/// gelu(x) and h'(|x|).
struct Parts {
  Vector gelu, h_prime;
};

/// The pieces of a piecewise function of t: piece `n` has its centre at n / per_unit, and r = per_unit t - n is in
/// [-1/2, 1/2]. The last piece, t > 14.5 / per_unit = 5.5, is zero; at its start, h and h' are 1e-7 and -6e-7.
class Pieces {
 public:
  static constexpr double per_unit = 14.5 / 5.5;

  struct Place {
    Vector number, r;
  };
  Place operator()(Vector t) const {
    t = at_most_end(t);
    const Vector shifted = hn::MulAdd(t, per_unit_, rounder_);
    return {shifted, hn::MulSub(t, per_unit_, hn::Sub(shifted, rounder_))};
  }

 private:
  /// Returns the lesser of t and end_; NaN if t is NaN. On arm64, hn::Min would return end_ for a NaN.
  Vector at_most_end(Vector t) const {
#if HWY_ARCH_X86
    return hn::Min(end_, t);
#else
    return hn::IfThenElse(hn::Lt(end_, t), end_, t);
#endif
  }

  Vector end_ = constant(5.6f), per_unit_ = constant(per_unit), rounder_ = constant(0x1.8p23f);
};

/// A table of sixteen floats. table[lanes] looks up, for each lane, the element whose index is in the low four bits of
/// the lane.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
class Table {
 public:
  explicit Table(const float* numbers) : all_(hn::Load(tag, numbers)) {}
  Vector operator[](Vector lanes) const {
    return Vector{_mm512_permutexvar_ps(_mm512_castps_si512(lanes.raw), all_.raw)};
  }

 private:
  Vector all_;
};
#elif HWY_TARGET == HWY_AVX2
class Table {
 public:
  explicit Table(const float* numbers) : low_(hn::Load(tag, numbers)), high_(hn::Load(tag, numbers + 8)) {}
  Vector operator[](Vector lanes) const {
    const __m256i places = _mm256_castps_si256(lanes.raw), fourth_bit_first = _mm256_slli_epi32(places, 28);
    return Vector{_mm256_blendv_ps(_mm256_permutevar8x32_ps(low_.raw, places),
                                   _mm256_permutevar8x32_ps(high_.raw, places), _mm256_castsi256_ps(fourth_bit_first))};
  }

 private:
  Vector low_, high_;
};
#else
class Table {
 public:
  explicit Table(const float* numbers) : numbers_(numbers) {}
  Vector operator[](Vector lanes) const {
    return hn::GatherIndex(tag, numbers_, hn::And(hn::BitCast(int_tag, lanes), hn::Set(int_tag, 15)));
  }

 private:
  const float* numbers_;
};
#endif

/// A piecewise approximation: in each piece, the polynomial of degree 5 through the function at the Chebyshev points,
/// shifted to be exact at the centre, so that h(0) = 0. The error up to t = 5.5 is at most 2.9e-8 for h and 6e-8 for
/// h'. For each power, a table has the coefficients of the 16 pieces; the low bits of the piece number select the
/// coefficient of each lane.
class Piecewise {
 public:
  static constexpr int terms = 6;

  template <class F>
  explicit Piecewise(const F& f) {
    for (int piece = 0; piece < 15; ++piece) {
      const auto at = [&](double r) { return f((piece + r) / Pieces::per_unit); };
      double node[terms], c[terms];
      for (int i = 0; i < terms; ++i) node[i] = math::cos((i + 0.5) * std::numbers::pi / terms) / 2, c[i] = at(node[i]);
      // Computes divided differences, then converts them to powers of r.
      for (int order = 1; order < terms; ++order)
        for (int i = terms - 1; i >= order; --i) c[i] = (c[i] - c[i - 1]) / (node[i] - node[i - order]);
      for (int first = terms - 2; first >= 0; --first)
        for (int i = first; i < terms - 1; ++i) c[i] -= node[first] * c[i + 1];
      c[0] = at(0);
      for (int i = 0; i < terms; ++i) coefficients_[i][piece] = static_cast<float>(c[i]);
    }
  }

  /// The coefficients in registers.
  class Loaded {
   public:
    explicit Loaded(const Piecewise& f) : Loaded(f, std::make_integer_sequence<int, terms>{}) {}
    Vector operator()(Pieces::Place place) const {
      Vector sum = c_[terms - 1][place.number];
      for (int i = terms - 2; i >= 0; --i) sum = hn::MulAdd(sum, place.r, c_[i][place.number]);
      return sum;
    }

   private:
    template <int... power>
    Loaded(const Piecewise& f, std::integer_sequence<int, power...>) : c_{Table(f.coefficients_[power])...} {}
    Table c_[terms];
  };

 private:
  alignas(64) float coefficients_[terms][16] = {};
};

double density(double t) { return density_at_zero * math::exp(-t * t / 2); }

/// Returns 1 - Phi(t) = 1/2 - density(t) (t + t^3 / 3 + t^5 / (3 * 5) + ...), with an error of 1e-15 for |t| <= 6.
double upper_tail(double t) {
  double term = t, sum = 0;
  for (int k = 3; std::abs(term) > 1e-20; term *= t * t / k, k += 2) sum += term;
  return 0.5 - density(t) * sum;
}

const Piecewise& h() {
  static const Piecewise h([](double t) { return t * upper_tail(t); });
  return h;
}
const Piecewise& h_prime() {
  static const Piecewise h_prime([](double t) { return upper_tail(t) - t * density(t); });
  return h_prime;
}

class Gelu {
 public:
  Parts operator()(Vector x) const {
    const Pieces::Place place = pieces_(hn::Abs(x));
    return {hn::Sub(hn::Max(x, hn::Zero(tag)), h_(place)), h_prime_(place)};
  }

 private:
  Pieces pieces_;
  Piecewise::Loaded h_{h()}, h_prime_{h_prime()};
};

}  // namespace

void gelu_forward(Index n, const float* x, float* y) {
  const Gelu parts;
  for_each_vector(n, [&](Index i, auto use) { use.store(parts(use.load(x + i)).gelu, y + i); });
}

void gelu_backward(Index n, const float* x, const float* dy, Update update, float* dx, float* y) {
  const Gelu parts;
  const Vector zero = hn::Zero(tag), one = constant(1.0f);
  for_each_vector(n, [&](Index i, auto use) {
    const Vector v = use.load(x + i);
    const auto [gelu, h_prime] = parts(v);
    const Vector factor = hn::IfThenElse(hn::Gt(v, zero), hn::Sub(one, h_prime), h_prime);
    write(update, use, hn::Mul(use.load(dy + i), factor), dx + i);
    if (y) use.store(gelu, y + i);
  });
}

}  // namespace heed::kernels

#endif
