// Bicubic interpolation compared with PyTorch's, and properties for any grid.
#include "heed/kernels/grids/bicubic.h"

#include "heed/base/random.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace heed;

namespace {

template <class T = double>
std::vector<T> resized(Index height, Index width, Index channels, const std::vector<T>& x, Index to_height,
                       Index to_width) {
  std::vector<T> y(static_cast<std::size_t>(to_height * to_width * channels));
  kernels::bicubic({height, width}, Matrix(x.data(), height * width, channels), {to_height, to_width},
                   Matrix(y.data(), to_height * to_width, channels));
  return y;
}

void check_near(const std::vector<double>& got, const std::vector<double>& expected) {
  BOOST_REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    BOOST_TEST(std::abs(got[i] - expected[i]) <= 1e-12 * 17,
               "element " << i << ": got " << got[i] << ", expected " << expected[i]);  // inputs reach 16
}

std::vector<double> random_grid(Index size) {
  std::vector<double> x(static_cast<std::size_t>(size));
  for (Index i = 0; i < size; ++i) x[static_cast<std::size_t>(i)] = RandomStream(1).uniform(i, -1, 1);
  return x;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bicubic)

// torch.nn.functional.interpolate(x, size, mode="bicubic", align_corners=False) of PyTorch 1.13 in double.
BOOST_AUTO_TEST_CASE(as_pytorch_does) {
  const std::vector<double> x{5, 16, 10, 4, 12, 9, 6, 3, 16, 16, 16, 16};
  check_near(resized(3, 4, 1, x, 5, 3),
             {6.208759259259259, 15.274749999999992, 4.889277777777771, 8.283819444444436, 11.22937499999999,
              3.31334722222221, 11.621527777777777, 7.5, 3.37847222222222, 14.656736111111108, 12.191249999999997,
              11.003597222222213, 16.420333333333343, 16.816000000000003, 17.211666666666673});
  const std::vector<double> square{5, 16, 10, 12, 9, 6, 16, 16, 16};
  check_near(resized(3, 3, 1, square, 2, 2),
             {8.385726928710938, 10.242965698242188, 15.094528198242188, 13.682647705078125});
  check_near(resized(3, 3, 1, square, 5, 5), {3.1429759999999938,
                                              9.570207999999987,
                                              16.671999999999993,
                                              13.712511999999991,
                                              9.780351999999997,
                                              6.914207999999985,
                                              9.868319999999985,
                                              12.779999999999989,
                                              10.07351999999999,
                                              7.243007999999993,
                                              12.287999999999993,
                                              11.051999999999996,
                                              9.0,
                                              6.948000000000002,
                                              5.7120000000000015,
                                              15.160511999999986,
                                              14.177519999999985,
                                              12.779999999999998,
                                              12.043439999999997,
                                              11.740991999999997,
                                              16.356351999999998,
                                              16.47500799999999,
                                              16.672000000000004,
                                              16.868992000000006,
                                              16.987648000000007});
}

BOOST_AUTO_TEST_CASE(the_same_size_is_the_same_grid) {
  const std::vector<double> x = random_grid(5 * 7 * 3);
  BOOST_TEST(resized(5, 7, 3, x, 5, 7) == x, boost::test_tools::per_element());
  const std::vector<float> rounded(x.begin(), x.end());
  BOOST_TEST(resized(5, 7, 3, rounded, 5, 7) == rounded, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(constants_stay_and_a_single_cell_fills_the_grid) {
  for (const auto& [from, to] : {std::pair<Index, Index>{7, 14}, {7, 3}, {4, 9}, {1, 5}}) {
    std::vector<double> x, expected;
    for (Index i = 0; i < from * from; ++i) x.insert(x.end(), {3, -8});
    for (Index i = 0; i < to * to; ++i) expected.insert(expected.end(), {3, -8});
    check_near(resized(from, from, 2, x, to, to), expected);
  }
}

// Between two cells, a = -3/4 reproduces a ramp only at the midpoint; the centres of a halved grid are such midpoints.
BOOST_AUTO_TEST_CASE(a_halved_ramp_is_a_ramp_away_from_the_edges) {
  std::vector<double> x;
  for (Index i = 0; i < 10; ++i)
    for (Index j = 0; j < 12; ++j) x.push_back(static_cast<double>(3 * i - 2 * j));
  const std::vector<double> y = resized(10, 12, 1, x, 5, 6);
  for (Index i = 1; i < 4; ++i)
    for (Index j = 1; j < 5; ++j) {
      const double expected = 3 * (2 * static_cast<double>(i) + 0.5) - 2 * (2 * static_cast<double>(j) + 0.5);
      BOOST_TEST(std::abs(y[static_cast<std::size_t>(i * 6 + j)] - expected) < 1e-12);
    }
}

// Channels, rows and columns are independent: channel c of a result depends on channel c only, and a transposed grid
// gives the transposed result.
BOOST_AUTO_TEST_CASE(axes_and_channels_are_apart) {
  const std::vector<double> x = random_grid(3 * 4 * 2);
  const std::vector<double> y = resized(3, 4, 2, x, 5, 7);
  for (Index c = 0; c < 2; ++c) {
    std::vector<double> turned(12);
    for (Index i = 0; i < 3; ++i)
      for (Index j = 0; j < 4; ++j)
        turned[static_cast<std::size_t>(j * 3 + i)] = x[static_cast<std::size_t>((i * 4 + j) * 2 + c)];
    const std::vector<double> back = resized(4, 3, 1, turned, 7, 5);
    for (Index i = 0; i < 5; ++i)
      for (Index j = 0; j < 7; ++j)
        BOOST_TEST(std::abs(back[static_cast<std::size_t>(j * 5 + i)] -
                            y[static_cast<std::size_t>((i * 7 + j) * 2 + c)]) < 1e-14);
  }
}

// From two cells, at 0 and 1, to four, with centres at -1/4, 1/4, 3/4 and 5/4.
BOOST_AUTO_TEST_CASE(bilinear_by_hand) {
  const std::vector<double> x{1, 5};
  std::vector<double> y(4);
  kernels::bilinear({1, 2}, Matrix(x.data(), 2, 1), {1, 4}, Matrix(y.data(), 4, 1));
  check_near(y, {1, 2, 4, 5});
  const std::vector<double> grid = random_grid(9 * 2);
  std::vector<double> same(18);
  kernels::bilinear({3, 3}, Matrix(grid.data(), 9, 2), {3, 3}, Matrix(same.data(), 9, 2));
  check_near(same, grid);
}

// torch.nn.functional.interpolate(x, size, mode="bicubic", antialias=True) of PyTorch 1.13, in double: x_i = i^2 / 10.
BOOST_AUTO_TEST_CASE(antialiased_as_pytorch_does) {
  std::vector<double> x;
  for (int i = 0; i < 25; ++i) x.push_back(i * i / 10.0);
  std::vector<double> small(6), large(42);
  kernels::bicubic_antialiased({5, 5}, Matrix<const double>(x.data(), 25, 1), {2, 3}, Matrix(small.data(), 6, 1));
  const std::vector<double> expected{3.157928528164754,  4.970928797319573,  7.295628529801763,
                                     26.831417159133693, 32.408255888189956, 38.49679408057361};
  for (std::size_t i = 0; i < 6; ++i) BOOST_TEST(std::abs(small[i] - expected[i]) < 1e-12);
  kernels::bicubic_antialiased({5, 5}, Matrix<const double>(x.data(), 25, 1), {7, 6}, Matrix(large.data(), 42, 1));
  const std::vector<double> row{-0.14717208574965757, -0.12973393611502215, 0.012830366774542173,
                                0.29762001078748745,  0.7520269769510126,   1.2450478920961765};
  for (std::size_t i = 0; i < 6; ++i) BOOST_TEST(std::abs(large[i] - row[i]) < 1e-12);
  BOOST_TEST(std::abs(large[41] - 59.02806737473122) < 1e-12);
}

BOOST_AUTO_TEST_SUITE_END()
