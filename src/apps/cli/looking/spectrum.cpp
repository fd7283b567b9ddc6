// heed spectrum: singular values of a trained model's attention maps.
#include "src/apps/cli/shared/table.h"
#include "src/apps/cli/shared/trained.h"

#include "heed/attention/capabilities/map.h"
#include "heed/analysis/spectrum.h"
#include "heed/io/file.h"
#include "heed/base/parallel.h"
#include "heed/base/printable.h"

#include <fmt/format.h>

#include <iostream>
#include <map>

namespace heed::cli {

namespace {

struct SpectrumArguments : ModelChoice {
  std::string output;
  Index images = 500;
};

/// The map A with or without the identity added.
enum Form { plain, with_identity, matrices };
constexpr const char* matrix_names[matrices] = {"A", "A+I"};

/// Sums over the maps of one head.
struct HeadSpectrum {
  std::vector<double> values, cumulative;
  double rank = 0, maps = 0;

  void add(const Spectrum& s) {
    ++maps;
    values.resize(s.values.size()), cumulative.resize(s.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += s.values[i], cumulative[i] += s.cumulative[i];
    rank += static_cast<double>(s.rank);
  }
};

struct BlockSpectrum {
  std::string mechanism;
  Form used = plain;            ///< matrix that multiplies v
  Index rows = 0, columns = 0;  ///< size of a map
  bool of_channels = false;
  std::vector<std::array<HeadSpectrum, matrices>> heads{};

  /// Returns the forms to measure: the identity can only be added to square maps.
  std::vector<Form> forms() const { return rows == columns ? std::vector{plain, with_identity} : std::vector{plain}; }
  std::string size() const { return rows == columns ? fmt::format("{}", rows) : fmt::format("{} x {}", rows, columns); }
};

/// Adds the spectra of a layer's maps in a batch.
void add_maps(const AttentionSite<float>& site, BlockSpectrum& block) {
  block.mechanism = site.mechanism.name();
  const MapTraits traits = site.mechanism.maps()->map_traits();
  block.used = traits.identity ? with_identity : plain;
  block.of_channels = traits.axes == MapAxes::channels;
  const Tensor<float> maps = attention_maps(site);
  const Index heads = maps.shape()[1], rows = maps.shape()[2], columns = maps.shape()[3],
              count = maps.shape()[0] * heads;
  require(block.heads.empty() || (rows == block.rows && columns == block.columns),
          "{}: maps of {} x {} and {} x {} have no common spectrum; expected examples of equal length", site.layer,
          block.rows, block.columns, rows, columns);
  block.rows = rows;
  block.columns = columns;
  block.heads.resize(static_cast<std::size_t>(heads));
  std::vector<std::array<Spectrum, matrices>> spectra(static_cast<std::size_t>(count));
  parallel_for(count, [&](Index map) {
    const float* const used = maps.data() + map * rows * columns;
    for (const Form matrix : block.forms()) {
      std::vector<double> a(used, used + rows * columns);
      if (matrix != block.used)
        for (Index i = 0; i < rows; ++i) a[static_cast<std::size_t>(i * (columns + 1))] += matrix - block.used;
      spectra[static_cast<std::size_t>(map)][matrix] = spectrum_of(std::move(a), rows);
    }
  });
  for (std::size_t map = 0; map < spectra.size(); ++map)
    for (const Form matrix : block.forms()) block.heads[map % block.heads.size()][matrix].add(spectra[map][matrix]);
}

std::string spectrum_csv(const std::map<Index, BlockSpectrum>& blocks) {
  Table table;
  table.data({"mechanism", "matrix", "used", "block", "head", "index"});
  table.data({"singular_value", "cumulative", "rank"}, significant(6));
  for (const auto& [b, block] : blocks)
    for (const Form matrix : block.forms())
      for (std::size_t h = 0; h < block.heads.size(); ++h) {
        const HeadSpectrum& head = block.heads[h][matrix];
        for (std::size_t i = 0; i < head.values.size(); ++i)
          table.add({block.mechanism, matrix_names[matrix], matrix == block.used, b + 1, h + 1, i + 1,
                     head.values[i] / head.maps, head.cumulative[i] / head.maps, head.rank / head.maps});
      }
  return table.csv();
}

/// Returns the mean equivalent rank over maps and heads, with a star for the form that the model uses.
std::string rank_text(const BlockSpectrum& block, Form matrix) {
  if (matrix == with_identity && block.rows != block.columns) return "- ";
  double sum = 0;
  for (const auto& head : block.heads) sum += head[matrix].rank / head[matrix].maps;
  return fmt::format("{:.1f}{}", sum / static_cast<double>(block.heads.size()), block.used == matrix ? "*" : " ");
}

int spectrum_command(const SpectrumArguments& a) {
  use_threads(a.threads);
  const std::string output = a.output.empty() ? a.run + "/spectrum.csv" : a.output;
  require_own_file({"-o", output}, a.files());
  TrainedModel trained(a, a.sets);
  require_writable({"-o", output}, ".csv");
  std::map<Index, BlockSpectrum> blocks;
  const Index images = visit_test_examples(trained, a.images, [&](Index block, const AttentionSite<float>& site) {
    if (site.mechanism.maps()) add_maps(site, blocks[block]);
  });
  require(!blocks.empty(), "{}: no block of this model has an attention map; the mechanism is {}", a.run,
          trained.experiment.attention.mechanism[0]);
  write_file(output, spectrum_csv(blocks));
  std::size_t width = 6;
  for (const auto& [b, block] : blocks) width = std::max(width, block.size().size() + 2);
  std::cout << fmt::format(
      "equivalent rank of attention maps A, mean over heads and {} test {}; *: used by the model\nblock  mechanism   "
      "{:>{}}        A    A + I\n",
      images, holds_sequences(trained.experiment.data) ? "sequences" : "images", "size", width);
  for (const auto& [b, block] : blocks)
    std::cout << fmt::format("{:>5}  {:<12}{:>{}}{:>9}{:>9}  {}\n", b + 1, block.mechanism, block.size(), width,
                             rank_text(block, plain), rank_text(block, with_identity),
                             block.of_channels ? "of channels" : "of tokens");
  std::cout << printable(output) << "\n";
  return ok;
}

constexpr const char* spectrum_help =
    "The equivalent rank of a map is the number of its largest singular values that make up 0.9 of the sum of all (Shu "
    "et al., Adder attention, Section 3.2.2). Each map is measured with and without the identity added, whichever of "
    "the two the model uses; a map of fewer keys than queries is not square, and is measured without the identity. The "
    "file has a line for each matrix, block, head and index, with three means over the images: the singular value, the "
    "cumulative share, which is the sum of the values up to this one divided by the sum of all, and the equivalent "
    "rank. experiments/tools/plot_spectrum.py draws it. Mechanisms without a map are left out.";

}  // namespace

void add_spectrum(Command program) {
  static SpectrumArguments a;
  Command command = program.command("spectrum", "Measure the singular values of a trained model's attention maps");
  command.option("RUN", &a.run, "run directory", {.required = true});
  command.option("--images", &a.images, "number of test images, from the first; default: 500, or all if fewer",
                 {.value = "N", .range = {{1, 1'000'000}}});
  command.option("-o,--output", &a.output, "default: RUN/spectrum.csv", {.value = "FILE.csv"});
  add_run_choice(command, a);
  command.footer(spectrum_help);
  command.action([] { return spectrum_command(a); });
}

}  // namespace heed::cli
