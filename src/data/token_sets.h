// What opens the data sets of sequences. data/sequences.h chooses among them.
#pragma once

#include "heed/data/sequences.h"

namespace heed::data {

std::shared_ptr<const SequenceSet> open_listops(const DataConfig& data, Index context, SequencePart part);
std::shared_ptr<const SequenceSet> open_pairs(const DataConfig& data, Index context, SequencePart part);

/// Documents of classes; validation examples are among those to train on unless `has_validation`.
std::shared_ptr<const SequenceSet> open_documents(const DataConfig& data, Index context, SequencePart part);
bool documents_have_validation(const DataConfig& data);

std::shared_ptr<const SequenceSet> open_pixels(const DataConfig& data, SequencePart part);

}  // namespace heed::data
