// A tree of image files.
#include "files.h"
#include "readers.h"
#include "tree.h"
#include "heed/base/parallel.h"
#include "heed/base/warnings.h"

#include <algorithm>
#include <utility>

namespace heed::data {

namespace {

/// Maximum number of pixel bytes for a tree to be decoded when it is opened; images of a larger tree are decoded each
/// time they are read.
constexpr Index memory_limit = Index{1} << 30;

/// Background of transparent images.
constexpr std::uint8_t white = 255;

class Folder : public Dataset {
 public:
  Folder(LabelledFiles files, const DataConfig& data)
      : Dataset("folder", std::move(files.classes), std::move(files.paths)),
        orientation_(data.orientation),
        labels_(std::move(files.labels)) {
    sizes_.resize(files_.size());
    offsets_.resize(files_.size());
    reasons_.resize(files_.size());
    for_readable("checking images", [&](Index i) { sizes_[i] = image_file_size(files_[i], orientation_); });
    Index pixels = 0;
    for (std::size_t i = 0; i < files_.size(); ++i) offsets_[i] = std::exchange(pixels, pixels + sizes_[i].elements());
    const bool small = pixels <= memory_limit;
    if (small) pixels_.resize(pixels);
    if (small || data.skip_bad || data.verify) for_readable("reading images", [&](Index i) { decode(i); });
    leave_out_bad(data.skip_bad);
  }

  bool has_file_per_image() const override { return true; }
  Index size() const override { return static_cast<Index>(files_.size()); }
  int label(Index image) const override { return labels_[image]; }
  bool in_memory() const override { return !pixels_.empty(); }

  void read(Index image, Image& to) const override {
    HEED_ASSERT(image >= 0 && image < size());
    if (in_memory()) {
      const std::uint8_t* const from = pixels_.data() + offsets_[image];
      to.size = sizes_[image];
      to.pixels.assign(from, from + to.size.elements());
    } else {
      to = load_image(files_[image], white, orientation_);
    }
  }

  ImageSize image_size() const override {
    const auto other = std::find_if(sizes_.begin(), sizes_.end(), [&](const ImageSize& s) { return s != sizes_[0]; });
    if (other != sizes_.end())
      fail("{} is {} (channels, height, width), {} is {}; expected one size; set data.resize=true to convert them",
           files_[0], to_string(sizes_[0]), files_[other - sizes_.begin()], to_string(*other));
    return sizes_[0];
  }

 private:
  /// Calls f(i) for the images without a recorded error, and records the errors that f throws.
  template <class F>
  void for_readable(const char* what, const F& f) {
    const ReadingProgress progress(what, size());
    for_each_image(threads(), size(), [&](Index i) {
      try {
        if (reasons_[i].empty()) f(i);
      } catch (const Error& error) {
        reasons_[i] = error.what();
      }
      progress.advance();
    });
  }

  /// Decodes an image, into pixels_ if all are held in memory.
  void decode(Index i) {
    const Image image = load_image(files_[i], white, orientation_);
    require(image.size == sizes_[i], "{}: the file changed during reading", files_[i]);
    if (in_memory()) std::copy(image.pixels.begin(), image.pixels.end(), pixels_.begin() + offsets_[i]);
  }

  /// If `skip`, removes unreadable images, with a warning. Throws BadFiles if there are any and `skip` is false, or if
  /// all images are unreadable.
  void leave_out_bad(bool skip) {
    BadFiles bad{reasons_};
    std::erase(bad.reasons, "");
    bad.leave_out(files_.size(), image_kind(), skip);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (!reasons_[i].empty()) continue;
      files_[kept] = files_[i], labels_[kept] = labels_[i], sizes_[kept] = sizes_[i], offsets_[kept] = offsets_[i];
      ++kept;
    }
    files_.resize(kept), labels_.resize(kept), sizes_.resize(kept), offsets_.resize(kept);
  }

  bool orientation_;
  std::vector<int> labels_;
  std::vector<ImageSize> sizes_;
  std::vector<std::string> reasons_;  // error of each image; empty if it is readable
  std::vector<Index> offsets_;        // offset of image i in pixels_
  std::vector<std::uint8_t> pixels_;  // empty if images are decoded as they are read
};

}  // namespace

const TreeKind& image_kind() {
  static const TreeKind kind{has_image_name,
                             "image",
                             image_endings,
                             "; convert the images with ImageMagick: mogrify -format png FILE...",
                             false,
                             {".webp", ".tif", ".tiff", ".heic", ".heif", ".avif", ".jxl", ".jp2", ".j2k", ".ppm",
                              ".pgm",  ".pbm", ".pnm",  ".tga",  ".ico",  ".psd",  ".svg", ".dng", ".dib", ".pcx"}};
  return kind;
}

std::unique_ptr<Dataset> open_folder(const Directory& directory, Split split, const DataConfig& data) {
  read_limit();  // reports an invalid $HEED_READ_LIMIT once, not for each image
  return open_readable(split, has_part(directory, Split::validation), image_kind(), data.skip_bad, [&](Split of) {
    return std::make_unique<Folder>(labelled_files(directory, of, image_kind(), data.recorded), data);
  });
}

}  // namespace heed::data
