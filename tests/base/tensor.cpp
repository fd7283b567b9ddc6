// Basics: shapes, tensors, random streams and parallel loops.
#include "heed/base/parallel.h"
#include "heed/base/random.h"
#include "heed/base/tensor.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <vector>

using namespace heed;

BOOST_AUTO_TEST_SUITE(foundation)

BOOST_AUTO_TEST_CASE(shape_counts_elements_and_rows) {
  const Shape shape{2, 3, 5};
  BOOST_TEST(shape.elements() == 30);
  BOOST_TEST(shape.rows() == 6);
  BOOST_TEST(shape[-1] == 5);
  BOOST_TEST(to_string(shape) == "[2, 3, 5]");
  BOOST_TEST(Shape{}.elements() == 1);
  BOOST_TEST((Shape{2, 3} == Shape{2, 3}));
  BOOST_TEST(!(Shape{2, 3} == Shape{3, 2}));
  BOOST_TEST(!(Shape{2, 3} == Shape{2, 3, 1}));
  BOOST_CHECK_THROW(Shape({1, -2}), Error);
}

BOOST_AUTO_TEST_CASE(shapes_that_cannot_be_are_named) {
  BOOST_TEST(error_of([] { Shape({3, -2}); }) == "[tensor] axis 1 has size -2; sizes must not be negative");
  BOOST_TEST(error_of([] { Shape({1, 2, 3, 4, 5, 6, 7}); }) == "[tensor] a shape has 7 axes; at most 6 are supported");
  BOOST_TEST(error_of([] {
               Tensor<float>(Shape{2, 1}, {1, 2, 3});
             }) == "[tensor] shape [2, 1] has 2 elements, found 3 values");
  for (const Shape& empty : {Shape{0, 3}, Shape{3, 0}}) BOOST_TEST((empty.rows() == 0 && empty.elements() == 0));
}

BOOST_AUTO_TEST_CASE(parts_of_a_view) {
  Tensor<int> x(Shape{4, 3});
  for (Index i = 0; i < 12; ++i) x[i] = static_cast<int>(i);
  const View<int> part = x.view().part(1, 2);
  BOOST_TEST(to_string(part.shape()) == "[2, 3]");
  BOOST_TEST(part[0] == 3);
  BOOST_TEST(*(part.end() - 1) == 8);
  BOOST_TEST(View<int>(nullptr, Shape{4, 3}).part(2, 1).data() == nullptr);  // a view without memory
}

BOOST_AUTO_TEST_CASE(tensor_is_aligned_zeroed_and_copies_deeply) {
  Tensor<float> a(Shape{3, 7});
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(a.data()) % alignment == 0u);
  for (const float x : a) BOOST_TEST(x == 0.0f);
  Tensor<float> b = a;
  b[4] = 1;
  BOOST_TEST(a[4] == 0.0f);
  BOOST_CHECK_THROW((Tensor<double>(Shape{2}, {1.0, 2.0, 3.0})), Error);
}

BOOST_AUTO_TEST_CASE(random_numbers_depend_on_seed_stream_and_index_only) {
  const RandomStream a = RandomStream(7).derive("dropout").derive(3);
  BOOST_TEST(a.bits(5) == RandomStream(7).derive("dropout").derive(3).bits(5));
  BOOST_TEST(a.bits(5) != RandomStream(8).derive("dropout").derive(3).bits(5));
  BOOST_TEST(a.bits(5) != RandomStream(7).derive("dropout").derive(4).bits(5));
  BOOST_TEST(a.bits(5) != a.bits(6));
}

// Over n = 100,000 draws, the mean of U(0,1) has a standard deviation of 0.00091 and that of N(0,1) one of 0.0032; the
// bounds are five standard deviations. The variance of N(0,1) has a standard deviation of sqrt(2/n) = 0.0045.
BOOST_AUTO_TEST_CASE(random_moments) {
  const RandomStream stream(1);
  const Index n = 100'000;
  double uniform = 0, normal = 0, square = 0;
  for (Index i = 0; i < n; ++i) {
    uniform += stream.uniform(i);
    const double z = stream.derive(1).normal(i);
    normal += z;
    square += z * z;
    const Index k = stream.derive(2).below(i, 7);
    BOOST_REQUIRE(k >= 0 && k < 7);
  }
  BOOST_TEST(std::abs(uniform / n - 0.5) < 0.0046);
  BOOST_TEST(std::abs(normal / n) < 0.016);
  BOOST_TEST(std::abs(square / n - 1) < 0.023);
}

BOOST_AUTO_TEST_CASE(parallel_for_passes_on_the_first_error) {
  set_threads(2);
  try {
    parallel_for(8, [](Index i) { require(i < 3, "piece {}", i); });
    BOOST_ERROR("nothing was thrown");
  } catch (const Error& error) {
    BOOST_TEST(error.what() == std::string("piece 3"));
  }
}

BOOST_AUTO_TEST_CASE(ranges_cover_everything_once) {
  for (const Index size : {0, 1, 5, 64, 1000}) {
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(size));
    parallel_ranges(size, 3, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    for (const auto& count : visits) BOOST_TEST(count.load() == 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
