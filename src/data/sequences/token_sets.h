// The data sets of sequences, among which data/sequences/sequences.h chooses.
#pragma once

#include "heed/data/sequences/sequences.h"

namespace heed {

/// Values of a byte: of a byte as a token, of a pixel.
inline constexpr Index byte_values = 256;

namespace data {

std::shared_ptr<const SequenceSet> open_listops(const DataConfig& data, Index context, Part part);
std::shared_ptr<const SequenceSet> open_pairs(const DataConfig& data, Index context, Part part);

/// Documents of classes; validation examples are among those to train on unless `has_validation`.
std::shared_ptr<const SequenceSet> open_documents(const DataConfig& data, Index context, Part part);
bool documents_have_validation(const DataConfig& data);

std::shared_ptr<const SequenceSet> open_pixels(const DataConfig& data, Part part);

}  // namespace data

}  // namespace heed
