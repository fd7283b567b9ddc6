// Data sets of sequences, selected in data/sequences/sequences.h.
#pragma once

#include "heed/data/sequences/sequences.h"

namespace heed {

/// Number of values of a byte: a text token or a pixel.
inline constexpr Index byte_values = 256;

namespace data {

std::shared_ptr<const SequenceSet> open_listops(const DataConfig& data, Index context, Part part);
std::shared_ptr<const SequenceSet> open_pairs(const DataConfig& data, Index context, Part part);

/// Labelled documents; validation examples are among the training examples unless documents_have_validation().
std::shared_ptr<const SequenceSet> open_documents(const DataConfig& data, Index context, Part part);
bool documents_have_validation(const DataConfig& data);

std::shared_ptr<const SequenceSet> open_pixels(const DataConfig& data, Part part);

}  // namespace data

}  // namespace heed
