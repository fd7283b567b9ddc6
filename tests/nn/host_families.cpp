// XCiT, CvT and SOFT's pyramid: published sizes, gradients of whole models, batch norm over a step. `heed probe model`
// compares values with other implementations.
#include "support/families.h"
#include "support/training.h"

#include "heed/analysis/model_cost.h"
#include "heed/train/step.h"

#include <boost/test/unit_test.hpp>
#include <fmt/ranges.h>

#include <malloc.h>

using namespace heed;
using namespace heed::test;

namespace {

struct Member {
  const char* name;
  Index parameters;
  double multiplications;        ///< millions, without Newton-Raphson
  double newton = 0;             ///< millions
  int tensors = 0, buffers = 0;  ///< 0: not checked
};

constexpr Member members[] = {
    {"xcit-nano-12-p16", 3'053'224, 550.9524},
    {"xcit-tiny-12-p16", 6'716'272, 1230.1386},
    {"xcit-tiny-20-p16", 10'316'688, 1958.0920},
    {"xcit-tiny-24-p16", 12'116'896, 2322.0687},
    {"xcit-small-12-p16", 26'253'304, 4795.8328},
    {"xcit-small-24-p16", 47'671'384, 9060.5921, 0, 631, 56},
    {"xcit-medium-24-p16", 84'395'752, 16083.5973},
    {"xcit-large-24-p16", 189'096'136, 35787.0029},
    {"xcit-tiny-12-p8", 6'706'504, 4771.0088},
    {"xcit-tiny-24-p16-sima", 12'116'800, 2336.5194},
    {"xcit-tiny-12-p8-sima", 6'706'456, 4828.8115},
    {"xcit-small-12-p16-sima", 26'253'208, 4853.6356},
    {"cvt-13", 19'997'480, 4566.0892, 0, 342, 78},
    {"cvt-21", 31'622'696, 7177.9850, 0, 542, 126},
    {"cvt-13-sima", 19'997'480, 4158.5669},
    {"soft-tiny-paper", 12'957'448, 1885.7838, 188.2384},
    {"soft-small-paper", 23'964'936, 3288.2621, 395.3006},
    {"soft-medium-paper", 45'574'312, 7279.6765, 1294.1390},
    {"soft-large-paper", 64'415'240, 11088.6276, 1948.2674},
    {"soft-huge-paper", 86'751'080, 15824.6556, 2640.0436},
    {"soft-tiny", 13'069'056, 1927.6180, 188.2384, 153, 12},
    {"soft-small", 24'110'092, 3346.1025, 395.3006},
    {"soft-medium", 45'812'707, 7386.6329, 1294.1390},
    {"soft-large", 64'700'646, 11231.3281, 1948.2674},
    {"soft-huge", 87'108'273, 16014.5404, 2640.0436},
    {"soft-tiny-softmax", 13'302'792, 3538.9952},
    {"xcit-micro", 198'330, 8.6513, 0, 127, 12},
    {"cvt-micro", 276'938, 7.4700, 0, 117, 24},
    {"soft-micro", 280'272, 9.2852, 0.9830, 82, 10},
};

/// Returns the multiplications of a forward pass in the papers' convention.
Index multiplications(const Model& model) { return cost_total(cost_of(model), {}).counts.mul; }

void check_gradient(const std::string& label, const Experiment& x, bool training) {
  SmallTraining t(x);
  Gradients<double> gradients(t.parameters);
  gradients.reset();
  Tape<double> tape({.parameters = &t.parameters,
                     .gradients = &gradients,
                     .training = training,
                     .execution = {.recomputing = true, .deterministic = true}});
  tape.backward(t.batch().loss(t.batch().logits(*t.model, tape, {0, 6}, nullptr), {0, 6}, 6));
  gradients.complete();
  double most = 0;
  for (Index i = 0; i < gradients.trainable_size(); ++i) most = std::max(most, std::abs(gradients.data()[i]));
  for (ParameterId id = 0; id < t.parameters.list().size(); ++id) {
    const ParameterSpec& spec = t.parameters.list()[id];
    if (!spec.trainable) continue;
    const Index i = RandomStream(5).below(id, spec.shape.elements());
    double& value = t.parameters[id][i];
    const double before = value, h = 1e-5;
    value = before + h;
    const double above = t.loss(training);
    value = before - h;
    const double below = t.loss(training);
    value = before;
    const double got = gradients[id][i], expected = (above - below) / (2 * h);
    BOOST_TEST(std::abs(got - expected) < 1e-6 * most,
               label << ", " << spec.name << "[" << i << "]: got " << got << ", expected " << expected);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_families)

BOOST_AUTO_TEST_CASE(published_sizes) {
  for (const Member& member : members) {
    const auto model = make_model(load_experiment(fmt::format("models/{}.toml", member.name)));
    BOOST_TEST(model->parameters().trainable_elements() == member.parameters, member.name);
    const double expected = member.multiplications + member.newton,
                 got = 1e-6 * static_cast<double>(multiplications(*model));
    BOOST_TEST(std::abs(got - expected) < 1.01e-4, member.name << ": " << got << ", expected " << expected);
    int tensors = 0;
    for (const ParameterSpec& spec : model->parameters()) tensors += spec.trainable;
    if (member.tensors == 0) continue;
    BOOST_TEST(tensors == member.tensors, member.name);
    BOOST_TEST(model->parameters().size() - tensors == member.buffers, member.name);
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_whole_models_agree_with_central_differences) {
  for (const bool training : {false, true}) {
    const auto check = [=](const std::string& family, const std::vector<std::string>& sets) {
      check_gradient(fmt::format("{}, {}", family, fmt::join(sets, ", ")), small_experiment(family, sets), training);
    };
    check("xcit", {});
    check("xcit",
          {"model.cls_attention=sima", "model.tokens_norm=false", "attention.mechanism=sima", "model.bn_group=3"});
    check("cvt", {});
    check("cvt", {"model.pool=mean", "model.kv_stride=1", "model.qk_scale=width", "attention.mechanism=soft",
                  "attention.landmarks=4", "model.gate=true"});
    check("cvt", {"model.qk_norm=true", "attention.mechanism=sima", "model.bn_group=2"});
    check("soft", {});
    check("soft", {"model.pool=mean", "model.gate=true", "model.bn_group=3"});
  }
}

// With qk_scale=width, scores are divided by the square root of the whole width instead of a head's width. Dividing the
// queries by the square root of the number of heads gives the same result without this key.
BOOST_AUTO_TEST_CASE(queries_are_scaled_by_the_width_where_asked) {
  SmallTraining wide(small_experiment("cvt", {"model.qk_scale=width"})), plain(small_experiment("cvt"));
  for (ParameterId id = 0; id < plain.parameters.list().size(); ++id) {
    const std::string& name = plain.parameters.list()[id].name;
    if (name.find(".attn.proj_q.") == std::string::npos) continue;
    for (double& value : plain.parameters[id]) value /= std::sqrt(name.starts_with("stage0.") ? 2.0 : 3.0);
  }
  BOOST_TEST(std::abs(wide.loss(false) - plain.loss(false)) < 1e-13);
  BOOST_TEST(std::abs(wide.loss(false) - SmallTraining(small_experiment("cvt")).loss(false)) > 1e-6);
}

/// Returns the gradients of a step over a batch, then the tensors' values after it, with lanes of `microbatch` images.
std::vector<double> step_results(const Experiment& x, int threads, Index microbatch, bool recompute = false,
                                 Index batch = 6) {
  const WithThreads with(threads);
  SmallTraining t(x, batch);
  BatchGradient<double> gradient(*t.model, t.parameters, batch, {.microbatch = microbatch, .recompute = recompute});
  gradient.run(t.batch(), RandomStream(9));
  std::vector<double> all(gradient.gradients().data(), gradient.gradients().data() + gradient.gradients().size());
  all.insert(all.end(), t.parameters.data(), t.parameters.data() + t.parameters.size());
  return all;
}

BOOST_AUTO_TEST_CASE(neither_threads_nor_recomputation_show) {
  for (const std::string family : {"xcit", "cvt", "soft"}) {
    const Experiment x = small_experiment(family);
    for (const Index microbatch : {1, 2}) {
      const std::vector<double> expected = step_results(x, 1, microbatch);
      BOOST_TEST((step_results(x, 2, microbatch) == expected), family);
      BOOST_TEST((step_results(x, 3, microbatch, true) == expected), family);
    }
  }
}

// Batch statistics are computed over the step, or over a group, wherever lanes begin; lanes of several images may
// differ in length. The remaining differences are rounding: sums over images are added in a different order, through
// two dozen layers.
BOOST_AUTO_TEST_CASE(lanes_in_lockstep_do_what_a_single_pass_does) {
  for (const std::string family : {"xcit", "cvt", "soft"})
    for (const auto& [batch, group] : {std::pair{11, 0}, {10, 5}, {9, 3}, {6, 2}}) {
      const std::string groups = fmt::format("model.bn_group={}", group);
      const Experiment x = small_experiment(family, {groups});
      const std::vector<double> expected = step_results(x, 1, batch, false, batch);
      for (const Index microbatch : {1, 2, 4}) {
        const std::vector<double> got = step_results(x, 2, microbatch, false, batch);
        double most = 0, off = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
          most = std::max(most, std::abs(expected[i]));
          off = std::max(off, std::abs(got[i] - expected[i]));
        }
        BOOST_TEST(off < 1e-11 * most,
                   family << ", " << groups << ", microbatches of " << microbatch << ": off by " << off);
      }
    }
}

// The lanes of a batch do not depend on the size of the largest batch.
BOOST_AUTO_TEST_CASE(a_smaller_batch_takes_no_more_lanes) {
  const Experiment x = small_experiment("xcit");
  std::vector<std::vector<double>> gradients;
  for (const Index most : {16, 17, 40}) {
    SmallTraining t(x, most);
    BatchGradient<double> gradient(*t.model, t.parameters, most, {.microbatch = 1});
    if (most == 17) gradient.run(t.batch(), RandomStream(9));
    gradient.run(t.first_images(16), RandomStream(9));
    gradients.emplace_back(gradient.gradients().data(), gradient.gradients().data() + gradient.gradients().size());
  }
  BOOST_TEST((gradients[1] == gradients[0]));
  BOOST_TEST((gradients[2] == gradients[0]));
}

// Each norm has two sums forward and one backward. If its block is recomputed, it has the two forward sums twice. All
// norms of CvT are in its blocks; XCiT has norms in its stem, too.
BOOST_AUTO_TEST_CASE(sums_over_the_batch_are_counted) {
  const auto sums = [](const Experiment& x, bool recompute) {
    SmallTraining t(x);
    BatchGradient<double> gradient(*t.model, t.parameters, 6, {.microbatch = 2, .recompute = recompute});
    for (int step = 0; step < 2; ++step) gradient.run(t.batch(), RandomStream(9));
    return gradient.sums_over_batch();
  };
  const Index cvt = 3 * 3, xcit_stem = 2, xcit = xcit_stem + 2;
  BOOST_TEST(sums(small_experiment("cvt"), false) == 3 * cvt);
  BOOST_TEST(sums(small_experiment("cvt"), true) == 5 * cvt);
  BOOST_TEST(sums(small_experiment("xcit"), false) == 3 * xcit);
  BOOST_TEST(sums(small_experiment("xcit"), true) == 3 * xcit_stem + 5 * (xcit - xcit_stem));
}

// Waiting for other lanes does not count as time of the operation.
BOOST_AUTO_TEST_CASE(waiting_is_in_no_profile) {
  const WithThreads with(2);
  SmallTraining t(small_experiment("cvt"), 11);
  BatchGradient<double> gradient(*t.model, t.parameters, 11, {.microbatch = 1});
  const ClassificationBatch<double> batch = t.batch();
  gradient.run(batch, RandomStream(9));
  gradient.start_profile();
  const auto start = Profile::Clock::now();
  gradient.run(batch, RandomStream(9));
  const double most = threads() * std::chrono::duration<double>(Profile::Clock::now() - start).count();
  double sum = 0;
  const Profile profile = gradient.profile();
  for (const Profile::Row& row : profile.rows()) sum += row.total();
  BOOST_TEST(sum < most);
  BOOST_TEST(sum > 0);
}

// The last lane's image causes the first infinity, in the first layer; the next batch norm then fails in all lanes.
BOOST_AUTO_TEST_CASE(what_is_not_finite_first_is_found_in_any_lane) {
  const Experiment x = small_experiment("cvt");
  SmallTraining t(x);
  t.images[5 * 2 * 9 * 9 + 9 + 1] = 1e308;  // multiplied by the first weight, since windows begin at odd positions
  t.parameters[t.parameters.list().find("stage0.patch_embed.proj.weight")][0] = 1e10;
  const ClassificationBatch<double> batch = t.batch();
  for (const Index microbatch : {6, 1}) {
    BatchGradient<double> gradient(*t.model, t.parameters, 6, {.microbatch = microbatch});
    gradient.run(batch, RandomStream(9));
    BOOST_TEST(gradient.first_non_finite() == "the result of conv2d in stage0.patch_embed.proj");
  }
}

BOOST_AUTO_TEST_CASE(a_batch_that_groups_do_not_divide) {
  SmallTraining t(small_experiment("xcit", {"model.bn_group=4"}));
  BOOST_CHECK_EXCEPTION(BatchGradient<double>(*t.model, t.parameters, 6, {}), Error, [](const Error& error) {
    BOOST_TEST(error.what() == "[model] bn_group = 4 does not divide the batch of 6 images");
    return true;
  });
}

BOOST_AUTO_TEST_CASE(what_decays) {
  const auto model = make_model(load_experiment("models/soft-tiny.toml"));
  const auto xcit = make_model(load_experiment("models/xcit-micro.toml"));
  const auto decays = [](const Model& of, const char* name) {
    const ParameterId id = of.parameters().find(name);
    BOOST_REQUIRE_MESSAGE(id >= 0, name);
    return of.parameters()[id].decay;
  };
  for (const char* name : {"pos_embed1", "cls_token", "patch_embed1.proj.0.bias", "patch_embed1.proj.1.weight",
                           "block1.0.attn.landmark_norm.weight", "block1.0.norm1.weight"})
    BOOST_TEST(!decays(*model, name), name);
  for (const char* name : {"block1.0.attn.vconv.weight", "block1.0.attn.landmark.weight", "patch_embed1.proj.0.weight"})
    BOOST_TEST(decays(*model, name), name);
  for (const char* name : {"blocks.0.attn.temperature", "blocks.0.gamma3", "pos_embed.token_projection.bias"})
    BOOST_TEST(!decays(*xcit, name), name);
  for (const char* name : {"pos_embed.token_projection.weight", "blocks.0.local_mp.conv1.weight"})
    BOOST_TEST(decays(*xcit, name), name);
}

// The code of positions is stored for rows and for columns, not for all positions, so a model of large images can be
// constructed, and rejected for its cost, with little memory.
BOOST_AUTO_TEST_CASE(positions_of_large_images_take_no_memory_before_they_are_used) {
  const auto taken = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const std::size_t before = taken();
  const auto model = make_model(load_experiment("models/xcit-micro.toml", {"model.image=2048"}));
  BOOST_TEST(taken() - before < 2'000'000U);
}

BOOST_AUTO_TEST_SUITE_END()
