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

namespace heed::cli {

namespace {

Tensor<double> tensor_numbers(const SafetensorsFile& file, const std::string& name) {
  if (file.info(name).dtype >= DType::F16) return file.read<double>(name);
  const Tensor<std::int64_t> integers = file.read<std::int64_t>(name);
  Tensor<double> numbers(integers.shape());
  std::ranges::transform(integers, numbers.begin(), [](std::int64_t i) { return static_cast<double>(i); });
  return numbers;
}

/// Adds a row with as many digits of both elements as show their difference.
void add_row(Table& table, const char* what, const ComparedTensor& tensor, const ElementDifference& at) {
  const int digits = std::isfinite(at.relative) ? std::clamp(3 - static_cast<int>(std::log10(at.relative)), 6, 17) : 6;
  table.add({what, tensor.name, fmt::format("[{}]", fmt::join(place_of(tensor.shape, at.element), ", ")),
             fmt::format("{:.{}g}", at.a, digits), fmt::format("{:.{}g}", at.b, digits), at.absolute, at.relative,
             at.ulps});
}

/// Returns a relative difference, rounded up so that it works as a tolerance.
std::string sufficient_tolerance(double relative) {
  const double unit = std::pow(10, std::floor(std::log10(relative)) - 1);
  return fmt::format("{:.1e}", std::ceil(relative / unit) * unit);
}

/// Prints the kind of mistake that B shows if A is right.
void print_mistake(std::ostream& out, const ComparedTensor& tensor, const SafetensorsFile& a, const SafetensorsFile& b,
                   double tolerance) {
  constexpr Index most_elements = 1 << 18, longest_axis = 4096;  // seconds
  if (tensor.shape.elements() > most_elements ||
      std::ranges::any_of(tensor.shape, [](Index n) { return n > longest_axis; })) {
    out << fmt::format("  looks  [not examined: at most {} elements are; dump fewer examples]\n", most_elements);
    return;
  }
  const Likeness same{std::max(tolerance, rounding_error(tensor.type)), 1e-3 * tensor.found.largest};
  const Tensor<double> expected = tensor_numbers(a, tensor.name), got = tensor_numbers(b, tensor.name);
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
  require(!found.tensors.empty() || !found.other_shapes.empty(),
          "{} and {} have no tensor name in common: the first has {}, the second {}", a.path(), b.path(),
          quoted_list(found.only_a), quoted_list(found.only_b));
  return found;
}

void print_difference(std::ostream& out, const FilesDifference& found, const SafetensorsFile& a,
                      const SafetensorsFile& b, double tolerance) {
  const auto& tensors = found.tensors;
  const auto first = std::ranges::find_if(tensors, [](const auto& x) { return x.found.beyond > 0; });
  const auto mistake =
      std::ranges::find_if(tensors, [](const auto& x) { return x.found.beyond > 0 && !x.found.rounding; });
  const auto worst = std::ranges::max_element(
      tensors, {}, [](const ComparedTensor& x) { return x.found.worst ? x.found.worst->relative : 0; });
  Table table;
  table.text("").text("tensor").text("element").text("A").text("B");
  table.text("absolute", significant(2)).text("relative", significant(2)).text("ulps", significant(3));
  if (first != tensors.end()) {
    add_row(table, "first", *first, *first->found.first);
    if (mistake != tensors.end() && mistake != first)
      add_row(table, "first beyond rounding", *mistake, *mistake->found.first);
    add_row(table, "worst", *worst, *worst->found.worst);
    table.print(out);
    const ComparedTensor& shown = mistake != tensors.end() ? *mistake : *first;
    out << fmt::format("\n{}: {} of {} elements differ\n", printable(shown.name), shown.found.beyond,
                       shown.found.elements);
    if (shown.found.rounding)
      out << "  looks  like rounding, as are all differences\n";
    else
      print_mistake(out, shown, a, b, tolerance);
    out << "\n";
  }
  const auto count = [&](const auto& has) { return std::ranges::count_if(tensors, has); };
  const auto same_bits = count([](const ComparedTensor& x) { return x.found.unequal == 0; });
  const auto beyond = count([](const ComparedTensor& x) { return x.found.beyond > 0; });
  out << fmt::format("tensors in both: {} equal bit for bit, {} within tolerance {:g}, {} beyond\n", same_bits,
                     std::ssize(tensors) - same_bits - beyond, tolerance, beyond);
  const auto list = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) out << fmt::format("{} ({}): {}\n", what, names.size(), quoted_list(names));
  };
  list("shapes differ", found.other_shapes);
  list("only in A", found.only_a);
  list("only in B", found.only_b);
}

std::string summary_of(const FilesDifference& found, double tolerance) {
  Index beyond = 0;
  double worst = 0;
  const ComparedTensor* first = nullptr;
  for (const ComparedTensor& x : found.tensors) {
    if (x.found.beyond == 0) continue;
    if (!first) first = &x;
    ++beyond;
    worst = std::max(worst, x.found.worst->relative);
  }
  const std::size_t unmatched = found.only_a.size() + found.only_b.size() + found.other_shapes.size();
  const std::string not_compared = unmatched > 0 ? fmt::format("; {} not compared", unmatched) : "";
  if (!first)
    return fmt::format("all {} common tensors agree {}{}", found.tensors.size(),
                       tolerance > 0 ? fmt::format("to {:g}", tolerance) : "in all values", not_compared);
  return fmt::format(
      "{} of {} common tensors differ, first {} at [{}]{}{}", beyond, found.tensors.size(), printable(first->name),
      fmt::join(place_of(first->shape, first->found.first->element), ", "),
      std::isfinite(worst) ? fmt::format("; --tolerance {} allows them", sufficient_tolerance(worst)) : "",
      not_compared);
}

std::string step_of(const SafetensorsFile& file) {
  const auto step = file.metadata().find("heed.step");
  return step != file.metadata().end() ? fmt::format(", step {}", printable(step->second)) : "";
}

}  // namespace heed::cli
