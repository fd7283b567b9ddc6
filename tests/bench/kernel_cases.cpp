// The cases of heed bench: work and memory of each kernel, computed from its printed size.
#include "heed/bench/kernels.h"

#include "heed/config/experiment.h"
#include "heed/nn/families.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <tuple>

using namespace heed;
using namespace heed::bench;

namespace {

std::vector<double> numbers_in(const std::string& size) {
  static const std::regex number("[0-9]+");
  std::vector<double> numbers;
  for (std::sregex_iterator n(size.begin(), size.end(), number), end; n != end; ++n)
    numbers.push_back(std::stod(n->str()));
  return numbers;
}

const KernelCase& case_named(const std::vector<KernelCase>& cases, const std::string& name) {
  const auto found = std::ranges::find_if(cases, [&](const KernelCase& c) { return c.name() == name; });
  BOOST_TEST_REQUIRE((found != cases.end()), name);
  return *found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bench_kernel_cases)

// Work is two operations per term of a product, one per term of a distance or of its gradient, and one per element of a
// kernel with exponentials. Memory-bound kernels have none. The kernels listed at the end are not checked.
BOOST_AUTO_TEST_CASE(work_follows_from_the_size) {
  struct Rule {
    Resource of;
    double factor;  ///< work, divided by the product of the numbers in the size
  };
  std::map<std::string, Rule> rules;
  for (const char* kernel : {"gemm forward", "gemm input gradient", "gemm weight gradient", "gemm q k^T", "gemm A v",
                             "adder weight gradient", "block q k^T", "block A v", "block A^T dout", "block dout v^T",
                             "block dS k", "block dS^T q"})
    rules[kernel] = {Resource::gemm, 2};
  for (const char* kernel : {"l1 distance", "l1 scores"}) rules[kernel] = {Resource::l1, 1};
  rules["clamped gradient"] = {Resource::clamp, 1};
  for (const char* kernel :
       {"softmax forward", "softmax again", "gelu forward", "gelu backward", "sigmoid gate forward",
        "sigmoid gate backward", "exp sums", "exp of columns", "block exp", "block A again", "cross entropy"})
    rules[kernel] = {Resource::exp, 1};
  // Sizes of dense convolutions end with the output channels; windows have nine positions.
  rules["conv 3 x 3 forward"] = {Resource::gemm, 2 * 9};
  rules["conv 3 x 3 forward and back"] = {Resource::gemm, 3 * 2 * 9};
  for (const char* kernel : {"forward", "input gradient", "weight gradient"})
    rules[std::string("depth-wise 3 x 3 ") + kernel] = {Resource::multiply_add, 2 * 9};
  const std::set<std::string> by_memory{"softmax backward",      "layer norm forward", "layer norm backward",
                                        "layer norm parameters", "bias gradient",      "adamw",
                                        "block dS of A"};
  std::set<std::string> unchecked;
  for (const KernelCase& c : kernel_cases()) {
    const auto rule = rules.find(c.kernel);
    if (rule == rules.end()) {
      if (by_memory.contains(c.kernel))
        BOOST_TEST(c.work.empty(), c.name());
      else
        unchecked.insert(c.kernel);
      continue;
    }
    double product = rule->second.factor;
    for (const double number : numbers_in(c.size)) product *= number;
    BOOST_TEST_REQUIRE(c.work.size() == 1u, c.name());
    BOOST_TEST((c.work[0].of == rule->second.of), c.name());
    BOOST_TEST(static_cast<double>(c.work[0].amount) == product, c.name());
  }
  BOOST_TEST(unchecked == (std::set<std::string>{"gaussian backward", "gaussian forward", "neighbourhood sums",
                                                 "newton inverse", "newton inverse backward"}),
             boost::test_tools::per_element());
}

// y [rows, out] = x [rows, in] W^T; 8 images have 8 * 65 rows. A map of 65 or 50 tokens is a single block.
BOOST_AUTO_TEST_CASE(sizes_are_those_of_the_layers) {
  const std::vector<KernelCase> cases = kernel_cases();
  for (const auto& [name, size] : {std::pair("gemm forward, deit-tiny-p4 fc1", "520 x 768 x 192"),
                                   {"gemm input gradient, deit-tiny-p4 fc1", "520 x 192 x 768"},
                                   {"gemm weight gradient, deit-tiny-p4 fc1", "768 x 192 x 520"},
                                   {"gemm forward, deit-tiny-p4 fc2", "520 x 192 x 768"},
                                   {"gemm forward, vit-micro qkv", "400 x 192 x 64"},
                                   {"gemm forward, vit-micro proj", "400 x 64 x 64"},
                                   {"gemm q k^T, deit-tiny-p4 head", "65 x 65 x 64"},
                                   {"gemm A v, deit-tiny-p4 head", "65 x 64 x 65"},
                                   {"gemm A v, vit-micro head", "50 x 16 x 50"},
                                   {"l1 distance, deit-tiny-p4 fc1", "520 x 768 x 192"},
                                   {"clamped gradient, deit-tiny-p4 fc1", "520 x 192 x 768"},
                                   {"adder weight gradient, deit-tiny-p4 fc1", "768 x 192 x 520"},
                                   {"softmax forward, vit-micro head", "50 x 50"},
                                   {"layer norm forward, vit-micro", "400 x 64"},
                                   {"adamw, vit-micro", "139018"}})
    BOOST_TEST(case_named(cases, name).size == size, name);
}

// Names are distinct, and all cases of a kernel are consecutive.
BOOST_AUTO_TEST_CASE(cases_are_ordered_by_kernel) {
  std::set<std::string> names, kernels;
  std::string last;
  for (const KernelCase& c : kernel_cases()) {
    BOOST_TEST(names.insert(c.name()).second, c.name());
    if (c.kernel != last) BOOST_TEST(kernels.insert(c.kernel).second, c.kernel);
    last = c.kernel;
  }
}

BOOST_AUTO_TEST_CASE(models_are_those_of_their_files) {
  for (const ModelSizes& sizes : model_sizes) {
    const Experiment x = load_experiment(fmt::format("models/{}.toml", sizes.name));
    BOOST_TEST(sizes.dim == x.model.dim);
    BOOST_TEST(sizes.hidden == x.model.hidden);
    BOOST_TEST(sizes.heads == x.model.heads);
    BOOST_TEST(sizes.grid * x.model.patch == x.model.image.width);
    BOOST_TEST(sizes.tokens == sizes.grid * sizes.grid + 1);
    BOOST_TEST(sizes.parameters == make_model(x)->parameters().trainable_elements());
  }
}

BOOST_AUTO_TEST_CASE(operands_are_counted) {
  Operands o;
  o.in(10), o.out(20), o.in_out(30), o.scratch(40);
  BOOST_TEST(o.read() == 4 * (10 + 30));
  BOOST_TEST(o.moved() == 4 * (10 + 20 + 2 * 30));
  BOOST_TEST(o.held() == 4 * (10 + 20 + 30 + 40));
  const Matrix<float> gaps = o.in_out(3, 4, 5);  // gaps between rows count too
  BOOST_TEST((gaps.rows == 3 && gaps.columns == 4 && gaps.stride == 5));
  BOOST_TEST(o.read() == 4 * (40 + 15));
  BOOST_TEST(o.held() == 4 * (100 + 15));
  const float* const equal = o.filled(2, 0.5F);
  BOOST_TEST((equal[0] == 0.5F && equal[1] == 0.5F));
  BOOST_TEST(o.read() == 4 * (55 + 2));
  BOOST_TEST(o.moved() == 4 * (55 + 2 + 50 + 15));
}

// Each operand is read or written once. The numbers are the elements that each kernel reads and writes.
BOOST_AUTO_TEST_CASE(bytes_that_kernels_move) {
  const std::vector<KernelCase> cases = kernel_cases();
  constexpr double x = 400 * 64, y = 400 * 192, w = 192 * 64, map = 50 * 64, image = 50 * 64, n = 139'018;
  const std::vector<double> fc1 = numbers_in(case_named(cases, "gelu forward, vit-micro fc1").size);
  const double hidden = fc1.at(0) * fc1.at(1), grid = 28 * 28 * 64;
  // A block of rows of the map; the stride is the number of columns, rounded up to a multiple of 16.
  const std::vector<double> of_block = numbers_in(case_named(cases, "block dS of A, softmax of 4096 tokens").size);
  const double rows = of_block.at(0), block = rows * 16 * std::ceil(of_block.at(1) / 16);
  struct Elements {
    double read, written;
  };
  const std::map<std::string, Elements> expected{
      {"gemm forward, vit-micro qkv", {x + w, y}},
      {"gemm input gradient, vit-micro qkv", {y + w, x}},
      {"gemm weight gradient, vit-micro qkv", {y + x, w}},
      {"gemm q k^T, vit-micro head", {2 * 50 * 16, map}},
      {"gemm A v, vit-micro head", {map + 50 * 16, 50 * 16}},
      {"l1 distance, vit-micro qkv", {x + w + 192, y}},
      {"l1 scores, vit-micro head", {2 * 50 * 16, 50 * 50}},
      {"clamped gradient, vit-micro qkv", {x + w + y, x}},
      {"adder weight gradient, vit-micro qkv", {x + w + y, w}},
      {"softmax forward, vit-micro head", {map, map + 2 * 50}},
      {"softmax again, vit-micro head", {map + 2 * 50, map}},
      {"softmax backward, vit-micro head", {2 * map, map}},
      {"gelu forward, vit-micro fc1", {hidden, hidden}},
      {"gelu backward, vit-micro fc1", {2 * hidden, hidden}},
      {"sigmoid gate forward, vit-micro image", {2 * image, image}},
      {"sigmoid gate backward, vit-micro image", {3 * image, 2 * image}},
      {"layer norm forward, vit-micro", {x + 2 * 64, x + 2 * 400}},
      {"layer norm backward, vit-micro", {2 * x + 64 + 2 * 400, x}},
      {"layer norm parameters, vit-micro", {2 * x + 2 * 400, 2 * 64}},
      {"block dS of A, softmax of 4096 tokens", {2 * block + rows, block}},
      {"bias gradient, vit-micro", {x, 64}},
      {"adamw, vit-micro", {4 * n, 3 * n}},
      {"depth-wise 3 x 3 forward, 28 x 28 x 64", {grid + 9 * 64 + 64, grid}},
      {"depth-wise 3 x 3 input gradient, 28 x 28 x 64", {grid + 9 * 64, grid}},
      {"depth-wise 3 x 3 weight gradient, 28 x 28 x 64", {2 * grid, 9 * 64}}};
  for (const auto& [name, elements] : expected) {
    Operands o;
    case_named(cases, name).prepare(o);
    BOOST_TEST(o.read() == 4 * elements.read, name);
    BOOST_TEST(o.moved() == 4 * (elements.read + elements.written), name);
  }
}

BOOST_AUTO_TEST_CASE(resources_have_names_and_units) {
  for (const auto& [of, name, unit] : {std::tuple(Resource::multiply_add, "multiply-add", "GF/s"),
                                       {Resource::gemm, "gemm", "GF/s"},
                                       {Resource::l1, "l1", "Gelem/s"},
                                       {Resource::clamp, "clamp", "Gelem/s"},
                                       {Resource::exp, "exp", "Gelem/s"},
                                       {Resource::l1_cache, "L1 cache", "GB/s"},
                                       {Resource::l2_cache, "L2 cache", "GB/s"},
                                       {Resource::l3_cache, "L3 cache", "GB/s"},
                                       {Resource::memory, "memory", "GB/s"}}) {
    BOOST_TEST(name_of(of) == std::string(name));
    BOOST_TEST(unit_of(of) == std::string(unit));
  }
}

BOOST_AUTO_TEST_SUITE_END()
