// data.json of a run: what its data were when it began. The run is used by it, whatever happens to the data.
#pragma once

#include "heed/config/experiment.h"
#include "heed/data/dataset.h"
#include "heed/train/runs/run.h"

#include <map>
#include <optional>
#include <string>

namespace heed {

/// The content of data.json.
struct DataRecord {
  std::string name, source;       ///< data.name, data.source
  std::string path;               ///< where the data lay, absolute
  RecordedData recorded;          ///< classes, images set aside
  std::optional<int> background;  ///< grey level that the test images have in common (data/images/background.h)
  std::map<std::string, std::string> files;  ///< checksums of the files that were read, by their names below `path`
};

/// Describes data as they are now: reads all files.
DataRecord describe_data(const DataConfig& data, const DataFacts& facts);

std::string data_json(const DataRecord& record);

/// Returns the record of a run; none for runs of heed 0.2.0 and before.
std::optional<DataRecord> read_data_record(const RunPaths& paths);

/// Returns what differs between the files of two records, "2 added (a, b), 1 edited (c)"; empty if nothing does.
std::string data_changes(const DataRecord& before, const DataRecord& now);

/// Makes an experiment use what a run recorded, if it is on the run's data set: classes, images set aside, and where the
/// data lay, if it does not say. If they are no longer there, the usual places of the data set are tried.
void use_record(Experiment& experiment, const DataRecord& record);

}  // namespace heed
