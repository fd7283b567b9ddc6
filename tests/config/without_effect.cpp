// Keys without effect are reported, one per line.
#include "heed/base/warnings.h"
#include "heed/config/experiment.h"
#include "heed/config/sweep.h"
#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>
#include <fmt/ranges.h>

using namespace heed;

namespace {

const std::string small =
    "[model]\nimage = 8\nchannels = 1\npatch = 4\ndim = 16\ndepth = 2\nheads = 2\nhidden = 24\nclasses = 10\n";

/// Returns the warnings for a file with these settings.
std::string said(const std::string& text, const std::vector<std::string>& sets = {}) {
  const TemporaryDirectory directory;
  const std::string path = directory / "x.toml";
  write_file(path, text);
  take_warnings();
  load_experiment(path, sets);
  std::string lines = fmt::format("{}", fmt::join(take_warnings(), "\n"));
  for (std::size_t at; (at = lines.find(path)) != lines.npos;) lines.replace(at, path.size(), "x.toml");
  return lines;
}
std::string said_of(const std::vector<std::string>& sets) { return said(small, sets); }

}  // namespace

BOOST_AUTO_TEST_SUITE(keys_without_effect)

BOOST_AUTO_TEST_CASE(the_line_names_place_value_and_need) {
  BOOST_TEST(said(small + "[optim]\nmomentum = 0.5\n") ==
             "x.toml:11: optim.momentum = 0.5 has no effect; it needs optim.name = \"sgd\"");
  BOOST_TEST(said_of({"optim.name=sgd", "optim.momentum=0.5"}) == "");
  BOOST_TEST(said_of({"optim.name=sgd", "optim.eps=0.5"}) ==
             "--set: optim.eps = 0.5 has no effect; it needs optim.name = \"adamw\"");
  // Defaults are never reported.
  BOOST_TEST(said_of({"optim.momentum=0.9"}) == "");
}

// Each warning is printed once, so each case has a different rate.
BOOST_AUTO_TEST_CASE(skipped_blocks_need_a_second_block) {
  const auto said_of_rate = [](const std::string& model, const char* rate) {
    return said(model, {fmt::format("train.drop_path={}", rate)});
  };
  const auto line = [](const char* rate) {
    return fmt::format(
        "--set: train.drop_path = {} has no effect; it needs more than one block, since the first is never skipped",
        rate);
  };
  const std::string one = small.substr(0, small.find("depth")) + "depth = 1\n" + small.substr(small.find("heads"));
  BOOST_TEST(said_of_rate(small, "0.11") == "");
  BOOST_TEST(said_of_rate(one, "0.12") == line("0.12"));
  BOOST_TEST(said_of_rate("[model]\nfamily = \"xcit\"\n" + one.substr(8), "0.13") == "");  // one rate for all blocks
  const std::string cvt =
      "[model]\nfamily = \"cvt\"\nimage = 8\nchannels = 1\nclasses = 10\npatch = [3, 3]\nstride = [2, 2]\n"
      "padding = [1, 1]\ndim = [8, 16]\nheads = [1, 2]\nhidden = [8, 16]\n";
  BOOST_TEST(said_of_rate(cvt + "depth = [2, 1]\n", "0.14") == line("0.14"));
  BOOST_TEST(said_of_rate(cvt + "depth = [1, 2]\n", "0.15") == "");
  const std::string pyramid =
      "[model]\nfamily = \"soft-pyramid\"\nimage = 32\nchannels = 1\nclasses = 10\nheads = [1]\nhidden = [8]\n"
      "stride = [4]\ndim = [8]\n";
  BOOST_TEST(said_of_rate(pyramid + "depth = [1]\n", "0.16") == line("0.16"));
  BOOST_TEST(said_of_rate(pyramid + "depth = [2]\n", "0.17") == "");
  // The rate grows over all stages of a pyramid, so the single block of a second stage may be skipped.
  const std::string two_stages =
      "[model]\nfamily = \"soft-pyramid\"\nimage = 32\nchannels = 1\nclasses = 10\nheads = [1, 2]\nhidden = [8, 16]\n"
      "stride = [4, 2]\ndim = [8, 16]\n";
  BOOST_TEST(said_of_rate(two_stages + "depth = [1, 1]\n", "0.18") == "");
}

BOOST_AUTO_TEST_CASE(a_constant_rate_has_no_warm_up) {
  BOOST_TEST(said_of({"optim.schedule=constant", "optim.warmup_epochs=3"}) ==
             "--set: optim.warmup_epochs = 3.0 has no effect; it needs an optim.schedule other than \"constant\"");
  BOOST_TEST(said_of({"optim.warmup_steps=7", "optim.warmup_epochs=4"}) ==
             "--set: optim.warmup_epochs = 4.0 has no effect; it needs optim.warmup_steps = 0");
}

// The class token is the only token that is read after the last block of class attention.
BOOST_AUTO_TEST_CASE(the_norm_of_all_tokens_needs_a_second_block_of_class_attention) {
  const std::string xcit = "[model]\nfamily = \"xcit\"\n" + small.substr(8) + "tokens_norm = false\n";
  BOOST_TEST(said(xcit) == "");
  BOOST_TEST(said(xcit + "cls_depth = 1\n") ==
             "x.toml:11: model.tokens_norm = false has no effect; it needs model.cls_depth above 1");
}

BOOST_AUTO_TEST_CASE(grey_needs_images_with_colours) {
  const std::string pixels =
      "[model]\nfamily = \"sequence\"\ntask = \"classify\"\nvocab = 256\ncontext = 784\ndim = 16\ndepth = 2\n"
      "heads = 2\nhidden = 24\nclasses = 10\npool = \"mean\"\n[data]\nname = \"pixels\"\ngrey = true\n";
  BOOST_TEST(said(pixels) ==
             "x.toml:14: data.grey = true has no effect; it needs data.source = \"cifar10\" or "
             "\"cifar100\", whose images have colours");
  BOOST_TEST(said(pixels + "source = \"cifar100\"\n") == "");
}

BOOST_AUTO_TEST_CASE(patience_needs_more_epochs) {
  BOOST_TEST(said_of({"train.epochs=4", "train.patience=2"}) == "");
  BOOST_TEST(said_of({"train.epochs=4", "train.patience=3"}) ==
             "--set: train.patience = 3 has no effect; it needs train.epochs above train.patience + 1");
}

BOOST_AUTO_TEST_CASE(a_warm_up_of_the_teachers_temperature_needs_two_temperatures) {
  const std::string dino = small + "[train]\nmethod = \"dino\"\n[dino]\nlocal_size = 8\nteacher_temp_warmup = 2\n";
  BOOST_TEST(said(dino) ==
             "x.toml:14: dino.teacher_temp_warmup = 2 has no effect; it needs a dino.teacher_temp_start "
             "other than dino.teacher_temp");
  BOOST_TEST(said(dino + "teacher_temp_start = 0.02\n") == "");
  BOOST_TEST(said(dino + "teacher_temp = 0.07\n") == "");
}

BOOST_AUTO_TEST_CASE(options_need_others) {
  BOOST_TEST(said_of({"attention.mechanism=aft", "attention.variant=simple", "attention.rank=7"}) ==
             "--set: attention.rank = 7 has no effect; it needs variant = full or local");
  BOOST_TEST(said_of({"attention.mechanism=aft", "attention.param=dense", "attention.aft.rank=7"}) ==
             "--set: attention.aft.rank = 7 has no effect; it needs param = factored");
  BOOST_TEST(said_of({"attention.mechanism=aft", "attention.rank=7"}) == "");
  BOOST_TEST(said_of({"attention.mechanism=soft", "attention.kernel=exact", "attention.iterations=7"}) ==
             "--set: attention.iterations = 7 has no effect; it needs kernel = nystrom");
  // One of the two mechanisms uses `iterations`.
  BOOST_TEST(said_of({"attention.mechanism=[\"soft\", \"nystrom\"]", "attention.soft.kernel=exact",
                      "attention.iterations=7", "attention.nystrom.ratio=2"}) == "");
}

// The recorded file of a run has every key, so none is reported.
BOOST_AUTO_TEST_CASE(a_recorded_file_is_taken_as_it_is) {
  const TemporaryDirectory directory;
  const std::string path = directory / "config.toml";
  write_file(path, small + "[optim]\nmomentum = 0.5\n");
  take_warnings();
  load_recorded(path);
  BOOST_TEST(take_warnings().empty());
}

// A key shared by all arms of a sweep may apply to some of them only.
BOOST_AUTO_TEST_CASE(a_key_of_a_sweep_needs_one_arm) {
  const TemporaryDirectory directory;
  write_file(directory / "x.toml", small);
  const std::string path = directory / "sweep.toml";
  const auto said_of_sweep = [&](const std::string& names) {
    write_file(path, fmt::format("base = \"x.toml\"\n[optim]\nmomentum = 0.5\n[grid]\noptim.name = {}\n", names));
    take_warnings();
    load_sweep(path, {});
    return take_warnings().size();
  };
  BOOST_TEST(said_of_sweep("[\"adamw\", \"sgd\"]") == 0u);
  BOOST_TEST(said_of_sweep("[\"adamw\"]") == 1u);
}

// A sweep's key that has two conditions has no effect if one of them is not met.
BOOST_AUTO_TEST_CASE(a_key_of_a_sweep_needs_all_of_its_needs) {
  const TemporaryDirectory directory;
  write_file(directory / "x.toml", small);
  const std::string path = directory / "sweep.toml";
  const auto said_of_sweep = [&](const std::string& optim) {
    write_file(path, "base = \"x.toml\"\n[train]\nepochs = 2\n[optim]\n" + optim);
    take_warnings();
    load_sweep(path, {});
    return fmt::format("{}", fmt::join(take_warnings(), "\n"));
  };
  BOOST_TEST(said_of_sweep("warmup_epochs = 3.5\nschedule = \"constant\"\n") ==
             path + ":5: optim.warmup_epochs = 3.5 has no effect; it needs an optim.schedule other than \"constant\"");
  BOOST_TEST(said_of_sweep("warmup_epochs = 4.5\nwarmup_steps = 3\n") ==
             path + ":5: optim.warmup_epochs = 4.5 has no effect; it needs optim.warmup_steps = 0");
  BOOST_TEST(said_of_sweep("min_lr = 7e-5\nwarmup_epochs = 2\n") ==
             path + ":5: optim.min_lr = 7e-05 has no effect; it needs optim.warmup_epochs below train.epochs");
  BOOST_TEST(said_of_sweep("min_lr = 8e-5\nwarmup_epochs = 1.5\n") == "");
}

// The seeds of a sweep replace those of its experiments.
BOOST_AUTO_TEST_CASE(a_seed_has_no_effect_in_a_sweep_with_seeds) {
  const TemporaryDirectory directory;
  write_file(directory / "x.toml", small + "[train]\nseed = 3\n");
  const std::string path = directory / "sweep.toml";
  const auto said_of_sweep = [&](const std::string& text, const std::vector<std::string>& sets, Index seeds = 0) {
    write_file(path, "base = \"x.toml\"\n" + text);
    take_warnings();
    load_sweep(path, sets, seeds);
    return fmt::format("{}", fmt::join(take_warnings(), "\n"));
  };
  BOOST_TEST(said_of_sweep("seeds = [1, 2]\n", {"train.seed=7"}) ==
             "--set: train.seed = 7 has no effect; it needs a sweep without seeds");
  BOOST_TEST(said_of_sweep("[train]\nseed = 8\n", {}, 2) ==
             path + ":3: train.seed = 8 has no effect; it needs a sweep without seeds");
  BOOST_TEST(said_of_sweep("seeds = 2\n", {}) == "");
  BOOST_TEST(said_of_sweep("", {"train.seed=9"}) == "");
}

// A mechanism's own table overrides the options shared by all mechanisms. An option has an effect if at least one
// stage uses it.
BOOST_AUTO_TEST_CASE(options_need_those_of_their_mechanism_or_of_a_stage) {
  const auto soft = [](const char* all, const char* own, const char* iterations) {
    return said_of({"attention.mechanism=soft", fmt::format("attention.kernel={}", all),
                    fmt::format("attention.soft.kernel={}", own),
                    fmt::format("attention.soft.iterations={}", iterations)});
  };
  BOOST_TEST(soft("nystrom", "exact", "21") ==
             "--set: attention.soft.iterations = 21 has no effect; it needs kernel = nystrom");
  BOOST_TEST(soft("exact", "nystrom", "22") == "");
  const auto said_of_stages = [](const char* kernels, const char* iterations) {
    take_warnings();
    load_experiment("models/soft-micro.toml",
                    {fmt::format("attention.kernel={}", kernels), fmt::format("attention.iterations={}", iterations)});
    std::string lines = fmt::format("{}", fmt::join(take_warnings(), "\n"));
    return lines.find(fmt::format("attention.iterations = {} has no effect", iterations)) != lines.npos;
  };
  BOOST_TEST(said_of_stages("[\"exact\", \"exact\", \"exact\"]", "23"));
  BOOST_TEST(!said_of_stages("[\"exact\", \"nystrom\", \"exact\"]", "24"));
}

BOOST_AUTO_TEST_SUITE_END()
