#include "heed/data/loader.h"

#include "src/data/augment/augment.h"
#include "src/data/augment/views.h"
#include "src/data/readers/files.h"
#include "src/data/readers/recorded_files.h"
#include "heed/data/images/background.h"
#include "heed/data/images/normalise.h"
#include "heed/base/parallel.h"
#include "heed/base/random.h"
#include "heed/base/suggest.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

namespace heed {

/// Fisher-Yates shuffle.
void shuffle(std::vector<Index>& items, const RandomStream& stream) {
  for (Index i = static_cast<Index>(items.size()) - 1; i > 0; --i) std::swap(items[i], items[stream.below(i, i + 1)]);
}

std::vector<Index> all_images(Index size) {
  std::vector<Index> images(size);
  std::iota(images.begin(), images.end(), Index{0});
  return images;
}

namespace {

/// Truncates the training images to the first `limit`; 0: all.
void keep_limit(std::vector<Index>& images, Index limit) {
  if (limit > 0 && limit < static_cast<Index>(images.size())) images.resize(limit);
}

}  // namespace

void require_one_batch(const std::string& name, Index count, const char* examples, Index batch) {
  require(count >= batch, "{}: {} training {} do not fill one batch of {}; expected a train.batch of at most {}", name,
          count, examples, batch, count);
}

Subsets split_validation(Index size, const DataConfig& config, std::uint64_t seed) {
  require(config.limit >= 0, "data.limit is {}; expected 0 or more", config.limit);
  require(config.validation >= 0 && config.validation < size,
          "data.validation sets aside {} of {} training examples; expected 0 to {}", config.validation, size, size - 1);
  std::vector<Index> images = all_images(size);
  shuffle(images, RandomStream(seed).derive("validation"));
  const auto cut = images.begin() + config.validation;
  Subsets subsets{{cut, images.end()}, {images.begin(), cut}};
  std::sort(subsets.train.begin(), subsets.train.end());
  std::sort(subsets.validation.begin(), subsets.validation.end());
  keep_limit(subsets.train, config.limit);
  return subsets;
}

std::vector<Index> examples_of(Index size, Part part, const DataConfig& config, std::uint64_t seed) {
  if (part == Part::test) return all_images(size);
  Subsets subsets = split_validation(size, config, seed);
  return part == Part::train ? std::move(subsets.train) : std::move(subsets.validation);
}

std::vector<Index> examples_of_files(const std::vector<std::string>& files, Part part, const DataConfig& config,
                                     std::uint64_t seed) {
  const std::vector<std::string>& recorded = config.recorded.validation;
  const auto size = static_cast<Index>(files.size());
  const Index drawn = static_cast<Index>(recorded.size()) + config.recorded.validation_removed;
  if (part == Part::test || recorded.empty() || drawn != config.validation)
    return examples_of(size, part, config, seed);
  const std::set<Index> aside = data::recorded_positions(files, recorded, config.recorded, config.path);
  if (config.recorded.elsewhere && !data::has_recorded_content(files, aside, recorded, config.recorded)) {
    DataConfig other = config;
    other.validation = 0;
    return examples_of(size, part, other, seed);
  }
  Subsets subsets;
  for (Index i = 0; i < size; ++i) (aside.contains(i) ? subsets.validation : subsets.train).push_back(i);
  require(!subsets.validation.empty(), "{}: the run's validation files are missing: {}; restore them", config.path,
          first_names(recorded, 3));
  require(!subsets.train.empty(), "{}: all {} examples are the run's validation examples; expected others to train on",
          config.path, size);
  keep_limit(subsets.train, config.limit);
  return part == Part::train ? std::move(subsets.train) : std::move(subsets.validation);
}

ImageSets::ImageSets(DataConfig data, Index seed, std::string path_key)
    : data_(std::move(data)), seed_(seed), path_key_(std::move(path_key)) {}

bool ImageSets::own_validation(Part part) { return part != Part::test && has_directory(data_, Split::validation); }

const Dataset& ImageSets::set(Part part) {
  const Split split = part == Part::validation && own_validation(part) ? Split::validation : split_of(part);
  std::unique_ptr<Dataset>& set = sets_[static_cast<std::size_t>(split)];
  if (!set) set = open_dataset(data_, split, path_key_);
  return *set;
}

std::vector<Index> ImageSets::images(Part part) {
  const Dataset& set = this->set(part);
  if (!own_validation(part))
    return set.has_file_per_image() ? examples_of_files(set.files(), part, data_, seed_)
                                    : examples_of(set.size(), part, data_, seed_);
  DataConfig whole = data_;
  whole.validation = 0;
  return examples_of(set.size(), part == Part::validation ? Part::test : part, whole, seed_);
}

DataFacts ImageSets::facts() {
  const Dataset &train = set(Part::train), &test = set(Part::test);
  DataFacts facts{test.class_names(), common_background(test),          train.files(), {},
                  test.files(),       !own_validation(Part::validation)};
  for (const Part part : {Part::validation, Part::test}) {
    const std::vector<std::string>& files = set(part).files();
    if (&set(part) != &train) facts.files.insert(facts.files.end(), files.begin(), files.end());
  }
  if (train.has_file_per_image())
    for (const Index i : images(Part::validation)) facts.validation.push_back(set(Part::validation).files()[i]);
  return facts;
}

template <class T>
class Loader<T>::Pipeline {
 public:
  Pipeline(const Dataset& dataset, std::vector<Index> subset, const DataConfig& config, const Loading& loading)
      : dataset_(dataset),
        subset_(std::move(subset)),
        order_(subset_),
        config_(config),
        input_(loading.input),
        batch_(loading.training ? loading.batch : std::min(loading.batch, std::max<Index>(std::ssize(subset_), 1))),
        random_(loading.seed),
        training_(loading.training),
        normalise_(config, input_.channels),
        classes_(static_cast<Index>(dataset.class_names().size())) {
    for (const Index image : subset_)
      require(image >= 0 && image < dataset.size(), "{}: image {} of {}", dataset.name(), image, dataset.size());
    require(batch_ >= 1, "the batch size is {}; expected at least 1", batch_);
    if (loading.views)
      views_.emplace(config, *loading.views, input_);
    else if (const Augmentations which = parse_augmentations(config); training_)
      which_ = which;
    if (config.resize == "none") {
      const ImageSize found = dataset.image_size();
      require(
          found == input_,
          "{}: the images are {} (channels, height, width), the model expects {}; set data.resize=true to convert them",
          dataset.name(), to_string(found), to_string(input_));
    }
    const Index images = static_cast<Index>(subset_.size());
    batches_ = training_ ? images / batch_ : (images + batch_ - 1) / batch_;
    if (training_) require_one_batch(dataset.name(), images, "images", batch_);
    // Images in memory that are neither resized nor cropped to views nor changed by RandAugment need only a copy and a
    // table lookup per value, too little work to parallelise.
    const bool dear = config.resize != "none" || views_ || which_.randaugment || !dataset.in_memory();
    workers_ = dear ? (loading.workers == 0 ? threads() : loading.workers) : 1;
    for (Slot& slot : ring_) {
      slot.batch.images =
          Tensor<T>(views_ ? views_shape(2, 0) : Shape{batch_, input_.channels, input_.height, input_.width});
      if (views_) slot.batch.crops = Tensor<T>(views_shape(views_->count() - 2, 2));
      slot.batch.targets = Tensor<T>({batch_, classes_});
      slot.batch.labels.resize(batch_);
    }
    if (loading.ahead) maker_ = std::thread([this] { work(); });
  }

  ~Pipeline() {
    if (!maker_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wanted_.notify_one();
    maker_.join();
  }

  Index batches() const { return batches_; }

  void make_only(std::function<bool(Index, Index)> wanted) {
    std::unique_lock lock(mutex_);
    made_.wait(lock, [&] { return !making_; });
    end_ = ready_ = taken_;  // discards the rest of the current epoch
    wanted_images_ = std::move(wanted);
  }

  void start(Index epoch, Index first_batch) {
    require(first_batch >= 0 && first_batch <= batches_, "an epoch of {} batches cannot start at batch {}", batches_,
            first_batch);
    std::unique_lock lock(mutex_);
    made_.wait(lock, [&] { return !making_; });
    epoch_ = epoch;
    taken_ = ready_ = first_batch;
    end_ = batches_;
    if (training_ && config_.shuffle) {
      std::copy(subset_.begin(), subset_.end(), order_.begin());
      shuffle(order_, random_.derive("order").derive(epoch));
    }
    lock.unlock();
    wanted_.notify_one();
  }

  const Batch<T>* next() {
    std::unique_lock lock(mutex_);
    if (taken_ == end_) return nullptr;
    if (!maker_.joinable()) fill(ready_++);
    made_.wait(lock, [&] { return ready_ > taken_; });
    Slot& slot = slot_of(taken_++);
    lock.unlock();
    wanted_.notify_one();
    if (slot.error) std::rethrow_exception(slot.error);
    return &slot.batch;
  }

 private:
  struct Slot {
    Batch<T> batch;
    std::exception_ptr error;
  };

  Slot& slot_of(Index number) { return ring_[static_cast<std::size_t>(number) % ring_.size()]; }

  /// Loop of the background thread. The slot of batch taken_ - 1 is in use by the reader; the others are filled ahead.
  void work() {
    const Index ahead = static_cast<Index>(ring_.size()) - 1;
    std::unique_lock lock(mutex_);
    while (true) {
      wanted_.wait(lock, [&] { return stop_ || (ready_ < end_ && ready_ < taken_ + ahead); });
      if (stop_) return;
      making_ = true;
      const Index number = ready_;
      lock.unlock();
      fill(number);
      lock.lock();
      making_ = false;
      ++ready_;
      made_.notify_one();
    }
  }

  void fill(Index number) {
    Slot& slot = slot_of(number);
    slot.error = nullptr;
    try {
      make(number, slot.batch);
    } catch (...) {
      slot.error = std::current_exception();
    }
  }

  /// Returns the shape of a batch of `count` views per image, each of the size of view `like`.
  Shape views_shape(Index count, Index like) const {
    const ImageSize size = views_->size(like);
    return {batch_, count, size.channels, size.height, size.width};
  }

  RandomStream stream(const char* purpose, Index id) const { return random_.derive(purpose).derive(epoch_).derive(id); }

  void make(Index number, Batch<T>& batch) {
    batch.first = number * batch_;
    batch.size = std::min(batch_, static_cast<Index>(order_.size()) - batch.first);
    const bool mixes = which_.mixup || which_.cutmix;
    const auto wanted = [&](Index i) { return !wanted_images_ || wanted_images_(i, batch.size); };
    data::for_each_image(workers_, batch.size, [&](Index i) {
      if (wanted(i) || (mixes && wanted(batch.size - 1 - i))) make_image(batch, i);
    });
    if (mixes)
      apply_mix(draw_mix(which_, config_, input_, stream("mix", number)), batch.images.view(), batch.targets.view());
  }

  void make_image(Batch<T>& batch, Index i) {
    thread_local Image image;
    const Index id = order_[batch.first + i];
    dataset_.read(id, image);
    // Views are cropped from the image at its original size.
    const ImageSize wanted = views_ ? ImageSize{input_.channels, image.size.height, image.size.width} : input_;
    if (views_)
      image = convert(std::move(image), wanted);
    else if (image.size != wanted || config_.resize == "crop")
      image = fitted(std::move(image), wanted, config_);
    const RandomStream random = stream("augment", id);
    if (views_) {
      make_views(image, random, batch, i);
    } else {
      augment(image, which_, config_, random);
      T* to = batch.images.data() + i * input_.elements();
      normalise_(image, to);
      if (which_.erase)
        erase(View<T>(to, {input_.channels, input_.height, input_.width}), config_.erase_probability,
              random.derive("erase"));
    }

    const int label = dataset_.label(id);
    T* target = batch.targets.data() + i * classes_;
    std::fill(target, target + classes_, T(0));
    target[label] = 1;
    batch.labels[i] = label;
  }

  void make_views(const Image& image, const RandomStream& random, Batch<T>& batch, Index i) const {
    const Index crops = views_->count() - 2;
    for (Index view = 0; view < views_->count(); ++view) {
      const Index elements = views_->size(view).elements();
      T* const to = view < 2 ? batch.images.data() + (2 * i + view) * elements
                             : batch.crops.data() + (crops * i + view - 2) * elements;
      normalise_((*views_)(image, view, random.derive("view").derive(view)), to);
    }
  }

  const Dataset& dataset_;
  std::vector<Index> subset_, order_;
  DataConfig config_;
  ImageSize input_;
  Index batch_, batches_ = 0;
  RandomStream random_;
  bool training_;
  Normaliser<T> normalise_;
  Index classes_;
  Augmentations which_;
  std::optional<ViewMaker> views_;
  std::function<bool(Index, Index)> wanted_images_;
  int workers_ = 1;

  std::array<Slot, 3> ring_;  // the reader's batch and two ahead
  std::mutex mutex_;
  std::condition_variable wanted_, made_;
  // Guarded by mutex_. While making_ is true, epoch_, order_ and wanted_images_ do not change; the background thread
  // reads them without the lock.
  Index epoch_ = 0, taken_ = 0, ready_ = 0, end_ = 0;
  bool making_ = false, stop_ = false;
  std::thread maker_;
};

template <class T>
Loader<T>::Loader(const Dataset& dataset, std::vector<Index> subset, const DataConfig& config, const Loading& loading)
    : pipeline_(std::make_unique<Pipeline>(dataset, std::move(subset), config, loading)) {}

template <class T>
Loader<T>::~Loader() = default;

template <class T>
Index Loader<T>::batches() const {
  return pipeline_->batches();
}

template <class T>
void Loader<T>::make_only(std::function<bool(Index, Index)> wanted) {
  pipeline_->make_only(std::move(wanted));
}

template <class T>
void Loader<T>::start(Index epoch, Index first_batch) {
  pipeline_->start(epoch, first_batch);
}

template <class T>
const Batch<T>* Loader<T>::next() {
  return pipeline_->next();
}

template class Loader<float>;
template class Loader<double>;

}  // namespace heed
