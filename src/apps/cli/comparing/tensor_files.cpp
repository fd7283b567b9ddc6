#include "tensor_files.h"

#include "src/apps/cli/probing/pass_trace.h"
#include "src/apps/cli/shared/table.h"

#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/checks/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <new>

namespace heed::cli {

namespace {

Tensor<double> tensor_numbers(const SafetensorsFile& file, const std::string& name) try {
  if (file.info(name).dtype >= DType::F16) return file.read<double>(name);
  const Tensor<std::int64_t> integers = file.read<std::int64_t>(name);
  constexpr std::int64_t largest = std::int64_t{1} << 53;
  for (const std::int64_t i : integers)
    require(-largest <= i && i <= largest, "{}: tensor {}: cannot compare the integer {}; expected at most 2^53",
            file.path(), in_quotes(name), i);
  Tensor<double> numbers(integers.shape());
  std::ranges::transform(integers, numbers.begin(), [](std::int64_t i) { return static_cast<double>(i); });
  return numbers;
} catch (const std::bad_alloc&) {
  fail("{}: tensor {}: not enough memory for {} elements; dump fewer examples", file.path(), in_quotes(name),
       file.info(name).shape.elements());
}

/// Returns the indices of an element, for example "[0, 3, 17]".
std::string element_text(const ComparedTensor& tensor, const ElementDifference& at) {
  return fmt::format("[{}]", fmt::join(place_of(tensor.shape, at.element), ", "));
}

/// Adds a row that shows both elements with enough digits to see their difference.
void add_row(Table& table, const char* what, const ComparedTensor& tensor, const ElementDifference& at) {
  const int digits = std::isfinite(at.relative) ? std::clamp(3 - static_cast<int>(std::log10(at.relative)), 6, 17) : 6;
  table.add({what, tensor.name, element_text(tensor, at), fmt::format("{:.{}g}", at.a, digits),
             fmt::format("{:.{}g}", at.b, digits), at.absolute, at.relative, at.ulps});
}

/// Returns a relative difference as text, rounded up to two digits so that it serves as a tolerance.
std::string sufficient_tolerance(double relative) {
  const double unit = std::pow(10, std::floor(std::log10(relative)) - 1);
  return fmt::format("{:.1e}", std::ceil(relative / unit) * unit);
}

/// Prints the kind of error in B, with A taken as correct.
void print_mistake(std::ostream& out, const ComparedTensor& tensor, const SafetensorsFile& a, const SafetensorsFile& b,
                   double tolerance) {
  constexpr Index most_elements = 1 << 18, longest_axis = 4096;  // larger tensors would take too long
  if (tensor.shape.elements() > most_elements ||
      std::ranges::any_of(tensor.shape, [](Index n) { return n > longest_axis; })) {
    out << fmt::format("  looks  not examined: more than {} elements, or a long axis; dump fewer examples\n",
                       most_elements);
    return;
  }
  const Likeness same{std::max(tolerance, rounding_error(tensor.type)), 1e-3 * tensor.found.largest};
  Tensor<double> expected = tensor_numbers(a, tensor.name), got = tensor_numbers(b, tensor.name);
  for (Index i = 0; i < got.size(); ++i)  // equal infinities (masked scores) or NaN in both: no difference
    if (!std::isfinite(got[i]) && (got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]))))
      got[i] = expected[i] = 0;
  const Diagnosis d = diagnose(got.view(), expected.view(), usual_axes(tensor.shape), same);
  out << fmt::format("  looks  {}\n", d.looks);
  if (!d.right.empty()) out << fmt::format("  right  {}\n", d.right);
}

}  // namespace

bool FilesDifference::equal(bool common) const {
  return std::ranges::all_of(tensors, [](const ComparedTensor& x) { return x.found.beyond == 0; }) &&
         (common || (other_shapes.empty() && only_a.empty() && only_b.empty()));
}

FilesDifference compare_files(const SafetensorsFile& a, const SafetensorsFile& b, double tolerance) {
  a.check();
  b.check();
  FilesDifference found;
  const bool order_of_b = b.metadata().contains(trace_key) && !a.metadata().contains(trace_key);
  for (const std::string& name : (order_of_b ? b : a).names()) {
    if (!a.contains(name) || !b.contains(name)) continue;
    const TensorInfo &in_a = a.info(name), &in_b = b.info(name);
    if (in_a.shape == in_b.shape) {
      const DType type = coarser(in_a.dtype, in_b.dtype);
      const Tensor<double> x = tensor_numbers(a, name), y = tensor_numbers(b, name);
      found.tensors.push_back({name, in_a.shape, type, difference_of(x.view(), y.view(), type, tolerance)});
    } else {
      found.other_shapes.push_back(fmt::format("{} {} and {}", name, in_a.shape, in_b.shape));
    }
  }
  const auto only = [](const SafetensorsFile& one, const SafetensorsFile& other, std::vector<std::string>& names) {
    for (const std::string& name : one.names())
      if (!other.contains(name)) names.push_back(name);
  };
  only(a, b, found.only_a);
  only(b, a, found.only_b);
  std::vector<std::string> reasons;
  const auto list = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) reasons.push_back(what + quoted_list(names));
  };
  list("only the first file has ", found.only_a);
  list("only the second file has ", found.only_b);
  list("shapes differ: ", found.other_shapes);
  if (reasons.empty()) reasons.emplace_back("both files are empty");
  require(!found.tensors.empty(), "{} and {} have no tensor in common: {}; expected equal names and shapes", a.path(),
          b.path(), fmt::join(reasons, ", "));
  return found;
}

std::string print_difference(std::ostream& out, const FilesDifference& found, const SafetensorsFile& a,
                             const SafetensorsFile& b, double tolerance) {
  const ComparedTensor *first = nullptr, *mistake = nullptr, *worst = nullptr;
  Index same_bits = 0, beyond = 0;
  for (const ComparedTensor& x : found.tensors) {
    same_bits += x.found.unequal == 0;
    if (x.found.beyond == 0) continue;
    ++beyond;
    if (!first) first = &x;
    if (!mistake && !x.found.rounding) mistake = &x;
    if (!worst || x.found.worst->relative > worst->found.worst->relative) worst = &x;
  }
  if (first) {
    Table table;
    table.text("").text("tensor").text("element").text("A").text("B");
    table.text("absolute", significant(2)).text("relative", significant(2)).text("ulps", significant(3));
    add_row(table, "first", *first, *first->found.first);
    if (mistake && mistake != first) add_row(table, "first beyond rounding", *mistake, *mistake->found.first);
    add_row(table, "worst", *worst, *worst->found.worst);
    table.print(out);
    const ComparedTensor& shown = mistake ? *mistake : *first;
    out << fmt::format("\n{}: {} of {} elements differ\n", printable(shown.name), shown.found.beyond,
                       shown.found.elements);
    if (mistake)
      print_mistake(out, *mistake, a, b, tolerance);
    else
      out << "  looks  like rounding errors, in all tensors\n";
    out << "\n";
  }
  const Index common = std::ssize(found.tensors);
  out << fmt::format("tensors in both: {} equal bit for bit, {} within tolerance {:g}, {} beyond\n", same_bits,
                     common - same_bits - beyond, tolerance, beyond);
  std::size_t unmatched = 0;
  const auto list = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) out << fmt::format("{} ({}): {}\n", what, names.size(), quoted_list(names));
    unmatched += names.size();
  };
  list("shapes differ", found.other_shapes);
  list("only in A", found.only_a);
  list("only in B", found.only_b);

  std::string summary = first ? fmt::format("{} of {} common tensors differ, first {} at {}", beyond, common,
                                            printable(first->name), element_text(*first, *first->found.first))
                              : fmt::format("all {} common tensors agree{}", common,
                                            tolerance > 0 ? fmt::format(" to {:g}", tolerance) : " in all values");
  if (worst && std::isfinite(worst->found.worst->relative))
    summary += fmt::format("; --tolerance {} allows them", sufficient_tolerance(worst->found.worst->relative));
  return unmatched > 0 ? fmt::format("{}; {} not compared", summary, unmatched) : summary;
}

std::string step_of(const SafetensorsFile& file) {
  const auto step = file.metadata().find("heed.step");
  return step != file.metadata().end() ? fmt::format(", step {}", printable(step->second)) : "";
}

}  // namespace heed::cli
