// Adder attention: values by hand, extreme inputs. Gradients, costs and agreement of number types are checked for every
// mechanism in tests/checks/cases.cpp.
#include "heed/attention/adder.h"

#include "heed/ops/attention.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <vector>

using namespace heed;

namespace {

/// out, the gradients of q, k, v for a cotangent of ones, and the map, for one image and one head.
template <class T>
struct Result {
  std::vector<T> out, dq, dk, dv, map;
};

template <class T>
Result<T> run(const Adder& adder, Index tokens, Index d, const std::vector<double>& q, const std::vector<double>& k,
              const std::vector<double>& v, const std::vector<double>& cotangent) {
  const Shape shape{1, 1, tokens, d};
  const auto tensor = [&](const std::vector<double>& values) {
    Tensor<T> t(shape);
    for (Index i = 0; i < t.size(); ++i) t[i] = static_cast<T>(values[static_cast<std::size_t>(i)]);
    return t;
  };
  const Tensor<T> tq = tensor(q), tk = tensor(k), tv = tensor(v), dout = tensor(cotangent);
  Tape<T> tape;
  const Var<T> vq = tape.input(tq.view()), vk = tape.input(tk.view()), vv = tape.input(tv.view());
  const Var<T> out = attention(adder, vq, vk, vv, {});
  tape.backward(out, dout.view());
  const auto list = [](View<const T> values) { return std::vector<T>(values.begin(), values.end()); };
  Result<T> result{list(out.value()), list(tape.gradient(vq)), list(tape.gradient(vk)), list(tape.gradient(vv)),
                   std::vector<T>(static_cast<std::size_t>(tokens * tokens))};
  const auto heads = [=](const Tensor<T>& t) { return Heads<const T>{t.data(), 1, tokens, d, d, tokens * d}; };
  AttentionShape sizes;
  sizes.queries = sizes.keys = tokens;
  sizes.width = sizes.value_width = d;
  adder.run_map(AttentionInput<T>{sizes, heads(tq), heads(tk), heads(tv)}, result.map.data());
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(adder_attention)

// One channel, two tokens at distance ln 3 sqrt(d_a): each token attends to itself with weight 3/4.
BOOST_AUTO_TEST_CASE(values_by_hand) {
  const double scale = 1 / std::sqrt(2 * (1 - 2 / std::acos(-1.0))), gap = std::log(3.0) / scale;
  Adder adder;
  const auto with = run<double>(adder, 2, 1, {0, gap}, {0, gap}, {4, 8}, {1, 0});
  const std::vector<double> map{1.75, 0.25, 0.25, 1.75}, out{5 + 4, 7 + 8};
  BOOST_TEST(with.map == map, boost::test_tools::tolerance(1e-14) << boost::test_tools::per_element());
  BOOST_TEST(with.out == out, boost::test_tools::tolerance(1e-14) << boost::test_tools::per_element());
  // d out_0 / d s_01 = 3/16 (8 - 4); s_01 grows as q_0 moves towards k_1. s_00 sits at the kink, where sign is 0.
  const std::vector<double> dq{0.75 * scale, 0}, dk{0, -0.75 * scale}, dv{1.75, 0.25};
  BOOST_TEST(with.dq == dq, boost::test_tools::tolerance(1e-14) << boost::test_tools::per_element());
  BOOST_TEST(with.dk == dk, boost::test_tools::tolerance(1e-14) << boost::test_tools::per_element());
  BOOST_TEST(with.dv == dv, boost::test_tools::tolerance(1e-14) << boost::test_tools::per_element());

  adder.identity = false;
  const auto without = run<double>(adder, 2, 1, {0, gap}, {0, gap}, {4, 8}, {1, 0});
  BOOST_TEST(without.out[0] == 5, boost::test_tools::tolerance(1e-14));
  BOOST_TEST(without.map[0] == 0.75, boost::test_tools::tolerance(1e-14));
  BOOST_TEST(without.dv[0] == 0.75, boost::test_tools::tolerance(1e-14));
}

BOOST_AUTO_TEST_CASE(hardtanh_is_sign_beyond_one_and_the_difference_within) {
  Adder adder;
  adder.score_grad = DistanceGradient::hardtanh;
  Adder sign;
  const std::vector<double> q{0.25, -3}, v{1, 2}, dout{1, -2};
  const std::vector<double> far{4, 6}, near{0, 0.5};
  BOOST_TEST(run<double>(adder, 2, 1, q, far, v, dout).dq == run<double>(sign, 2, 1, q, far, v, dout).dq,
             boost::test_tools::per_element());
  const double with = run<double>(adder, 2, 1, q, near, v, dout).dq[0];
  const double signs = run<double>(sign, 2, 1, q, near, v, dout).dq[0];
  BOOST_TEST(with == 0.25 * signs, boost::test_tools::tolerance(1e-12));
}

// Scores of 1e4 and 1e6: softmax subtracts the maximum, so nothing overflows; a row then attends to its nearest key.
// A scaled score of 2 size is rounded by up to 6e-8 of itself before the maximum is subtracted from it, which moves the
// weights of two keys that are nearly tied by as much; values and cotangents multiply that by up to 4.
BOOST_AUTO_TEST_CASE(far_apart_tokens) {
  for (const double size : {1e4, 1e6}) {
    const std::vector<double> q{-size, size, 0.5, 2}, k{size, size, -size, -size}, v{1, 2, 3, 4}, dout{1, -1, 2, 0.5};
    const Adder adder;
    const auto in_float = run<float>(adder, 2, 2, q, k, v, dout);
    const auto in_double = run<double>(adder, 2, 2, q, k, v, dout);
    const double bound = 1e-5 + 4 * 2 * 6e-8 * 2 * size;
    const auto compare = [bound](const std::vector<float>& a, const std::vector<double>& b) {
      for (std::size_t i = 0; i < b.size(); ++i) {
        BOOST_TEST(std::isfinite(a[i]));
        BOOST_TEST(std::abs(static_cast<double>(a[i]) - b[i]) <= bound);
      }
    };
    compare(in_float.map, in_double.map);
    compare(in_float.out, in_double.out);
    compare(in_float.dv, in_double.dv);
  }
}

// Every distance is zero: a uniform map, and no gradient by q and k.
BOOST_AUTO_TEST_CASE(identical_tokens) {
  const std::vector<double> same{7, 7, 7}, zero{0, 0, 0};
  const auto result = run<double>(Adder{}, 3, 1, same, same, {1, 2, 6}, {1, 2, 3});
  for (int i = 0; i < 9; ++i) BOOST_TEST(result.map[static_cast<std::size_t>(i)] == 1.0 / 3 + (i % 4 == 0));
  BOOST_TEST(result.dq == zero, boost::test_tools::per_element());
  BOOST_TEST(result.dk == zero, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(refusals_say_why) {
  AttentionShape cross;
  cross.queries = 4, cross.keys = 5;
  Adder adder;
  BOOST_CHECK_EXCEPTION(adder.check(cross), Error, [](const Error& e) {
    return std::string(e.what()) == "[adder] identity = true needs as many keys as queries, not 5 and 4";
  });
  adder.identity = false;
  BOOST_CHECK_NO_THROW(adder.check(cross));
}

// At N = 4096 neither N x N nor N x N x d may be needed.
BOOST_AUTO_TEST_CASE(memory_is_linear_in_the_number_of_tokens) {
  AttentionShape shape;
  shape.heads = 3, shape.queries = shape.keys = 4096, shape.width = shape.value_width = 64;
  const Adder adder;
  BOOST_TEST(adder.saved(shape) == 2 * 3 * 4096);
  BOOST_TEST(adder.scratch(shape) == 2 * 64 * 4096);
}

BOOST_AUTO_TEST_SUITE_END()
