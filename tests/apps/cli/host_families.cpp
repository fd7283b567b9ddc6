// Commands of the program with models of the host families.
#include "support/cli.h"

#include "heed/data/images/image_write.h"
#include "heed/io/safetensors.h"
#include "heed/io/weights.h"
#include "heed/nn/families.h"

using namespace heed;
using namespace heed::test;

namespace {

using Strings = std::vector<std::string>;

/// Returns settings that make a family's model small enough for a Workshop's images of 8 x 8 pixels.
Strings sets_of(const std::string& family) {
  if (family == "xcit") return {"model.dim=8", "model.depth=1", "model.heads=2", "model.hidden=12"};
  return {"model.stride=[2,2,1]", "model.dim=[6,8,8]", "model.depth=[1,1,1]", "model.heads=[2,2,2]",
          "model.hidden=[8,12,12]"};
}

struct Small : Workshop {
  std::string file(const std::string& family, Strings sets = {}) const {
    Strings all = sets_of(family);
    all.insert(all.end(),
               {"model.image=8", "train.epochs=1", "train.batch=16", "data.validation=20", "data.path=" + data()});
    if (family == "soft") all.push_back("attention.landmarks=4");
    all.insert(all.end(), sets.begin(), sets.end());
    const std::string path = *this / (family + ".toml");
    write_file(path, to_toml(load_experiment("models/" + family + "-micro.toml", all)));
    return path;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_host_families)

// One value per channel has no variance. This is detected in the first step, after the run has started.
BOOST_FIXTURE_TEST_CASE(a_run_whose_first_step_is_refused_leaves_nothing, Small) {
  const std::string run = *this / "run", config = file("cvt", {"model.stride=[8,1,1]", "model.bn_group=1"});
  const auto refuse = [&] {
    const Finished refused = heed_with({"train", config, "--run", run});
    BOOST_TEST(refused.status == 2);
    check_contains(refused.err, {"two values per channel", "train.batch, bn_group or image"});
  };
  refuse();
  BOOST_TEST(!std::filesystem::exists(run));
  std::filesystem::create_directory(run);
  write_file(run + "/mine", "kept");
  refuse();
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(run), {}) == 1);
  output_of({"train", config, "--run", run, "--set", "model.bn_group=0"});
}

BOOST_FIXTURE_TEST_CASE(they_train_resume_evaluate_and_show_maps, Small) {
  const std::string image = *this / "image.png";
  save_png(image, {{1, 8, 8}, std::vector<std::uint8_t>(64, 100)});
  for (const std::string family : {"xcit", "cvt", "soft"}) {
    const std::string run = *this / (family + "-run"), again = *this / (family + "-again");
    output_of({"train", file(family), "--run", run, "--threads", "2", "--set", "train.recompute=true"});
    output_of({"train", file(family), "--run", again, "--threads", "1", "--set", "train.recompute=true", "--set",
               "train.max_steps=3"});
    output_of({"train", "--run", again, "--threads", "1", "--resume", "--set", "train.max_steps=0"});
    check_same_run(run, again);
    check_contains(output_of({"eval", run}), {"mnist, test"});
    output_of({"predict", run, image});
    if (family != "xcit") output_of({"maps", run, image, "-o", *this / "maps.png"});
    const std::string spectrum = output_of({"spectrum", run, "--images", "4", "-o", *this / "spectrum.csv"});
    // CvT has fewer keys than queries, so no identity can be added to its maps.
    if (family == "cvt") {
      check_contains(spectrum, {"  16 x 4  ", "  4 x 1  ", "  5 x 2  "});
      BOOST_TEST(read_file(*this / "spectrum.csv").find("A+I") == std::string::npos);
    }
    output_of({"cost", file(family)});
    output_of({"train", file(family), "--run", *this / (family + "-groups"), "--set", "model.bn_group=8", "--set",
               "train.max_steps=2"});
    check_refusal({"train", file(family), "--run", *this / (family + "-odd"), "--set", "model.bn_group=5"},
                  {"[model] bn_group = 5 does not divide the batch of 16 images"});
    output_of({"eval", run, "--set", "model.image=16"});
  }
}

BOOST_FIXTURE_TEST_CASE(the_probe_moves_running_statistics_in_training_only, Small) {
  const std::string in = *this / "in.safetensors", out = *this / "out.safetensors", weights = *this / "w.safetensors";
  Tensor<double> images(Shape{4, 1, 8, 8});
  for (Index i = 0; i < images.size(); ++i) images[i] = RandomStream(2).normal(i);
  const Tensor<std::int64_t> labels(Shape{4}, {1, 2, 3, 4});
  SafetensorsWriter writer;
  writer.add("images", std::as_const(images).view());
  writer.add("labels", labels.view());
  writer.write(in);
  for (const std::string family : {"xcit", "cvt", "soft"}) {
    Strings sets{"train.dropout=0.5"};
    if (family != "cvt") sets.emplace_back("train.drop_path=0.5");  // CvT's last stage has a single block here
    const std::string path = file(family, sets);
    const auto model = make_model(load_experiment(path));
    Parameters<double> parameters(model->parameters());
    parameters.initialise(1);
    SafetensorsWriter of_weights;
    add_weights(of_weights, parameters);
    of_weights.write(weights);
    const auto probe = [&](const Strings& more) {
      Strings arguments{"probe", "model", path, "--weights", weights, in, out};
      arguments.insert(arguments.end(), more.begin(), more.end());
      output_of(arguments);
      return SafetensorsFile(out).read<double>("logits");
    };
    const auto count = [&](const std::string& prefix) {
      const auto names = SafetensorsFile(out).names();
      return std::count_if(names.begin(), names.end(), [&](const auto& name) { return name.starts_with(prefix); });
    };
    const Tensor<double> evaluated = probe({});
    BOOST_TEST(count("buffer.") == 0);
    const Tensor<double> eval = probe({"--set", "mode=eval"});
    BOOST_TEST(std::equal(eval.begin(), eval.end(), evaluated.begin()));
    const Tensor<double> trained = probe({"--set", "mode=train"}), twice = probe({"--set", "mode=train"});
    BOOST_TEST(!std::equal(trained.begin(), trained.end(), evaluated.begin()));
    BOOST_TEST(std::equal(trained.begin(), trained.end(), twice.begin()));  // batch norm's mode does not enable dropout
    Index buffers = 0;
    for (const ParameterSpec& spec : model->parameters()) {
      if (!spec.running) continue;
      ++buffers;
      const SafetensorsFile file(out);
      BOOST_REQUIRE_MESSAGE(file.contains("buffer." + spec.name), spec.name);
      const Tensor<double> moved = file.read<double>("buffer." + spec.name);
      const double before = spec.name.ends_with("var") ? 1 : 0;
      BOOST_TEST(std::any_of(moved.begin(), moved.end(), [&](double x) { return x != before; }), spec.name);
    }
    BOOST_TEST(count("buffer.") == buffers);
    probe({"--set", "mode=train", "--trace", *this / "trace"});
    BOOST_TEST(SafetensorsFile(*this / "trace").contains("head.grad"), family);
    check_refusal({"probe", "model", path, "--weights", weights, in, out, "--set", "mode=trian"}, {"mode=trian"});
    check_refusal(
        {"probe", "model", path, "--weights", weights, in, out, "--set", "mode=train", "--set", "model.bn_group=3"},
        {"bn_group = 3 does not divide the batch of 4 images"});
  }
}

BOOST_AUTO_TEST_SUITE_END()
