// The readers behind open_dataset, one for each kind of files.
#pragma once

#include "heed/data/dataset.h"

#include <filesystem>
#include <memory>

namespace heed::data {

using Directory = std::filesystem::path;

/// MNIST's layout of IDX files. has_idx: whether the images of the split are there.
bool has_idx(const Directory& directory, Split split);
std::unique_ptr<Dataset> open_idx(const std::string& name, const Directory& directory, Split split);

/// CIFAR's binary batches; `classes` is 10 or 100.
bool has_cifar(int classes, const Directory& directory, Split split);
std::unique_ptr<Dataset> open_cifar(int classes, const Directory& directory, Split split);

/// A tree of PNG and JPEG files.
std::unique_ptr<Dataset> open_folder(const Directory& directory, Split split);

}  // namespace heed::data
