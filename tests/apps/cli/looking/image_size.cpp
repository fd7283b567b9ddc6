// Evaluation of a model at an image size other than that of training.
#include "support/cli.h"

#include "heed/io/safetensors.h"
#include "heed/kernels/grids/bicubic.h"

#include "support/images.h"

#include <fmt/format.h>

using namespace heed;
using namespace heed::test;

namespace {

using Strings = std::vector<std::string>;

/// A run on images of 8 x 8 pixels, in patches of 4 x 4.
struct TrainedAt8 : Workshop {
  std::string directory = *this / "run";

  void train(const Strings& sets) const {
    Experiment x = experiment();
    x.train.epochs = 1;
    heed::write_file(*this / "x.toml", to_toml(x));
    std::filesystem::remove_all(directory);
    Strings arguments{"train", *this / "x.toml", "--run", directory};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    output_of(arguments);
  }

  /// Creates a run directory for the image size `image`, with the weights of the run and, unless it is empty,
  /// `positions` as the position embedding.
  std::string at(Sides image, const Tensor<float>& positions) const {
    Experiment x = load_experiment(directory + "/config.toml");
    x.model.image = image;
    const std::string other = *this / "other";
    std::filesystem::remove_all(other);
    std::filesystem::create_directory(other);
    heed::write_file(other + "/config.toml", to_toml(x));
    std::filesystem::copy_file(directory + "/data.json", other + "/data.json");
    const SafetensorsFile best(directory + "/best.safetensors");
    std::map<std::string, Tensor<float>> tensors;
    for (const std::string& name : best.names()) tensors[name] = best.read<float>(name);
    if (positions.size() > 0) tensors["pos_embed"] = positions;
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : tensors) writer.add(name, tensor.view());
    writer.write(other + "/best.safetensors");
    return other;
  }

  /// Returns the run's pos_embed, [1, skip + cells of `grid`, D], interpolated to the patch grid of `image`, [1, skip +
  /// patches, D].
  Tensor<float> positions_at(Sides image, Index skip, kernels::Grid grid = {2, 2}) const {
    const Tensor<float> from = SafetensorsFile(directory + "/best.safetensors").read<float>("pos_embed");
    const Index width = from.shape()[2], rows = image.height / 4, columns = image.width / 4;
    Tensor<float> to(Shape{1, skip + rows * columns, width});
    std::copy_n(from.data(), skip * width, to.data());
    kernels::bicubic(grid, Matrix(from.data() + skip * width, grid.height * grid.width, width), {rows, columns},
                     Matrix(to.data() + skip * width, rows * columns, width));
    return to;
  }

  /// Checks that evaluation at `image` gives the results of a model trained at this size, with the given positions.
  void check_at(Sides image, const Tensor<float>& positions) const {
    const std::string expected = output_of({"eval", at(image, positions), "--set", "data.resize=true"});
    check_contains(expected, {"30 images", "top-1 accuracy"});
    const std::string size = fmt::format("model.image=[{},{}]", image.height, image.width);
    BOOST_TEST(output_of({"eval", directory, "--set", size}) == expected);
    // Other positions would change the result.
    if (positions.size() > 0)
      BOOST_TEST(output_of({"eval", at(image, Tensor<float>(positions.shape())), "--set", "data.resize=true"}) !=
                 expected);
  }

  void refuse(const std::string& image, const Strings& pieces) const {
    check_refusal({"eval", directory, "--set", "model.image=" + image}, pieces);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_image_size, TrainedAt8)

BOOST_AUTO_TEST_CASE(position_embeddings_are_interpolated) {
  train({});
  for (const Sides image : {Sides(16), Sides(8, 16), Sides(16, 8)}) check_at(image, positions_at(image, 1));
  BOOST_TEST(output_of({"eval", directory, "--set", "model.image=8"}) == output_of({"eval", directory}));
  train({"model.pool=mean", "attention.mechanism=sima"});
  check_at(16, positions_at(16, 0));
}

// A grid of 4 x 2 patches has as many positions as one of 2 x 4, but not the same ones.
BOOST_AUTO_TEST_CASE(positions_of_images_that_are_not_square) {
  train({"model.image=[8,16]", "data.resize=true"});
  for (const Sides image : {Sides(16, 8), Sides(16), Sides(8)}) check_at(image, positions_at(image, 1, {2, 4}));
}

BOOST_AUTO_TEST_CASE(models_without_a_position_embedding_take_any_size) {
  train({"model.pool=mean", "model.pos_embed=false", "attention.mechanism=aft", "attention.variant=conv"});
  check_at(16, {});
  train({"model.pos_embed=false", "attention.mechanism=soft", "attention.ratio=2"});
  check_at(16, {});
}

BOOST_AUTO_TEST_CASE(predict_and_maps_take_another_size_too) {
  train({});
  const std::string png = *this / "a.png", sheet = *this / "maps.png";
  write_image(png, pattern({1, 8, 8}, 3));
  check_contains(output_of({"predict", directory, png, "--set", "model.image=16"}), {png + ": ", " %"});
  output_of({"maps", directory, png, "-o", sheet, "--set", "model.image=16", "--query", "4,4"});
  BOOST_TEST(std::filesystem::exists(sheet));
}

BOOST_AUTO_TEST_CASE(what_belongs_to_the_tokens_of_one_size_is_named) {
  train({"attention.mechanism=aft"});
  refuse("16", {directory + ": model.image = 16, but the size of tensor 'blocks.0.attn.u' depends on the image, 8",
                "only pos_embed can be interpolated"});
  refuse("[8,16]", {": model.image = [8, 16], but the size of tensor 'blocks.0.attn.u' depends on the image, 8;"});
  train({"attention.mechanism=[\"softmax\", \"aft\"]", "attention.variant=local", "attention.window=2",
         "attention.param=dense"});
  refuse("16", {"'blocks.1.attn.w'"});
  train({"attention.mechanism=soft", "attention.sampling=random", "attention.landmarks=2"});
  refuse("16", {"'blocks.0.attn.landmark_index'"});
}

BOOST_AUTO_TEST_CASE(sizes_that_do_not_fit_are_refused) {
  train({"attention.mechanism=soft", "attention.ratio=2"});
  refuse("18", {"[model] patch = 4 does not divide image = 18"});
  refuse("12", {"[soft] ratio is 2; it must divide both sides of the image grid, 3 x 3"});
  // Weights of a different image size are an error unless that size is requested.
  const std::string other = at(16, positions_at(16, 1));
  check_refusal({"eval", directory, "--weights", other + "/best.safetensors"},
                {"tensor 'pos_embed' has shape [1, 17, 16]; the model expects [1, 5, 16]"});
  output_of({"eval", directory, "--weights", other + "/best.safetensors", "--set", "model.image=16"});
  // A different size does not imply conversion of grey images to colour.
  output_of(
      {"train", "--run", *this / "colour", *this / "x.toml", "--set", "model.channels=3", "--set", "data.resize=true"});
  check_refusal({"eval", *this / "colour", "--set", "model.image=16", "--set", "data.resize=false"},
                {"1x8x8", "3x16x16", "data.resize=true"});
}

BOOST_AUTO_TEST_SUITE_END()
