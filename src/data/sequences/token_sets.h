// Data sets of sequences, opened by open_sequences() (data/sequences/sequences.h).
#pragma once

#include "heed/data/sequences/sequences.h"

namespace heed {

/// Number of values of a byte, which holds a text token or a channel value.
inline constexpr Index byte_values = 256;

namespace data {

std::shared_ptr<const SequenceSet> open_listops(const DataConfig& data, Index context, Part part);
std::shared_ptr<const SequenceSet> open_pairs(const DataConfig& data, Index context, Part part);

/// Opens labelled documents. Unless documents_have_validation(), validation examples are among the training examples.
std::shared_ptr<const SequenceSet> open_documents(const DataConfig& data, Index context, Part part);
bool documents_have_validation(const DataConfig& data);

std::shared_ptr<const SequenceSet> open_pixels(const DataConfig& data, Part part);

}  // namespace data

}  // namespace heed
