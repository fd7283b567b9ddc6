// heed convert: writes both files or neither.
#include "support/cli.h"
#include "support/images.h"

#include "tests/io/hugging_face.h"

#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

/// A file of a Hugging Face ViT, and the names of the files that heed convert writes.
struct Published : TemporaryDirectory {
  std::string in = *this / "in.safetensors", out = *this / "out.safetensors", table = *this / "out.toml";

  void write(Index dim) const {
    ModelConfig m = published_vit();
    m.dim = dim;
    const Parameters<float> ours = drawn(m);
    TheirFile(ours, false).write(in);
  }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(*this / ""), {}));
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_convert)

BOOST_AUTO_TEST_CASE(a_table_that_cannot_be_written_leaves_no_weights) {
  const Published given;
  given.write(24);
  check_refusal({"convert", "hf-vit", given.in, given.out},
                {given.in + ": 64 channels per head do not divide the width of 24", "--heads N"});
  BOOST_TEST(given.files() == 1u);
  check_refusal({"convert", "--heads", "5", "hf-vit", given.in, given.out}, {"heads = 5 does not divide dim = 24"});
  BOOST_TEST(given.files() == 1u);
  check_refusal({"convert", "--heads", "3", "hf-vit", given.in, given.table},
                {"expected a name that does not end in .toml"});
  BOOST_TEST(given.files() == 1u);
  std::filesystem::create_directory(given.table);
  check_refusal({"convert", "--heads", "3", "hf-vit", given.in, given.out}, {given.table});
  BOOST_TEST(given.files() == 2u);
}

BOOST_AUTO_TEST_CASE(weights_that_cannot_be_written_leave_no_table) {
  const Published given;
  given.write(64);
  std::filesystem::create_directory(given.out);
  check_refusal({"convert", "hf-vit", given.in, given.out}, {given.out, "not a regular file"});
  BOOST_TEST(given.files() == 2u);
}

// Without a kind, the tensors would be copied under their old names, which fit no model.
BOOST_AUTO_TEST_CASE(their_names_need_the_kind_of_their_model) {
  const Published given;
  given.write(64);
  check_refusal({"convert", given.in, given.out}, {given.in, "expected hf-vit, hf-deit or hf-dinov2 before IN"});
  check_refusal({"convert", "hf-vit", given / "", given.out}, {"a directory; expected a file"});
  check_refusal({"convert", "hf-vit", given.in}, {"convert: expected IN OUT, or hf-vit, hf-deit or hf-dinov2 before"});
  BOOST_TEST(given.files() == 1u);
}

BOOST_AUTO_TEST_CASE(their_names_as_weights_of_a_model_need_conversion) {
  const Published given;
  given.write(64);
  output_of({"convert", "hf-vit", given.in, given.out});
  const std::string advice = fmt::format("`heed convert hf-vit {} OUT` converts them", given.in);
  check_refusal({"predict", "--weights", given.in, "--model", given.table, "image.png"}, {advice});
  const std::string tree = given / "tree";
  for (int i = 0; i < 8; ++i) write_image(fmt::format("{}/{}/{}.png", tree, i % 2, i), pattern({1, 8, 8}, i));
  for (const char* const init : {"strict", "matching"})
    check_contains(heed_with({"train", "--check", given.table, "--images", tree, "--set", "train.batch=2", "--set",
                              fmt::format("train.init={}", init), "--init", given.in})
                       .err,
                   {advice});
}

// The preset is the authors' preprocessing: pixels from -1 to 1 for ViT, ImageNet's mean and deviation for DeiT.
BOOST_AUTO_TEST_CASE(tables_name_the_preset_of_their_images) {
  const Published given;
  given.write(64);
  for (const auto& [kind, preset] : {std::pair("hf-vit", "inception"), {"hf-deit", "imagenet"}}) {
    output_of({"convert", kind, given.in, given.out});
    check_contains(read_file(given.table), {fmt::format("# Images: --preset {}\n", preset)});
    std::filesystem::remove(given.table);
  }
}

BOOST_AUTO_TEST_CASE(another_table_is_not_replaced) {
  const Published given;
  given.write(64);
  output_of({"convert", "hf-vit", given.in, given.out});
  output_of({"convert", "hf-vit", given.in, given.out});  // the same table
  const std::string weights = read_file(given.out);
  write_file(given.table, "# mine\n");
  given.write(128);
  check_refusal({"convert", "hf-vit", given.in, given.out},
                {given.table + ": exists and differs from this model's table"});
  BOOST_TEST(read_file(given.table) == "# mine\n");
  BOOST_TEST((read_file(given.out) == weights));
}

// If these files were converted, the weights would not be finite, or would not fit their model file.
BOOST_AUTO_TEST_CASE(tensors_that_are_no_model_are_refused) {
  const Published given;
  const Parameters<float> ours = drawn(published_vit());
  const auto refused = [&](const auto& change, const std::string& problem) {
    TheirFile theirs(ours, false);
    change(theirs);
    theirs.write(given.in);
    check_refusal({"convert", "hf-vit", given.in, given.out}, {given.in + ": " + problem});
    BOOST_TEST(given.files() == 1u);
  };
  const std::string block = "vit.encoder.layer.1.";
  refused([&](TheirFile& file) { file["vit.layernorm.weight"][3] = NAN; },
          "tensor 'vit.layernorm.weight' has value nan");
  refused([&](TheirFile& file) { file.rename(block + "output.dense.bias", "vit.embeddings.mask_token"); },
          "has no tensor for 'blocks.1.mlp.fc2.bias'");
  refused(
      [&](TheirFile& file) {
        file.add(block + "output.dense.weight", {7, 3}, 1);
      },
      "'blocks.1.mlp.fc2.weight' would have shape [7, 3]; expected [64, 10]");
  refused([&](TheirFile& file) { file.add("vit.encoder.layer.9.norm1.weight", {64}, 1); },
          "'blocks.9.norm1.weight' is not a tensor of a model with 2 blocks");
  refused([&](TheirFile& file) { file.add("vit.encoder.layer.1\n.norm1.weight", {64}, 1); },
          "'blocks.1\\x0a.norm1.weight' is not a tensor");
  refused(
      [&](TheirFile& file) {
        file.add("vit.embeddings.cls_token", {1, 1, 3}, 1);
      },
      "'cls_token' would have shape [1, 1, 3]");
}

BOOST_AUTO_TEST_CASE(a_file_without_tensors_is_refused) {
  const Published given;
  SafetensorsWriter().write(given.in);
  check_refusal({"convert", given.in, given.out}, {given.in + ": has no tensors"});
  BOOST_TEST(given.files() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
