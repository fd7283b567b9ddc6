// Each setting of a run has an effect, except at its neutral value.
#include "heed/io/safetensors.h"

#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace {

using Sets = std::vector<std::string>;

/// Short runs of small experiments with changed settings: three steps per epoch, two epochs.
struct Settings {
  Workshop workshop{68, 10};
  std::string file = workshop / "x.toml";
  int runs = 0;

  explicit Settings(Experiment x) {
    x.data.path = workshop.data();
    x.train.epochs = 2, x.train.seed = 3, x.optim.warmup_epochs = 0;
    write_file(file, to_toml(x));
  }

  /// Returns all tensors of a run's last checkpoint, except averaged weights and the optimiser's moments.
  std::vector<double> end_of(const Sets& sets) {
    const std::string directory = workshop / std::to_string(runs++);
    run(load_experiment(file, sets), directory);
    const SafetensorsFile last(directory + "/last.safetensors");
    std::vector<double> all;
    for (const std::string& name : last.names())
      if (!name.starts_with("heed.average.") && !name.starts_with("heed.m") && !name.starts_with("heed.square")) {
        const Tensor<double> tensor = last.read<double>(name);
        all.insert(all.end(), tensor.begin(), tensor.end());
      }
    return all;
  }

  /// Checks that the last of these settings changes the run.
  void check_matters(const Sets& sets) {
    BOOST_TEST((end_of(sets) != end_of({sets.begin(), sets.end() - 1})), sets.back() << " changes nothing");
  }
  void check_same(const Sets& sets, const Sets& others) {
    BOOST_TEST((end_of(sets) == end_of(others)), (sets.empty() ? "" : sets.back()) << " changes something");
  }
};

Experiment images() { return Workshop(10, 10).experiment(); }

const std::string crop = "data.augment=['crop']", erase = "data.augment=['erase']",
                  operations = "data.augment=['randaugment']";

}  // namespace

BOOST_AUTO_TEST_SUITE(train_settings)

BOOST_AUTO_TEST_CASE(each_setting_of_a_classifier_matters) {
  Settings settings(images());
  for (const Sets& sets : std::vector<Sets>{{crop},
                                            {crop, "data.crop_padding=1"},
                                            {"data.augment=['flip']"},
                                            {operations},
                                            {operations, "data.randaugment_ops=1"},
                                            {operations, "data.randaugment_magnitude=3"},
                                            {erase, "data.erase_probability=1"},
                                            {"data.augment=['mixup']"},
                                            {"data.augment=['mixup']", "data.mixup_alpha=0.1"},
                                            {"data.augment=['cutmix']"},
                                            {"data.augment=['cutmix']", "data.cutmix_alpha=0.1"},
                                            {"data.mean=[0.5]"},
                                            {"data.std=[0.5]"},
                                            {"data.shuffle=false"},
                                            {"data.limit=32"},
                                            {"data.validation=12"},
                                            {"train.dropout=0.1"},
                                            {"train.drop_path=0.3"},
                                            {"train.label_smoothing=0.1"},
                                            {"train.seed=4"},
                                            {"train.batch=12"},
                                            {"train.epochs=3"},
                                            {"optim.lr=2e-3"},
                                            {"optim.betas=[0.8,0.999]"},
                                            {"optim.betas=[0.9,0.9]"},
                                            {"optim.eps=1e-3"},
                                            {"optim.weight_decay=0.5"},
                                            {"optim.weight_decay_end=0.5"},
                                            {"optim.weight_decay_end=0"},
                                            {"optim.clip=0.1"},
                                            {"optim.min_lr=5e-4"},
                                            {"optim.warmup_epochs=1"},
                                            {"optim.warmup_steps=2"},
                                            {"optim.schedule=linear"},
                                            {"optim.schedule=constant"},
                                            {"optim.schedule=linear", "optim.warmup_steps=2"},
                                            {"optim.name=sgd"},
                                            {"optim.name=sgd", "optim.momentum=0"}})
    settings.check_matters(sets);
}

BOOST_AUTO_TEST_CASE(ends_of_ranges_that_stand_for_nothing) {
  Settings settings(images());
  settings.check_same({crop, "data.crop_padding=0"}, {});
  settings.check_same({operations, "data.randaugment_ops=0"}, {});
  settings.check_same({erase, "data.erase_probability=0"}, {});
  settings.check_same({"train.label_smoothing=0"}, {});
  settings.check_same({"train.ema=0.5"}, {});  // the average does not affect the weights
  settings.check_same({"data.limit=0"}, {"data.limit=1000"});
  settings.check_same({"optim.clip=0"}, {"optim.clip=1e9"});
  settings.check_same({"optim.weight_decay_end=-1"}, {});
  settings.check_same({"optim.warmup_steps=3"}, {"optim.warmup_epochs=1"});
  for (const char* schedule : {"cosine", "linear"})
    settings.check_same({"optim.min_lr=1e-3", std::string("optim.schedule=") + schedule}, {"optim.schedule=constant"});
}

BOOST_AUTO_TEST_CASE(each_setting_of_a_teacher_matters) {
  const Workshop any(10, 10);
  Settings settings(dino_experiment(any));
  for (const Sets& sets :
       std::vector<Sets>{{"data.augment=['flip']"},
                         {"data.augment=['blur']"},
                         {"data.augment=['solarise']"},
                         {"dino.local_crops=0"},
                         {"dino.global_scale=[0.8,1]"},
                         {"dino.local_scale=[0.2,0.3]"},
                         {"dino.norm_last_layer=false"},
                         {"dino.freeze_last_layer=0"},
                         {"dino.student_temp=0.2"},
                         {"dino.teacher_temp=0.07"},
                         {"dino.teacher_temp=0.07", "dino.teacher_temp_warmup=2"},
                         {"dino.teacher_temp=0.07", "dino.teacher_temp_warmup=2", "dino.teacher_temp_start=0.05"},
                         {"dino.center_momentum=0.5"},
                         {"dino.ema=0.5"},
                         {"optim.clip=0.1"},
                         {"optim.weight_decay_end=0"}})
    settings.check_matters(sets);
  settings.check_same({"dino.teacher_temp_start=0.05"}, {});  // there is no warm-up
  settings.check_same({"dino.teacher_temp_warmup=2"}, {});    // warm-up from 0.04 to 0.04
}

BOOST_AUTO_TEST_SUITE_END()
