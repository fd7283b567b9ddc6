// The readers behind open_dataset, one for each file format.
#pragma once

#include "heed/data/dataset.h"

#include <filesystem>
#include <memory>

namespace heed::data {

using Directory = std::filesystem::path;

/// IDX files of MNIST's family. has_idx() returns true if the images of the split exist.
bool has_idx(const std::string& set, const Directory& directory, Split split);
std::unique_ptr<Dataset> open_idx(const Directory& directory, Split split, const DataConfig& data);

/// CIFAR's binary batches; `set` is cifar10 or cifar100.
bool has_cifar(const std::string& set, const Directory& directory, Split split);
std::unique_ptr<Dataset> open_cifar(const Directory& directory, Split split, const DataConfig& data);

/// A tree of image files.
std::unique_ptr<Dataset> open_folder(const Directory& directory, Split split, const DataConfig& data);

}  // namespace heed::data
