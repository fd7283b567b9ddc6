// heed residual: convergence of the Newton-Raphson iteration on the matrices that a trained model inverts.
#include "src/apps/cli/shared/table.h"
#include "src/apps/cli/shared/trained.h"

#include "heed/attention/capabilities/inverse.h"
#include "heed/analysis/newton_residual.h"
#include "heed/io/file.h"
#include "heed/base/parallel.h"
#include "heed/base/printable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <map>

namespace heed::cli {

namespace {

using kernels::NewtonStart;

struct ResidualArguments : ModelChoice {
  std::string output;
  Index images = 200, iterations = 30;
};

struct Start {
  NewtonStart start;
  const char* name;
};
constexpr std::array<Start, 3> starts{
    {{NewtonStart::damped, "damped"}, {NewtonStart::plain, "plain"}, {NewtonStart::backtrack, "backtrack"}}};

constexpr double threshold = 1e-3;  // residual below which the table counts a matrix as converged
constexpr Index paper_steps = 20;   // steps in Figure 4 of the SOFT paper

/// Matrix A of one image and head, and the iteration on it from each start.
struct MatrixResidual {
  GramCondition gram{};
  std::array<NewtonResidual, starts.size()> in_float{}, in_double{};
};
using Head = std::pair<Index, Index>;  // block, head
using Residuals = std::map<Head, std::vector<MatrixResidual>>;

MatrixResidual measure(Index m, Index iterations, const float* A) {
  const std::vector<double> exact(A, A + m * m);
  MatrixResidual result{gram_condition(m, exact.data())};
  for (std::size_t s = 0; s < starts.size(); ++s) {
    const kernels::NewtonInverse newton{m, iterations, starts[s].start};
    result.in_float[s] = newton_residual(newton, A);
    result.in_double[s] = newton_residual(newton, exact.data());
  }
  return result;
}

/// Adds the residuals of a layer's matrices in a batch.
void add_matrices(const AttentionSite<float>& site, Index block, Index iterations, Residuals& residuals) {
  std::vector<Tensor<float>> grams;
  for (const AttentionInput<float>& in : site.inputs) grams.push_back(site.mechanism.inverse()->inverted(in));
  const Index heads = grams.front().shape()[0];
  std::vector<MatrixResidual> measured(grams.size() * static_cast<std::size_t>(heads));
  parallel_for(static_cast<Index>(measured.size()), [&](Index i) {
    const Tensor<float>& gram = grams[static_cast<std::size_t>(i / heads)];
    const Index m = gram.shape()[1];  // number of landmarks, or fewer for a shorter sequence
    measured[static_cast<std::size_t>(i)] = measure(m, iterations, gram.data() + i % heads * m * m);
  });
  for (std::size_t i = 0; i < measured.size(); ++i)
    residuals[{block, static_cast<Index>(i) % heads}].push_back(std::move(measured[i]));
}

struct MedianAndWorst {
  double median, worst;
};

/// Returns the median and the largest of value(matrix) over the matrices of a head.
template <class Value>
MedianAndWorst over(const std::vector<MatrixResidual>& matrices, const Value& value) {
  std::vector<double> values;
  for (const MatrixResidual& matrix : matrices) values.push_back(value(matrix));
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.back()};
}

std::string residual_csv(const Residuals& residuals, Index iterations) {
  Table table;
  table.data({"init", "dtype", "block", "head", "iteration"});
  table.data(
      {"relative_median", "relative_worst", "identity_median", "identity_worst", "condition_median", "condition_worst"},
      significant(4));
  for (const auto& [head, matrices] : residuals) {
    const MedianAndWorst condition = over(matrices, [](const auto& matrix) { return matrix.gram.condition(); });
    for (std::size_t s = 0; s < starts.size(); ++s)
      for (const bool in_double : {false, true})
        for (Index k = 0; k <= iterations; ++k) {
          const auto curves = [&](const auto& matrix) -> const NewtonResidual& {
            return in_double ? matrix.in_double[s] : matrix.in_float[s];
          };
          const auto at = static_cast<std::size_t>(k);
          const auto relative = over(matrices, [&](const auto& matrix) { return curves(matrix).relative[at]; });
          const auto identity = over(matrices, [&](const auto& matrix) { return curves(matrix).identity[at]; });
          table.add({starts[s].name, in_double ? "f64" : "f32", head.first + 1, head.second + 1, k, relative.median,
                     relative.worst, identity.median, identity.worst, condition.median, condition.worst});
        }
  }
  return table.csv();
}

/// Returns "14 (17)": steps until the residual stays below the threshold, median and worst; "-" if it never does.
std::string steps_text(const std::vector<MatrixResidual>& matrices, std::size_t start, Index iterations) {
  const MedianAndWorst steps = over(matrices, [&](const auto& matrix) {
    const Index k = matrix.in_float[start].steps_below(threshold);
    return static_cast<double>(k < 0 ? iterations + 1 : k);
  });
  const auto text = [&](double k) {
    return k > static_cast<double>(iterations) ? "-" : fmt::format("{:.0f}", std::ceil(k));
  };
  return fmt::format("{} ({})", text(steps.median), text(steps.worst));
}

void print(const Residuals& residuals, const std::string& examples, Index iterations) {
  std::cout << fmt::format(
      "steps until |A X_k A - A| / |A| stays below {} in float: median (worst) of {}; -: not within {}\n"
      "block head  condition of A         |A|_1/l_1  {:<12}{:<12}{:<12}\n",
      threshold, examples, iterations, starts[0].name, starts[1].name, starts[2].name);
  std::array<Index, starts.size()> converged{};
  Index total = 0;
  for (const auto& [head, matrices] : residuals) {
    const MedianAndWorst condition = over(matrices, [](const auto& matrix) { return matrix.gram.condition(); });
    const MedianAndWorst norms =
        over(matrices, [](const auto& matrix) { return matrix.gram.column_sum / matrix.gram.largest; });
    std::string line = fmt::format("{:>5} {:>4}  {:<23}{:<11}", head.first + 1, head.second + 1,
                                   fmt::format("{:.1e} ({:.1e})", condition.median, condition.worst),
                                   fmt::format("{:.2f}", norms.worst));
    for (std::size_t s = 0; s < starts.size(); ++s) line += fmt::format("{:<12}", steps_text(matrices, s, iterations));
    std::cout << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
    total += static_cast<Index>(matrices.size());
    for (const MatrixResidual& matrix : matrices)
      for (std::size_t s = 0; s < starts.size(); ++s)
        if (const auto& curve = matrix.in_float[s].relative; static_cast<Index>(curve.size()) > paper_steps)
          converged[s] += curve[paper_steps] < threshold;
  }
  if (iterations < paper_steps) return;
  std::cout << fmt::format("below {} after {} steps, of {} matrices:", threshold, paper_steps, total);
  for (std::size_t s = 0; s < starts.size(); ++s) std::cout << fmt::format(" {} {}", starts[s].name, converged[s]);
  std::cout << "\n";
}

/// Returns the labels of the settings in which mechanisms invert a matrix: "soft, nystrom".
std::string inverting_settings() {
  std::vector<std::string> labels;
  for (const MechanismEntry& entry : mechanisms())
    for (const MechanismSetting& setting : entry.settings())
      if (entry.make(setting.options)->inverse()) labels.push_back(setting.label);
  return fmt::format("{}", fmt::join(labels, ", "));
}

int residual_command(const ResidualArguments& a) {
  use_threads(a.threads);
  const std::string output = a.output.empty() ? a.run + "/residual.csv" : a.output;
  require_own_file({"-o", output}, a.files());
  TrainedModel trained(a, a.sets);
  require_writable({"-o", output}, ".csv");
  Residuals residuals;
  const Index images = visit_test_examples(trained, a.images, [&](Index block, const AttentionSite<float>& site) {
    if (site.mechanism.inverse()) add_matrices(site, block, a.iterations, residuals);
  });
  require(!residuals.empty(), "{}: the mechanism, {}, inverts no matrix with its options; expected one that does: {}",
          a.run, trained.experiment.attention.mechanism[0], inverting_settings());
  write_file(output, residual_csv(residuals, a.iterations));
  const char* const noun = holds_sequences(trained.experiment.data) ? "sequences" : "images";
  print(residuals, fmt::format("{} test {}", images, noun), a.iterations);
  std::cout << printable(output) << "\n";
  return ok;
}

constexpr const char* residual_help =
    "SOFT, for example, inverts a matrix A in each head, the kernel matrix of its landmarks, by X_{k+1} = 2 X_k - "
    "X_k A X_k. The residuals |A X_k A - A| / |A| (Lu et al., SOFT, Section 4.4, Figure 4) and |I - A X_k| are "
    "measured in spectral norms for each starting factor of the iteration, in float, as in the model, and in "
    "double. The table has the condition number of A and the worst ratio of |A|_1, its largest column sum, to "
    "its largest eigenvalue. The file has a line for each start, number type, block, head and k, with the median "
    "and the maximum over the images. experiments/tools/plot_residual.py draws it.";

}  // namespace

void add_residual(Command program) {
  static ResidualArguments a;
  Command command =
      program.command("residual", "Measure the convergence of the iterative matrix inverses in a trained model");
  command.option("RUN", &a.run, "run directory", {.required = true});
  command.option("--images", &a.images, "number of test images, from the first; default: 200, or all if fewer",
                 {.value = "N", .range = {{1, 1'000'000}}});
  command.option("--iterations", &a.iterations, "steps, 0 to 64; default: 30", {.value = "K", .range = {{0, 64}}});
  command.option("-o,--output", &a.output, "default: RUN/residual.csv", {.value = "FILE.csv"});
  add_run_choice(command, a);
  command.footer(residual_help);
  command.action([] { return residual_command(a); });
}

}  // namespace heed::cli
