// heed spectrum and heed residual, on runs with random weights.
#include "support/cli.h"
#include "support/lines.h"
#include "heed/analysis/newton_residual.h"
#include "heed/analysis/spectrum.h"
#include "heed/attention/capabilities/inverse.h"
#include "heed/io/weights.h"
#include "heed/nn/vit.h"
#include "heed/train/runs/run.h"
#include "run_model.h"

#include <boost/test/unit_test.hpp>

#include <sstream>

using namespace heed;
using namespace heed::test;

namespace {

/// Run directories of models with 5 tokens, 2 blocks and 2 heads.
struct Runs {
  Workshop workshop;

  Runs() {
    run("softmax", {{"softmax"}, {}, {}});
    run("adder", {{"adder"}, {}, {}});
    run("simple", {{"aft"}, {{"variant", {"simple", ""}}}, {}});
    run("xca", {{"xca"}, {}, {}});
    run("soft", {{"softmax", "soft"}, {{"landmarks", {"4", ""}}}, {}});
  }

  /// `scale`: factor of the initial weights. With a large factor, the maps of heads and images differ.
  void run(const std::string& name, const AttentionConfig& attention, float scale = 1) const {
    Experiment x = workshop.experiment();
    x.attention = attention;
    const VisionTransformer model(x.model, x.attention);
    Parameters<float> parameters(model.parameters());
    parameters.initialise(5);
    for (ParameterId id = 0; id < parameters.list().size(); ++id)
      for (float& weight : parameters[id]) weight *= scale;
    const RunPaths paths(workshop / name);
    std::filesystem::create_directory(paths.directory);
    write_file(paths.config(), to_toml(x));
    SafetensorsWriter weights;
    add_weights(weights, parameters);
    weights.write(paths.best());
  }
};

std::vector<std::vector<std::string>> table(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) {
    std::istringstream cells(line);
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(analysis)

BOOST_FIXTURE_TEST_CASE(the_spectrum_of_each_head_without_and_with_the_identity, Runs) {
  const Finished run = heed_with({"spectrum", workshop / "adder", "--images", "20"});
  BOOST_TEST(run.status == 0, run.err);
  BOOST_TEST(run.out.find("mean over heads and 20 test images") != std::string::npos, run.out);
  const auto rows = table(workshop / "adder/spectrum.csv");
  BOOST_REQUIRE(rows.size() == 1 + 2 * 2 * 2 * 5u);  // A, A + I; blocks, heads, indices
  double before = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    BOOST_REQUIRE(rows[i].size() == 9u);
    BOOST_TEST((rows[i][1] == "A+I") == (rows[i][2] == "true"));
    const double cumulative = std::stod(rows[i][7]);
    BOOST_TEST((rows[i][5] == "1" || cumulative >= before));
    if (rows[i][5] == "5") BOOST_TEST(cumulative == 1);
    before = cumulative;
  }
  // Maps of untrained blocks are nearly uniform: one singular value is near 1, the others are small; those of A + I are
  // near 2, 1, 1, 1, 1.
  BOOST_TEST(std::stod(rows[1][6]) > 0.9);
  BOOST_TEST(rows[1][8] == "1");
  for (const auto& row : rows)
    if (row[1] == "A+I") BOOST_TEST(row[8] == "5");
}

// The map is over 8 channels instead of 5 tokens.
BOOST_FIXTURE_TEST_CASE(the_spectrum_of_a_map_among_channels, Runs) {
  const Finished run = heed_with({"spectrum", workshop / "xca", "--images", "20"});
  BOOST_TEST(run.status == 0, run.err);
  BOOST_TEST(run.out.find("of channels") != std::string::npos, run.out);
  BOOST_TEST(table(workshop / "xca/spectrum.csv").size() == 1 + 2 * 2 * 2 * 8u);  // A, A + I; blocks, heads, indices
}

// Each value is a mean over the images of two batches, of 16 and of 4. A map that contains the identity is also
// measured without it, and any other map also with it. 1e-5 is above the rounding errors of the file's six digits and
// of the maps.
BOOST_FIXTURE_TEST_CASE(spectra_are_means_over_the_images_maps, Runs) {
  for (const std::vector<std::string>& mechanisms :
       {std::vector<std::string>{"softmax", "adder"}, std::vector<std::string>{"xca", "softmax"}}) {
    const std::string name = "large-" + mechanisms[0];
    run(name, {mechanisms, {}, {}}, 8);
    const Finished finished = heed_with({"spectrum", workshop / name, "--images", "20"});
    BOOST_REQUIRE(finished.status == 0);
    const WorkshopImages images(workshop, "t10k");
    const std::vector<Tensor<float>> maps = RunModel(workshop / name).maps(images.pixels.view().part(0, 20));
    const auto rows = table(workshop / (name + "/spectrum.csv"));
    std::size_t row = 1;
    for (std::size_t block = 0; block < 2; ++block) {
      const Index n = maps[block].shape()[2];
      const double within = mechanisms[block] == "adder" ? 1 : 0;  // multiple of the identity in the model's map
      std::string ranks;
      for (const double identity : {0.0, 1.0}) {
        double ranks_of_heads = 0;
        for (Index head = 0; head < 2; ++head) {
          std::vector<double> values(static_cast<std::size_t>(n)), cumulative(values);
          double rank = 0;
          for (Index image = 0; image < 20; ++image) {
            const float* const map = maps[block].data() + (image * 2 + head) * n * n;
            std::vector<double> matrix(map, map + n * n);
            for (Index i = 0; i < n; ++i) matrix[static_cast<std::size_t>(i * n + i)] += identity - within;
            const Spectrum spectrum = spectrum_of(matrix, n);
            for (std::size_t i = 0; i < values.size(); ++i)
              values[i] += spectrum.values[i] / 20, cumulative[i] += spectrum.cumulative[i] / 20;
            rank += static_cast<double>(spectrum.rank);
          }
          rank /= 20;
          for (std::size_t i = 0; i < values.size(); ++i, ++row) BOOST_TEST_CONTEXT(name << " row " << row) {
              BOOST_REQUIRE(row < rows.size());
              const std::vector<std::string> expected{
                  mechanisms[block],         identity == 1 ? "A+I" : "A", identity == within ? "true" : "false",
                  std::to_string(block + 1), std::to_string(head + 1),    std::to_string(i + 1)};
              BOOST_TEST(std::vector<std::string>(rows[row].begin(), rows[row].begin() + 6) == expected,
                         boost::test_tools::per_element());
              BOOST_TEST(std::abs(std::stod(rows[row][6]) - values[i]) < 1e-5 * (1 + values[i]));
              BOOST_TEST(std::abs(std::stod(rows[row][7]) - cumulative[i]) < 1e-5);
              BOOST_TEST(std::abs(std::stod(rows[row][8]) - rank) < 1e-5 * (1 + rank));
            }
          ranks_of_heads += rank / 2;
        }
        ranks += fmt::format(" {:.1f}{}", ranks_of_heads, identity == within ? "*" : "");
      }
      check_contains(in_one_line(finished.out),
                     {fmt::format(" {} {} {}{} of {}", block + 1, mechanisms[block], n, ranks,
                                  mechanisms[block] == "xca" ? "channels" : "tokens")});
    }
    BOOST_TEST(row == rows.size());
  }
}

// Medians and maxima over an odd and an even number of images. The file has four digits. The images are taken from
// `heed features`: rounding errors grow in the iteration, so the matrices must have the same bits.
BOOST_FIXTURE_TEST_CASE(residuals_are_those_of_the_inverted_matrices, Runs) {
  using kernels::NewtonStart;
  run("large", {{"softmax", "soft"}, {{"landmarks", {"4", ""}}}, {}}, 8);
  BOOST_TEST(heed_with({"features", workshop / "large", "--pixels", "-o", workshop / "pixels"}).status == 0);
  const Tensor<float> pixels = SafetensorsFile(workshop / "pixels").read<float>("features");
  const auto middle = [](std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  };
  const auto close = [](const std::string& text, double expected) {
    const double found = std::stod(text);
    return std::abs(found - expected) <= 1e-3 * expected;
  };
  for (const auto& [count, iterations] : {std::pair<Index, Index>{5, 24}, {6, 9}}) {
    const Finished finished = heed_with({"residual", workshop / "large", "--images", std::to_string(count),
                                         "--iterations", std::to_string(iterations)});
    BOOST_REQUIRE(finished.status == 0);
    std::vector<Tensor<float>> inverted;
    RunModel(workshop / "large")
        .logits(View<const float>(pixels.data(), Shape{count, 1, 8, 8}), [&](const AttentionSite<float>& site) {
          if (site.mechanism.inverse())
            for (const AttentionInput<float>& in : site.inputs)
              inverted.push_back(site.mechanism.inverse()->inverted(in));
        });
    BOOST_REQUIRE(std::ssize(inverted) == count);
    const auto rows = table(workshop / "large/residual.csv");
    const std::string printed = in_one_line(finished.out);
    std::size_t row = 1;
    std::array<Index, 3> converged{};
    for (Index head = 0; head < 2; ++head) {
      std::vector<double> conditions;
      double norm = 0;
      for (const Tensor<float>& A : inverted) {
        const std::vector<double> matrix(A.data() + head * 16, A.data() + (head + 1) * 16);
        const GramCondition condition = gram_condition(4, matrix.data());
        conditions.push_back(condition.largest / condition.smallest);
        norm = std::max(norm, condition.column_sum / condition.largest);
      }
      const double worst_condition = *std::ranges::max_element(conditions);
      std::string line =
          fmt::format(" 2 {} {:.1e} ({:.1e}) {:.2f}", head + 1, middle(conditions), worst_condition, norm);
      for (const auto& [which, start, name] : {std::tuple(0U, NewtonStart::damped, "damped"),
                                               {1U, NewtonStart::plain, "plain"},
                                               {2U, NewtonStart::backtrack, "backtrack"}}) {
        const kernels::NewtonInverse newton{4, iterations, start};
        std::vector<NewtonResidual> in_float, in_double;
        std::vector<double> steps;
        for (const Tensor<float>& A : inverted) {
          const float* const own = A.data() + head * 16;
          const std::vector<double> matrix(own, own + 16);
          in_float.push_back(newton_residual(newton, own));
          in_double.push_back(newton_residual(newton, matrix.data()));
          const std::vector<double>& curve = in_float.back().relative;
          const auto above = std::find_if(curve.rbegin(), curve.rend(), [](double x) { return !(x < 1e-3); });
          steps.push_back(static_cast<double>(curve.rend() - above));  // iterations + 1 if not converged
          if (curve.size() > 20) converged[which] += curve[20] < 1e-3;
        }
        const auto text = [&](double k) {
          return k > static_cast<double>(iterations) ? "-" : fmt::format("{:.0f}", std::ceil(k));
        };
        line += fmt::format(" {} ({})", text(middle(steps)), text(*std::ranges::max_element(steps)));
        for (const auto& [type, residuals] : {std::pair("f32", &in_float), {"f64", &in_double}})
          for (Index k = 0; k <= iterations; ++k, ++row) BOOST_TEST_CONTEXT(name << " " << type << " " << k) {
              BOOST_REQUIRE(row < rows.size());
              const std::vector<std::string> expected{name, type, "2", std::to_string(head + 1), std::to_string(k)};
              BOOST_TEST(std::vector<std::string>(rows[row].begin(), rows[row].begin() + 5) == expected,
                         boost::test_tools::per_element());
              std::vector<double> relative, identity;
              for (const NewtonResidual& one : *residuals) {
                relative.push_back(one.relative[static_cast<std::size_t>(k)]);
                identity.push_back(one.identity[static_cast<std::size_t>(k)]);
              }
              const double values[] = {middle(relative),   *std::ranges::max_element(relative),
                                       middle(identity),   *std::ranges::max_element(identity),
                                       middle(conditions), worst_condition};
              for (std::size_t i = 0; i < 6; ++i)
                BOOST_TEST(close(rows[row][5 + i], values[i]), rows[row][5 + i] << " is not " << values[i]);
            }
      }
      check_contains(printed, {line});
    }
    BOOST_TEST(row == rows.size());
    const std::string end = fmt::format("below 0.001 after 20 steps, of {} matrices: damped {} plain {} backtrack {}",
                                        2 * count, converged[0], converged[1], converged[2]);
    BOOST_TEST((printed.find(end) != std::string::npos) == (iterations >= 20), printed << " lacks " << end);
  }
}

BOOST_FIXTURE_TEST_CASE(residuals_fall_and_do_not_depend_on_threads, Runs) {
  for (const char* const threads : {"1", "2"}) {
    const Finished run = heed_with({"residual", workshop / "soft", "--images", "20", "--iterations", "20", "--threads",
                                    threads, "-o", workshop / (threads + std::string(".csv"))});
    BOOST_TEST(run.status == 0, run.err);
    BOOST_TEST(run.out.find("below 0.001 after 20 steps, of 40 matrices: damped 40") != std::string::npos, run.out);
  }
  BOOST_TEST((read_file(workshop / "1.csv") == read_file(workshop / "2.csv")));
  const auto rows = table(workshop / "1.csv");
  BOOST_REQUIRE(rows.size() == 1 + 3 * 2 * 2 * 21u);  // starts, number types, heads of block 2, steps
  for (std::size_t i = 1; i < rows.size(); ++i) {
    BOOST_REQUIRE(rows[i].size() == 11u);
    BOOST_TEST(rows[i][2] == "2");
    BOOST_TEST(std::stod(rows[i][5]) <= std::stod(rows[i][6]));
  }
}

BOOST_FIXTURE_TEST_CASE(runs_that_have_nothing_to_analyse, Runs) {
  check_refusal({"residual", workshop / "softmax"},
                {"softmax: the mechanism, softmax, inverts no matrix with its options; expected one that does: soft"});
  check_refusal({"spectrum", workshop / "simple"}, {"no block of this model has an attention map"});
  check_refusal({"spectrum", workshop / "adder", "--images", "0"}, {"--images"});
  check_refusal({"spectrum", workshop / "nowhere"}, {"contains no run"});
  check_refusal({"residual", workshop / "soft", "--iterations", "65"}, {"--iterations"});
  check_refusal({"residual", workshop / "soft", "-o", workshop / "none/x.csv"}, {"none/x.csv"});
  for (const auto& [command, run] : {std::pair("residual", workshop / "soft"), {"spectrum", workshop / "adder"}}) {
    check_refusal({command, run, "-o", run + "/metrics.csv"}, {"metrics.csv: is also a file of RUN"});
    check_refusal({command, run, "-o", run + "/x.svg"}, {"x.svg: expected a name that ends in .csv"});
  }
  BOOST_TEST(!std::filesystem::exists(workshop / "simple/spectrum.csv"));
}

BOOST_AUTO_TEST_SUITE_END()
