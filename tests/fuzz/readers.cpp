#include "readers.h"

#include "heed/analysis/claim_rows.h"
#include "heed/config/energy_table.h"
#include "heed/config/experiment.h"
#include "heed/config/lab.h"
#include "heed/data/dataset.h"
#include "heed/data/sequences/sequences.h"
#include "heed/io/file.h"
#include "heed/io/json.h"
#include "heed/io/plugin_files.h"
#include "heed/io/safetensors.h"
#include "heed/train/runs/history.h"
#include "support/temporary.h"

#include <filesystem>
#include <fstream>

namespace heed::test {

namespace {

void read_idx(const std::string& directory) { open_dataset("mnist", directory, Split::test); }
void read_cifar(const std::string& directory) { open_dataset("cifar10", directory, Split::test); }
void read_image(const std::string& directory) { load_image(directory + "/image"); }

void read_safetensors(const std::string& directory) {
  const SafetensorsFile file(directory + "/safetensors");
  for (const std::string& name : file.names()) {
    if (file.info(name).dtype >= DType::F16)
      file.read<float>(name);
    else
      file.read<std::int64_t>(name);
  }
}

void read_toml(const std::string& directory) {
  try {
    load_energy_table(directory + "/toml");
  } catch (const Error&) {
    load_experiment(directory + "/toml");
  }
}

/// Reads a text as a student's answers; if it is rejected, reads it as a lab.toml, which is a TOML file, too.
void read_answer_file(const std::string& directory) {
  const std::string text = read_file(directory + "/lab.toml");
  try {
    read_answers(text, "answers");
  } catch (const Error&) {
    load_lab(directory);
  }
}

void read_sequences(const char* name, const std::string& directory) {
  DataConfig data;
  data.name = name;
  data.path = directory;
  open_sequences(data, 64, Part::test, 1);
}
void read_documents(const std::string& directory) {
  std::filesystem::copy_file(directory + "/train.tsv", directory + "/test.tsv",
                             std::filesystem::copy_options::overwrite_existing);
  read_sequences("documents", directory);
}

void read_metrics(const std::string& directory) { read_history(RunPaths(directory)); }
void read_claims(const std::string& directory) {
  for (const auto& [name, arm] : read_claim(directory + "/claims.csv", "")) arm.sample();
}
void read_json(const std::string& directory) { Json::parse(read_file(directory + "/cell.json")).text(); }

void read_mechanism(const std::string& directory) { mechanism_classes(directory + "/hydra.h", "hydra.h"); }
void read_plugin(const std::string& directory) { require_whole(directory + "/hydra.so", "hydra.so"); }

constexpr Reader list[] = {
    {"idx", "t10k-images-idx3-ubyte.gz", read_idx},  // compressed or not
    {"cifar", "test_batch.bin", read_cifar},
    {"image", "image", read_image},
    {"safetensors", "safetensors", read_safetensors},
    {"toml", "toml", read_toml},
    {"answers", "lab.toml", read_answer_file},
    {"listops", "basic_test.tsv", [](const std::string& directory) { read_sequences("listops", directory); }},
    {"pairs", "new_aan_pairs.test.tsv", [](const std::string& directory) { read_sequences("pairs", directory); }},
    {"documents", "train.tsv", read_documents},
    {"metrics", "metrics.csv", read_metrics},
    {"claims", "claims.csv", read_claims},
    {"json", "cell.json", read_json},
    {"mechanism", "hydra.h", read_mechanism},
    {"plugin", "hydra.so", read_plugin},
};

/// Returns the directory in which all files are read, with labels for three images.
const std::string& directory() {
  static const TemporaryDirectory place;
  static const std::string path = [] {
    std::ofstream(place / "t10k-labels-idx1-ubyte", std::ios::binary) << std::string("\0\0\x8\x1\0\0\0\x3\1\2\3", 11);
    return place.path().string();
  }();
  return path;
}

}  // namespace

std::span<const Reader> readers() { return list; }

void read_bytes(const Reader& reader, std::string_view bytes) {
  std::ofstream(directory() + "/" + reader.file, std::ios::binary) << bytes;
  try {
    reader.read(directory());
  } catch (const Error&) {
    // Rejected as expected.
  }
}

}  // namespace heed::test
