#include "calibration_models.h"

#include "heed/attention/mechanism.h"
#include "heed/base/parallel.h"

#include <algorithm>

namespace heed::bench {

namespace {

Experiment vit_of(Index image, Index channels, Index patch, Index dim, Index heads, Index hidden, Index depth) {
  Experiment x;
  x.model.image = image, x.model.channels = channels, x.model.patch = patch;
  x.model.dim = dim, x.model.heads = heads, x.model.hidden = hidden, x.model.depth = depth;
  x.model.classes = 10;
  return x;
}

Experiment sequence_of(const char* task, Index vocab, Index context, Index dim, Index heads, Index hidden) {
  Experiment x;
  x.model.family = "sequence", x.model.task = task;
  x.model.vocab = vocab, x.model.context = context;
  x.model.dim = dim, x.model.heads = heads, x.model.hidden = hidden, x.model.depth = 2;
  if (x.model.task != "lm") x.model.classes = 10, x.model.pool = "mean";
  return x;
}

Experiment xcit_of(Index image, Index channels, Index dim, Index heads, Index hidden, Index depth) {
  Experiment x = vit_of(image, channels, 4, dim, heads, hidden, depth);
  x.model.family = "xcit", x.model.cls_depth = 1;
  x.attention.mechanism = {"xca"};
  return x;
}

/// Returns a model of three stages with widths w, 2 w and 3 w, and d channels per head.
Experiment staged_of(const char* family, Index image, Index channels, Index w, Index d, Index last_depth) {
  Experiment x;
  x.model.family = family;
  x.model.image = image, x.model.channels = channels, x.model.classes = 10;
  StageSizes& s = x.model.stages;
  s.stride = {2, 2, 2};
  s.dim = {w, 2 * w, 3 * w}, s.depth = {1, 1, last_depth}, s.heads = {w / d, 2 * w / d, 3 * w / d};
  s.hidden = {2 * w, 4 * w, 6 * w};
  if (x.model.family == "cvt") {
    s.patch = {3, 3, 3}, s.padding = {1, 1, 1};
    return x;
  }
  x.model.stem = 16;
  x.attention.mechanism = {"soft", "soft", "softmax"};
  x.attention.options = {{"landmarks", {"16", ""}},
                         {"landmark_act", {"true", ""}},
                         {"vconv", {"", "", {"5", "3", "0"}}},
                         {"ridge", {"0.01", ""}}};
  return x;
}

void choose(Experiment& x, const MechanismEntry& entry, const MechanismSetting& setting) {
  x.attention.mechanism = {entry.name};
  for (const auto& [option, value] : setting.options) x.attention.options[option] = {value, "calibration"};
}

}  // namespace

std::vector<Candidate> candidates() {
  const Index each = 8, batch = each * std::clamp(threads(), 2, 16);
  std::vector<Candidate> list;
  const auto add = [&](const std::string& name, const Experiment& x, Index images) -> Experiment& {
    return list.emplace_back(Candidate{name, x, images}).experiment;
  };
  struct Size {
    Experiment experiment;
    Index batches;  // number of images, in multiples of `batch`
    Index microbatch = 8;
  };
  Size sizes[] = {{vit_of(28, 1, 4, 64, 4, 128, 2), 4},   {vit_of(32, 3, 4, 192, 3, 768, 2), 1},
                  {vit_of(28, 1, 7, 48, 2, 192, 3), 2},   {vit_of(64, 3, 4, 96, 3, 192, 1), 1},
                  {vit_of(56, 3, 4, 128, 8, 256, 1), 1},  {vit_of(40, 3, 4, 192, 6, 384, 2), 1},
                  {vit_of(36, 3, 4, 256, 4, 1024, 1), 2}, {vit_of(48, 3, 8, 384, 6, 768, 1), 2},
                  {vit_of(32, 1, 8, 80, 2, 80, 4), 8},    {vit_of(42, 3, 7, 160, 8, 320, 1), 2, 4},
                  {vit_of(48, 1, 4, 64, 1, 64, 3), 1, 2}, {vit_of(88, 3, 8, 280, 7, 560, 1), 1}};
  for (Size& size : sizes) size.experiment.train.microbatch = size.microbatch;
  for (const MechanismEntry& entry : mechanisms())
    for (const MechanismSetting& setting : entry.settings())
      for (const Size& size : sizes) choose(add(setting.label, size.experiment, size.batches * batch), entry, setting);
  for (const Size& size : sizes)
    if (size.experiment.model.dim < 200)
      add("adder layers", size.experiment, size.batches * batch).model.linear = {"adder"};
  for (const Experiment& x : {sequence_of("lm", 256, 128, 128, 4, 512), sequence_of("lm", 64, 64, 64, 2, 128),
                              sequence_of("lm", 16, 196, 96, 6, 192), sequence_of("lm", 100, 288, 160, 4, 480),
                              sequence_of("lm", 50, 36, 224, 7, 448)})
    for (const MechanismEntry& entry : mechanisms())  // mechanisms without a causal form are skipped later
      for (const MechanismSetting& setting : entry.settings())
        choose(add("sequence " + setting.label, x, batch), entry, setting);
  for (const Experiment& x :
       {sequence_of("classify", 256, 256, 64, 4, 128), sequence_of("classify", 16, 48, 96, 3, 384)})
    add("sequence", x, batch);
  for (const Experiment& x :
       {xcit_of(28, 1, 64, 4, 128, 2), xcit_of(32, 3, 128, 4, 512, 1), xcit_of(56, 3, 96, 6, 192, 1),
        xcit_of(24, 1, 192, 4, 384, 3), xcit_of(20, 1, 48, 2, 96, 2), xcit_of(44, 3, 32, 1, 64, 5)})
    add("xcit", x, batch);
  for (const char* const family : {"cvt", "soft-pyramid"})
    for (const Experiment& x : {staged_of(family, 28, 1, 32, 16, 2), staged_of(family, 32, 3, 64, 32, 1),
                                staged_of(family, 48, 3, 32, 16, 1), staged_of(family, 40, 1, 48, 16, 3),
                                staged_of(family, 34, 3, 24, 24, 1), staged_of(family, 46, 1, 16, 16, 2)})
      for (const Index images : {batch, 4 * batch}) add(family, x, images);
  // Steps with microbatches shared by threads, with uneven or many microbatches, and with many weights.
  const Experiment micro = vit_of(28, 1, 4, 64, 4, 128, 4), tiny = vit_of(32, 3, 4, 192, 3, 768, 4);
  for (const Index images : {Index{1}, Index{4}, each, 3 * each, 5 * each, 8 * each, 16 * each})
    add("vit", micro, images);
  for (const Index images : {Index{1}, each, 3 * each, 4 * each}) add("vit", tiny, images);
  add("vit", vit_of(24, 3, 4, 384, 6, 1536, 6), batch);
  add("vit", vit_of(28, 3, 4, 512, 8, 2048, 3), batch);
  add("vit", vit_of(28, 3, 7, 384, 6, 1536, 6), batch);
  return list;
}

}  // namespace heed::bench
