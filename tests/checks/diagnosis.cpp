// Errors of many kinds, planted in a tensor: each is diagnosed correctly.
#include "heed/checks/diagnosis.h"
#include "heed/base/random.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

const std::vector<std::string> of_heads{"image", "head", "token", "channel"}, of_matrix{"row", "column"};

Tensor<double> drawn(const Shape& shape) {
  Tensor<double> x(shape);
  for (Index i = 0; i < x.size(); ++i) x[i] = RandomStream(7).uniform(i, -1, 1);
  return x;
}

/// Returns the diagnosis of a tensor, by default [2, 3, 5, 4], with elements plant(right elements, index, position).
template <class Plant>
Diagnosis diagnosis_of(const Plant& plant, const Shape& shape = {2, 3, 5, 4},
                       const std::vector<std::string>& axes = of_heads) {
  const Tensor<double> right = drawn(shape);
  Tensor<double> wrong(shape);
  for (Index i = 0; i < wrong.size(); ++i) wrong[i] = plant(right, i, place_of(shape, i));
  return diagnose(std::as_const(wrong).view(), right.view(), axes, {1e-6, 1e-3});
}

using Numbers = Tensor<double>;
using Place = std::vector<Index>;

/// Returns the element of [2, 3, 5, 4] at this position.
double element_at(const Numbers& x, Index image, Index head, Index token, Index channel) {
  return x[((image * 3 + head) * 5 + token) * 4 + channel];
}

void check_found(const Diagnosis& d, ErrorKind kind, const std::string& looks, const std::string& right = "") {
  BOOST_TEST(name_of(d.kind) == name_of(kind));
  BOOST_TEST(d.looks.find(looks) != std::string::npos, "'" << looks << "' is not in '" << d.looks << "'");
  BOOST_TEST(d.right == right);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(diagnosis)

BOOST_AUTO_TEST_CASE(nothing) {
  const Diagnosis d = diagnosis_of([](const Numbers& e, Index i, const Place&) { return e[i] * (1 + 1e-8); });
  BOOST_TEST((d.kind == ErrorKind::none && d.wrong == 0 && d.elements == 120));
}

BOOST_AUTO_TEST_CASE(where_and_how_many) {
  const Diagnosis d = diagnosis_of([](const Numbers& e, Index i, const Place& at) {
    return at == Place{1, 2, 3, 1} ? e[i] + 1 : at == Place{0, 2, 3, 1} ? e[i] * 1.001 : e[i];
  });
  BOOST_TEST((d.wrong == 2 && d.elements == 120));
  BOOST_TEST((d.worst == Place{1, 2, 3, 1}));
  BOOST_TEST(place_text(of_heads, d.worst) == "image 1, head 2, token 3, channel 1");
  BOOST_TEST(d.got == d.expected + 1);
}

// The worst element has the largest relative error, wherever it is; ties go to the first.
BOOST_AUTO_TEST_CASE(the_worst_of_many) {
  for (const Index worst : {0, 1, 57, 118, 119}) {
    const Diagnosis d =
        diagnosis_of([=](const Numbers& e, Index i, const Place&) { return i == worst ? 3 * e[i] : 1.5 * e[i]; });
    BOOST_TEST(d.wrong == 120);
    BOOST_TEST(d.worst == place_of({2, 3, 5, 4}, worst), boost::test_tools::per_element());
    BOOST_TEST(d.got == 3 * drawn({2, 3, 5, 4})[worst]);
    BOOST_TEST(d.expected == drawn({2, 3, 5, 4})[worst]);
  }
  // Errors are relative to the larger magnitude: an error of 1 at 1 is worse than one of 10 at 100.
  const Tensor<double> expected(Shape{4}, {100, 1, 50, 1}), got(Shape{4}, {110, 2, 45, 2});
  const std::vector<std::string> axes{"element"};
  BOOST_TEST((diagnose(got.view(), expected.view(), axes, {1e-6, 1e-3}).worst == Place{1}));
}

BOOST_AUTO_TEST_CASE(negative) {
  check_found(diagnosis_of([](const Numbers& e, Index i, const Place&) { return -e[i]; }), ErrorKind::negative,
              "the negative");
}

BOOST_AUTO_TEST_CASE(factors_by_name) {
  const auto times = [](double c) {
    return diagnosis_of([=](const Numbers& e, Index i, const Place&) { return c * e[i]; });
  };
  check_found(times(0.5), ErrorKind::factor, "0.5 times what it should be; perhaps 1/2");
  check_found(times(0.5), ErrorKind::factor, "1/sqrt(4 channels)");
  check_found(times(5), ErrorKind::factor, "5 times what it should be; perhaps (5 tokens)");
  check_found(times(-3), ErrorKind::factor, "-3 times what it should be; perhaps -3");
  check_found(times(1.37), ErrorKind::factor, "like 1.37 times what it should be");
  // `factors` lists the explanations without sizes, to compare them between shapes.
  BOOST_TEST(times(-0.5).factors == (std::vector<std::string>{"-1/2", "-1/(images)", "-1/sqrt(channels)"}),
             boost::test_tools::per_element());
}

// A factor has no unit: it is found for elements of any size, here with the tolerances of `heed diff` for BF16.
BOOST_AUTO_TEST_CASE(factors_of_small_and_large_elements) {
  for (const double size : {1e-6, 1.0, 1e3, 1e9}) {
    Tensor<double> expected = drawn({5, 8}), got(expected.shape());
    for (Index i = 0; i < got.size(); ++i) expected[i] *= size, got[i] = expected[i] / 8;
    check_found(diagnose(got.view(), expected.view(), of_matrix, {0.03, 1e-3 * size}), ErrorKind::factor,
                "like 0.125 times what it should be; perhaps 1/(8 columns)");
  }
}

BOOST_AUTO_TEST_CASE(missing_and_superfluous) {
  check_found(diagnosis_of([](const Numbers&, Index, const Place&) { return 0.0; }), ErrorKind::missing,
              "all elements are 0");
  const Tensor<double> zero(Shape{2, 2}), some = drawn({2, 2});
  check_found(diagnose(some.view(), zero.view(), of_matrix, {1e-6, 1e-3}), ErrorKind::superfluous, "should be 0");
}

BOOST_AUTO_TEST_CASE(not_finite) {
  const Diagnosis d =
      diagnosis_of([](const Numbers& e, Index i, const Place& at) { return at[1] == 1 ? std::nan("") : e[i]; });
  check_found(d, ErrorKind::not_finite, "NaN", "for heads 0 and 2; wrong for head 1");
}

BOOST_AUTO_TEST_CASE(some_signs) {
  check_found(diagnosis_of([](const Numbers& e, Index i, const Place&) { return std::abs(e[i]); }), ErrorKind::signs,
              "the wrong sign");
}

BOOST_AUTO_TEST_CASE(transposed) {
  const auto turned = [](const Numbers& e, Index, const Place& at) { return e[at[1] * 4 + at[0]]; };
  check_found(diagnosis_of(turned, {4, 4}, of_matrix), ErrorKind::transposed, "row and column are exchanged");
  // [3, 5], stored as [5, 3].
  const auto by_columns = [](const Numbers& e, Index i, const Place&) { return e[i % 3 * 5 + i / 3]; };
  check_found(diagnosis_of(by_columns, {3, 5}, of_matrix), ErrorKind::transposed,
              "stored by columns instead of by rows");
}

BOOST_AUTO_TEST_CASE(shifted_by_one) {
  const auto shifted = [](const Numbers& e, Index, const Place& at) {
    return at[2] == 0 ? 0.0 : element_at(e, at[0], at[1], at[2] - 1, at[3]);
  };
  check_found(diagnosis_of(shifted), ErrorKind::shifted, "shifted by 1: the values of token i are at token i + 1");
  const auto back = [](const Numbers& e, Index, const Place& at) {
    return element_at(e, at[0], at[1], at[2], (at[3] + 1) % 4);
  };
  check_found(diagnosis_of(back), ErrorKind::shifted, "the values of channel i are at channel i - 1");
}

BOOST_AUTO_TEST_CASE(in_another_order) {
  const auto reversed = [](const Numbers& e, Index, const Place& at) {
    return element_at(e, at[0], at[1], 4 - at[2], at[3]);
  };
  check_found(diagnosis_of(reversed), ErrorKind::reversed, "tokens are in reverse order",
              "for token 2; wrong for tokens 0, 1, 3 and 4");
  const auto exchanged = [](const Numbers& e, Index, const Place& at) {
    return element_at(e, at[0], at[1] == 2 ? 2 : 1 - at[1], at[2], at[3]);
  };
  check_found(diagnosis_of(exchanged), ErrorKind::permuted, "its heads are in the order 1, 0, 2",
              "for head 2; wrong for heads 0 and 1");
}

BOOST_AUTO_TEST_CASE(one_for_all) {
  const auto repeated = [](const Numbers& e, Index, const Place& at) { return element_at(e, at[0], 0, at[2], at[3]); };
  check_found(diagnosis_of(repeated), ErrorKind::repeated, "repeated: every head has the values of head 0",
              "for head 0; wrong for heads 1 and 2");
  const auto summed = [](const Numbers& e, Index, const Place& at) {
    double sum = 0;
    for (Index head = 0; head < 3; ++head) sum += element_at(e, at[0], head, at[2], at[3]);
    return sum;
  };
  check_found(diagnosis_of(summed), ErrorKind::summed, "the sum over all heads, repeated for each of them");
}

BOOST_AUTO_TEST_CASE(a_factor_for_each_token) {
  const auto scaled = [](const Numbers& e, Index i, const Place& at) {
    return (2.0 + static_cast<double>(at[2])) * e[i];
  };
  check_found(diagnosis_of(scaled), ErrorKind::factors, "right up to one factor per token: 2, 3, 4, 5, 6");
}

BOOST_AUTO_TEST_CASE(terms_too_much) {
  check_found(diagnosis_of([](const Numbers& e, Index i, const Place&) { return e[i] + 0.25; }), ErrorKind::offset,
              "plus 0.25, everywhere");
  const auto mean = [](const Numbers& e, Index i, const Place& at) {
    double sum = 0;
    for (Index channel = 0; channel < 4; ++channel) sum += element_at(e, at[0], at[1], at[2], channel);
    return e[i] - sum / 4;
  };
  check_found(diagnosis_of(mean), ErrorKind::offsets, "a term that is the same for all channels");
}

BOOST_AUTO_TEST_CASE(one_part_right) {
  const auto late = [](const Numbers& e, Index i, const Place& at) { return at[2] == 0 ? e[i] : -e[i]; };
  check_found(diagnosis_of(late), ErrorKind::negative, "the negative", "for token 0; wrong for tokens 1 to 4");
  const auto channel = [](const Numbers& e, Index i, const Place& at) { return at[3] == 2 ? 2 * e[i] : e[i]; };
  check_found(diagnosis_of(channel), ErrorKind::factor, "2 times", "for channels 0, 1 and 3; wrong for channel 2");
  // Factors are explained by the size of a whole axis: five tokens, four of them wrong.
  const auto tokens = [](double c) {
    return diagnosis_of([=](const Numbers& e, Index i, const Place& at) { return at[2] == 0 ? e[i] : c * e[i]; });
  };
  check_found(tokens(0.2), ErrorKind::factor, "0.2 times what it should be; perhaps 1/(5 tokens)",
              "for token 0; wrong for tokens 1 to 4");
  BOOST_TEST(tokens(1 / std::sqrt(5.0)).factors == (std::vector<std::string>{"1/sqrt(tokens)"}),
             boost::test_tools::per_element());
  BOOST_TEST(tokens(0.5).factors == (std::vector<std::string>{"1/2", "1/(images)", "1/sqrt(channels)"}),
             boost::test_tools::per_element());
  const auto above = [](const Numbers& e, Index i, const Place& at) { return at[1] > at[0] ? e[i] + 1 : e[i]; };
  BOOST_TEST(diagnosis_of(above, {4, 4}, of_matrix).right == "everywhere except above the diagonal");
  const auto diagonal = [](const Numbers& e, Index i, const Place& at) { return at[1] == at[0] ? e[i] + 1 : e[i]; };
  BOOST_TEST(diagnosis_of(diagonal, {4, 4}, of_matrix).right == "everywhere except on the diagonal");
}

BOOST_AUTO_TEST_CASE(noise_is_nothing_simple) {
  const auto noise = [](const Numbers&, Index i, const Place&) { return RandomStream(9).uniform(i, -1, 1); };
  check_found(diagnosis_of(noise), ErrorKind::unknown, "cosine");
  // Memory that was never written may hold values whose squares overflow.
  const auto garbage = [](const Numbers&, Index i, const Place&) { return RandomStream(9).uniform(i, -1e300, 1e300); };
  check_found(diagnosis_of(garbage), ErrorKind::unknown, "e+300 times the expected one (is it read from memory");
  // The squares of very small values would vanish.
  Tensor<double> small = drawn({2, 3, 5, 4}), other = small;
  for (Index i = 0; i < small.size(); ++i) small[i] *= 1e-200, other[i] = 1e-200 * noise(small, i, {});
  check_found(diagnose(std::as_const(other).view(), std::as_const(small).view(), of_heads, {1e-6, 1e-203}),
              ErrorKind::unknown, "its norm is 1.");
}

// A single number is a multiple of any other: only common factors are reported.
BOOST_AUTO_TEST_CASE(one_number) {
  const auto one = [](double c) {
    return diagnosis_of([=](const Numbers& e, Index i, const Place&) { return c * e[i]; }, {1, 1}, of_matrix);
  };
  check_found(one(2), ErrorKind::factor, "2 times");
  check_found(one(1.37), ErrorKind::unknown, "");
}

BOOST_AUTO_TEST_CASE(shifted_by_two) {
  const auto forth = [](const Numbers& e, Index, const Place& at) {
    return at[2] < 2 ? 0.0 : element_at(e, at[0], at[1], at[2] - 2, at[3]);
  };
  check_found(diagnosis_of(forth), ErrorKind::shifted, "shifted by 2: the values of token i are at token i + 2");
  const auto back = [](const Numbers& e, Index, const Place& at) {
    return at[2] > 2 ? 0.0 : element_at(e, at[0], at[1], at[2] + 2, at[3]);
  };
  check_found(diagnosis_of(back), ErrorKind::shifted, "shifted by 2: the values of token i are at token i - 2");
}

BOOST_AUTO_TEST_CASE(two_exchanged_and_a_mean) {
  const auto exchanged = [](const Numbers& e, Index, const Place& at) {
    return element_at(e, 1 - at[0], at[1], at[2], at[3]);
  };
  check_found(diagnosis_of(exchanged), ErrorKind::permuted, "exchanged: the two images are swapped");
  const auto mean = [](const Numbers& e, Index, const Place& at) {
    double sum = 0;
    for (Index token = 0; token < 5; ++token) sum += element_at(e, at[0], at[1], token, at[3]);
    return sum / 5;
  };
  check_found(diagnosis_of(mean), ErrorKind::summed, "like the mean over all tokens, repeated for each of them");
}

// Lists are limited to five factors; three or more successive indices are listed as a range.
BOOST_AUTO_TEST_CASE(long_lists_are_short) {
  const auto scaled = [](const Numbers& e, Index i, const Place& at) {
    return (2.0 + static_cast<double>(at[0])) * e[i];
  };
  check_found(diagnosis_of(scaled, {7, 4}, of_matrix), ErrorKind::factors,
              "right up to one factor per row: 2, 3, 4, 5, 6, ...");
  const auto rows = [](const Numbers& e, Index i, const Place& at) {
    return at[0] < 4 || at[0] == 12 || at[0] == 14 ? -e[i] : e[i];
  };
  check_found(diagnosis_of(rows, {16, 3}, of_matrix), ErrorKind::negative, "the negative",
              "for rows 4 to 11, 13 and 15; wrong for rows 0 to 3, 12 and 14");
}

// Each image and head has a square matrix.
BOOST_AUTO_TEST_CASE(sides_of_several_diagonals) {
  const auto where = [](auto wrong) {
    return diagnosis_of(
               [=](const Numbers& e, Index i, const Place& at) { return wrong(at[2], at[3]) ? e[i] + 1 : e[i]; },
               {2, 3, 5, 5})
        .right;
  };
  BOOST_TEST(where([](Index row, Index column) { return row > column; }) == "everywhere except below the diagonal");
  BOOST_TEST(where([](Index row, Index column) { return row < column; }) == "everywhere except above the diagonal");
  BOOST_TEST(where([](Index row, Index column) { return row == column; }) == "everywhere except on the diagonal");
  BOOST_TEST(where([](Index row, Index column) { return row != column; }) == "");
}

// The reported axis has the largest fraction of correct indices, even if another has more of them; on ties, it is the
// first. Three successive indices are a range.
BOOST_AUTO_TEST_CASE(the_right_part_is_along_one_axis) {
  const auto right = [](const Shape& shape, const std::vector<std::string>& axes, auto wrong) {
    const Diagnosis d =
        diagnosis_of([=](const Numbers& e, Index i, const Place& at) { return wrong(at) ? -e[i] : e[i]; }, shape, axes);
    BOOST_TEST(name_of(d.kind) == std::string("negative"));
    return d.right;
  };
  BOOST_TEST(right({2, 3, 5, 4}, of_heads, [](const Place& at) { return at[1] == 2 && at[2] == 3; }) ==
             "for tokens 0 to 2 and 4; wrong for token 3");
  BOOST_TEST(right({2, 8}, of_matrix, [](const Place& at) { return at[0] == 1 && at[1] < 5; }) ==
             "for row 0; wrong for row 1");
  BOOST_TEST(right({4, 6}, of_matrix, [](const Place& at) { return at[0] > 1 && at[1] < 3; }) ==
             "for rows 0 and 1; wrong for rows 2 and 3");
  BOOST_TEST(right({8, 3}, of_matrix, [](const Place& at) { return at[0] < 3; }) ==
             "for rows 3 to 7; wrong for rows 0 to 2");
}

// In a square matrix, one wrong row or column is named, even if its elements are on one side of the diagonal.
BOOST_AUTO_TEST_CASE(a_wrong_row_beside_the_diagonal) {
  const auto right = [](auto wrong) {
    return diagnosis_of([=](const Numbers& e, Index i, const Place& at) { return wrong(at) ? e[i] + 1 : e[i]; }, {4, 4},
                        of_matrix)
        .right;
  };
  BOOST_TEST(right([](const Place& at) { return at[0] == 0 && at[1] > 0; }) == "for rows 1 to 3; wrong for row 0");
  BOOST_TEST(right([](const Place& at) { return at[1] == 0 && at[0] > 0; }) ==
             "for columns 1 to 3; wrong for column 0");
  BOOST_TEST(right([](const Place& at) { return at[0] < 2 && at[1] > at[0]; }) ==
             "everywhere except above the diagonal");
}

// A pattern may deviate by ten times the tolerance, which is 1e-6.
BOOST_AUTO_TEST_CASE(a_pattern_has_a_tolerance) {
  const auto times = [](double c) {
    return diagnosis_of([=](const Numbers& e, Index i, const Place&) { return c * e[i]; });
  };
  check_found(times(-1 - 5e-6), ErrorKind::negative, "the negative");
  check_found(times(-1 - 2e-5), ErrorKind::factor, "like -1.00002 times");
}

// Exchanging x and -x also negates both: if all elements are wrong, the error is classified as negative.
BOOST_AUTO_TEST_CASE(negatives_may_be_exchanged) {
  const std::vector<std::string> axes{"element"};
  const auto of = [&](std::initializer_list<double> got, std::initializer_list<double> expected) {
    const Shape shape{static_cast<Index>(got.size())};
    return diagnose(Tensor<double>(shape, got).view(), Tensor<double>(shape, expected).view(), axes, {1e-6, 1e-3});
  };
  check_found(of({-1, 1}, {1, -1}), ErrorKind::negative, "the negative");
  check_found(of({-1, 1, 2}, {1, -1, 2}), ErrorKind::permuted, "its elements are in the order 1, 0, 2",
              "for element 2; wrong for elements 0 and 1");
}

// A permutation lists, for each position, the index of the expected slice found there; a repeated slice is named by its
// index.
BOOST_AUTO_TEST_CASE(slices_are_named_by_where_they_come_from) {
  const auto permuted = [](const Numbers& e, Index, const Place& at) {
    constexpr Index from[] = {2, 0, 3, 1, 4};
    return element_at(e, at[0], at[1], from[at[2]], at[3]);
  };
  check_found(diagnosis_of(permuted), ErrorKind::permuted, "its tokens are in the order 2, 0, 3, 1, 4",
              "for token 4; wrong for tokens 0 to 3");
  const auto repeated = [](const Numbers& e, Index, const Place& at) { return element_at(e, at[0], 2, at[2], at[3]); };
  check_found(diagnosis_of(repeated), ErrorKind::repeated, "repeated: every head has the values of head 2",
              "for head 2; wrong for heads 0 and 1");
}

// Exchanged axes need not be neighbours, and each of several matrices may be stored by columns.
BOOST_AUTO_TEST_CASE(transposed_within_more_axes) {
  const auto exchanged = [](const Numbers& e, Index, const Place& at) { return e[(at[2] * 2 + at[1]) * 3 + at[0]]; };
  check_found(diagnosis_of(exchanged, {3, 2, 3}, {"head", "token", "channel"}), ErrorKind::transposed,
              "transposed: head and channel are exchanged");
  const auto by_columns = [](const Numbers& e, Index i, const Place& at) {
    return e[15 * at[0] + i % 15 % 3 * 5 + i % 15 / 3];
  };
  check_found(diagnosis_of(by_columns, {2, 3, 5}, {"head", "row", "column"}), ErrorKind::transposed,
              "stored by columns instead of by rows");
}

// Explanations of a factor: 2 to 4, each size and its root, and their inverses.
BOOST_AUTO_TEST_CASE(explanations_of_factors) {
  const auto looks = [](double c) {
    return diagnosis_of([=](const Numbers& e, Index i, const Place&) { return c * e[i]; }).looks;
  };
  const std::string times = " times what it should be";
  BOOST_TEST(looks(2) == "like 2" + times + "; perhaps 2, or (2 images), or sqrt(4 channels)");
  BOOST_TEST(looks(1 / 3.0) == "like 0.333333" + times + "; perhaps 1/3, or 1/(3 heads)");
  BOOST_TEST(looks(-4) == "like -4" + times + "; perhaps -4, or -(4 channels)");
  BOOST_TEST(looks(std::sqrt(2.0)) == "like 1.41421" + times + "; perhaps sqrt(2 images)");
  BOOST_TEST(looks(1 / std::sqrt(5.0)) == "like 0.447214" + times + "; perhaps 1/sqrt(5 tokens)");
}

// Four factors for four elements explain any error and are not reported. An added term may be constant along any axis.
BOOST_AUTO_TEST_CASE(terms_and_factors_along_each_axis) {
  const auto scaled = [](const Numbers& e, Index i, const Place&) { return (2.0 + static_cast<double>(i)) * e[i]; };
  check_found(diagnosis_of(scaled, {4}, {"element"}), ErrorKind::unknown, "cosine");
  for (const std::size_t axis : {0, 1, 2, 3}) {
    const auto term = [=](const Numbers& e, Index i, Place at) {
      at[axis] = 0;
      return e[i] + 0.01 * static_cast<double>(1 + ((at[0] * 3 + at[1]) * 5 + at[2]) * 4 + at[3]);
    };
    check_found(diagnosis_of(term), ErrorKind::offsets, "a term that is the same for all " + of_heads[axis] + "s");
    const auto factor = [=](const Numbers& e, Index i, const Place& at) {
      return (2.5 + 0.25 * static_cast<double>(at[axis])) * e[i];
    };
    check_found(diagnosis_of(factor), ErrorKind::factors,
                "one factor per " + of_heads[axis] + ": 2.5, 2.75" + (axis > 0 ? ", 3" : ""));
  }
}

BOOST_AUTO_TEST_CASE(axes_have_usual_names) {
  using Names = std::vector<std::string>;
  BOOST_TEST(usual_axes({}).empty());
  BOOST_TEST(usual_axes({3}) == Names{"element"}, boost::test_tools::per_element());
  BOOST_TEST(usual_axes({2, 3}) == (Names{"row", "column"}), boost::test_tools::per_element());
  BOOST_TEST(usual_axes({2, 3, 4}) == (Names{"block", "row", "column"}), boost::test_tools::per_element());
  BOOST_TEST(usual_axes({2, 3, 4, 5, 6, 7}) == (Names{"set", "part", "group", "block", "row", "column"}),
             boost::test_tools::per_element());
}

// The parts that are wrong are named by their axis.
BOOST_AUTO_TEST_CASE(each_of_four_axes_has_its_own_name) {
  const Shape shape{3, 4, 5, 6};
  for (const std::size_t axis : {0, 1}) {
    const auto second = [=](const Numbers& e, Index i, const Place& at) { return at[axis] == 1 ? 2 * e[i] : e[i]; };
    const Diagnosis d = diagnosis_of(second, shape, usual_axes(shape));
    BOOST_TEST(d.right ==
               (axis == 0 ? "for groups 0 and 2; wrong for group 1" : "for blocks 0, 2 and 3; wrong for block 1"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
