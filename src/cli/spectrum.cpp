// heed spectrum: the singular values of a trained model's attention maps.
#include "trained.h"

#include "heed/analysis/spectrum.h"
#include "heed/io/file.h"
#include "heed/base/parallel.h"
#include "heed/base/printable.h"

#include <fmt/format.h>

#include <iostream>
#include <map>

namespace heed::cli {

namespace {

struct SpectrumArguments {
  std::string run, output, weights;
  std::vector<std::string> sets;
  Index images = 500;
  int threads = 0;
};

/// The map A without and with the identity.
enum Form { plain, with_identity, matrices };
constexpr const char* matrix_names[matrices] = {"A", "A+I"};

/// Sums over the images of one head.
struct HeadSpectrum {
  std::vector<double> values, cumulative;
  double rank = 0;

  void add(const Spectrum& s) {
    values.resize(s.values.size()), cumulative.resize(s.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += s.values[i], cumulative[i] += s.cumulative[i];
    rank += static_cast<double>(s.rank);
  }
};

struct BlockSpectrum {
  std::string mechanism;
  Form used = plain;  ///< what the model multiplies v by
  Index size = 0;     ///< rows of a map
  bool of_channels = false;
  std::vector<std::array<HeadSpectrum, matrices>> heads{};
};

/// Adds the spectra of a layer's maps of a batch.
void add_maps(const AttentionSite<float>& site, BlockSpectrum& block) {
  block.mechanism = site.mechanism.name();
  const MechanismTraits traits = site.mechanism.traits();
  block.used = traits.identity ? with_identity : plain;
  block.of_channels = traits.map_axes == MapAxes::channels;
  const Tensor<float> maps = attention_maps(site);
  const Index heads = maps.shape()[1], size = maps.shape()[2], count = maps.shape()[0] * heads;
  require(maps.shape()[3] == size,
          "{}: the attention map is {} x {}; expected a square, to which the identity can be "
          "added",
          site.layer, size, maps.shape()[3]);
  block.size = size;
  block.heads.resize(static_cast<std::size_t>(heads));
  std::vector<std::array<Spectrum, matrices>> spectra(static_cast<std::size_t>(count));
  parallel_for(count, [&](Index map) {
    const float* const used = maps.data() + map * size * size;
    for (const Form matrix : {plain, with_identity}) {
      std::vector<double> a(used, used + size * size);
      for (Index i = 0; i < size; ++i) a[static_cast<std::size_t>(i * (size + 1))] += matrix - block.used;
      spectra[static_cast<std::size_t>(map)][matrix] = spectrum_of(std::move(a));
    }
  });
  for (std::size_t map = 0; map < spectra.size(); ++map)
    for (const Form matrix : {plain, with_identity})
      block.heads[map % block.heads.size()][matrix].add(spectra[map][matrix]);
}

std::string to_csv(const std::map<Index, BlockSpectrum>& blocks, Index count) {
  const double images = static_cast<double>(count);
  std::string csv = "mechanism,matrix,used,block,head,index,singular_value,cumulative,rank\n";
  for (const auto& [b, block] : blocks)
    for (const Form matrix : {plain, with_identity})
      for (std::size_t h = 0; h < block.heads.size(); ++h) {
        const HeadSpectrum& head = block.heads[h][matrix];
        for (std::size_t i = 0; i < head.values.size(); ++i)
          csv += fmt::format("{},{},{},{},{},{},{:.6g},{:.6g},{:.6g}\n", block.mechanism, matrix_names[matrix],
                             matrix == block.used, b + 1, h + 1, i + 1, head.values[i] / images,
                             head.cumulative[i] / images, head.rank / images);
      }
  return csv;
}

/// Mean over images and heads of the equivalent rank.
double mean_rank(const BlockSpectrum& block, Form matrix, Index images) {
  double sum = 0;
  for (const auto& head : block.heads) sum += head[matrix].rank;
  return sum / static_cast<double>(images * static_cast<Index>(block.heads.size()));
}

int spectrum_command(const SpectrumArguments& a) {
  use_threads(a.threads);
  TrainedModel trained(a.run, a.sets, a.weights);
  std::map<Index, BlockSpectrum> blocks;
  const Index images = visit_test_examples(trained, a.images, [&](Index block, const AttentionSite<float>& site) {
    if (site.mechanism.traits().map) add_maps(site, blocks[block]);
  });
  require(!blocks.empty(), "{}: no block of this model has an attention map; its mechanism is {}", a.run,
          trained.experiment.attention.mechanism[0]);
  const std::string output = a.output.empty() ? a.run + "/spectrum.csv" : a.output;
  write_file(output, to_csv(blocks, images));
  std::cout << fmt::format(
      "equivalent rank of attention maps A, mean over heads and {} test images; *: what the model "
      "uses\nblock  mechanism     size        A    A + I\n",
      images);
  for (const auto& [b, block] : blocks)
    std::cout << fmt::format("{:>5}  {:<12}{:>6}{:>8.1f}{}{:>8.1f}{}  {}\n", b + 1, block.mechanism, block.size,
                             mean_rank(block, plain, images), block.used == plain ? "*" : " ",
                             mean_rank(block, with_identity, images), block.used == plain ? " " : "*",
                             block.of_channels ? "of channels" : "of tokens");
  std::cout << printable(output) << "\n";
  return ok;
}

constexpr const char* spectrum_help =
    "The equivalent rank of a map is the number of its largest singular values that make up 0.9 of their sum (Shu et\n"
    "al., Adder attention, Section 3.2.2). Each map is measured without and with the identity added, whichever of the\n"
    "two the model uses. The file has a line for each matrix, block, head and index, with means over the images of\n"
    "the singular value, of the sum of the values up to it as a part of all (cumulative), and of the equivalent rank.\n"
    "experiments/plot_spectrum.py draws it. A mechanism without a map is left out.";

}  // namespace

void add_spectrum(Command program) {
  static SpectrumArguments a;
  Command command = program.command("spectrum", "Singular values of a trained model's attention maps");
  command.option("RUN", &a.run, "run directory", {.required = true});
  command.option("--images", &a.images, "how many test images, from the first; default: 500, or all if they are fewer",
                 {.value = "N", .range = {{1, 1'000'000}}});
  command.option("-o,--output", &a.output, "default: RUN/spectrum.csv", {.value = "FILE.csv"});
  add_model_choice(command, a.weights, a.sets, a.threads);
  command.footer(spectrum_help);
  command.action([] { return spectrum_command(a); });
}

}  // namespace heed::cli
