// Differences of two tensors with elements at known distances.
#include "heed/checks/tensor_difference.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

using namespace heed;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

TensorDifference found(const std::vector<double>& a, const std::vector<double>& b, DType type = DType::F64,
                       double tolerance = 0) {
  const Shape shape{static_cast<Index>(a.size())};
  return difference_of(View<const double>(a.data(), shape), View<const double>(b.data(), shape), type, tolerance);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tensor_difference)

BOOST_AUTO_TEST_CASE(units_in_the_last_place_are_those_of_the_type) {
  for (const float x : {1.0f, 1.5f, -3e20f, 0x1p-126f, 0x1p-140f, 0.0f})
    BOOST_TEST(unit_in_last_place(x, DType::F32) == std::nextafter(std::abs(x), 1e30f) - std::abs(x));
  for (const double x : {1.0, 1.75, -3e200, 0x1p-1022, 5e-324})
    BOOST_TEST(unit_in_last_place(x, DType::F64) == std::nextafter(std::abs(x), 1e300) - std::abs(x));
  BOOST_TEST(unit_in_last_place(1, DType::F16) == 0x1p-10);
  BOOST_TEST(unit_in_last_place(0, DType::F16) == 0x1p-24);
  BOOST_TEST(unit_in_last_place(0x1p-15, DType::F16) == 0x1p-24);
  BOOST_TEST(unit_in_last_place(1, DType::BF16) == 0x1p-7);
  BOOST_TEST(unit_in_last_place(0, DType::BF16) == 0x1p-133);
  BOOST_TEST(unit_in_last_place(1, DType::I64) == 0x1p-52);
  BOOST_TEST((coarser(DType::F32, DType::F64) == DType::F32 && coarser(DType::F16, DType::BF16) == DType::BF16));
  BOOST_TEST((coarser(DType::I64, DType::F32) == DType::F32));
}

BOOST_AUTO_TEST_CASE(the_first_and_the_worst_element_are_named) {
  const TensorDifference d = found({4, 1, 2, 0.25}, {4, 1 + 0x1p-22, 2, 0.5}, DType::F32);
  BOOST_TEST(d.elements == 4);
  BOOST_TEST(d.unequal == 2);
  BOOST_TEST(d.beyond == 2);
  BOOST_TEST(d.first->element == 1);
  BOOST_TEST(d.first->ulps == 2.0);
  BOOST_TEST(d.first->absolute == 0x1p-22);
  BOOST_TEST(d.worst->element == 3);
  BOOST_TEST(d.worst->relative == 0.5);
  BOOST_TEST(d.largest == 4.0);
  BOOST_TEST(!d.rounding);
  BOOST_TEST(found({4, 1}, {4, 1 + 0x1p-22}, DType::F32).rounding);
  BOOST_TEST(!found({4, 1}, {4, 1 + 0x1p-22}, DType::F64).rounding);
  BOOST_TEST(found({4, 1}, {4, 1 + 0x1p-22}, DType::F32, 1e-6).beyond == 0);
  BOOST_TEST(found({4, 1}, {4, 1 + 0x1p-7}, DType::BF16).rounding);
  BOOST_TEST(!found({4, 1}, {4, 2}, DType::BF16).rounding);
  BOOST_TEST(!found({4, 1}, {4, 1.5}, DType::F16).rounding);
}

// The comparison is symmetric: differences from A to B and from B to A agree.
BOOST_AUTO_TEST_CASE(the_largest_element_may_be_in_either) {
  const std::vector<double> a{1, 0, -2}, b{-1000, 1e-3, -2};
  for (const auto& [one, other] : {std::pair(a, b), {b, a}}) {
    const TensorDifference d = found(one, other, DType::F64, 2e-3);
    BOOST_TEST(d.largest == 1000.0);
    BOOST_TEST(d.beyond == 1);
    BOOST_TEST(d.worst->element == 0);
    BOOST_TEST(d.worst->relative == 1.001);
  }
}

// Small elements are compared relative to 1e-3 of the tensor's largest element.
BOOST_AUTO_TEST_CASE(small_elements_have_a_floor) {
  BOOST_TEST(found({1000, 0}, {1000, 1e-3}).worst->relative == 1e-3);
  BOOST_TEST(found({1e-9, 0}, {1e-9, 1e-9}).worst->relative == 1.0);
}

BOOST_AUTO_TEST_CASE(zeros_nan_and_infinity) {
  const TensorDifference zeros = found({0.0, 1}, {-0.0, 1});
  BOOST_TEST(zeros.unequal == 1);
  BOOST_TEST(zeros.beyond == 0);
  BOOST_TEST(!zeros.worst.has_value());
  BOOST_TEST(found({not_a_number, infinite}, {not_a_number, infinite}).unequal == 0);
  BOOST_TEST(found({not_a_number, 1}, {-not_a_number, 1}).beyond == 0);
  for (const auto& [a, b] : std::vector<std::pair<double, double>>{
           {not_a_number, 1}, {1, not_a_number}, {infinite, 1}, {infinite, -infinite}, {not_a_number, infinite}}) {
    const TensorDifference d = found({2, a}, {2, b}, DType::F64, 1e9);
    BOOST_TEST(d.first->element == 1);
    BOOST_TEST(d.worst->relative == infinite);
    BOOST_TEST(d.largest == 2.0);
    BOOST_TEST(!d.rounding);
  }
}

// The bound is a thousand units in the last place of 1 or, for types that are only stored, four such units. Differences
// up to this bound times the largest element count as rounding.
BOOST_AUTO_TEST_CASE(rounding_errors_by_type) {
  for (const auto& [type, bound] : {std::pair(DType::F16, 4 * 0x1p-10),
                                    {DType::BF16, 4 * 0x1p-7},
                                    {DType::F32, 1000 * 0x1p-23},
                                    {DType::F64, 1000 * 0x1p-52}}) {
    BOOST_TEST(rounding_error(type) == bound);
    BOOST_TEST(found({4, 0}, {4, 3.9 * bound}, type).rounding);
    BOOST_TEST(!found({4, 0}, {4, 4.1 * bound}, type).rounding);
  }
}

BOOST_AUTO_TEST_SUITE_END()
