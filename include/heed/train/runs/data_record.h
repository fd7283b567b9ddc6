// data.json of a run: a description of its data at the start, used for the run even if the data change later.
#pragma once

#include "heed/config/experiment.h"
#include "heed/data/dataset.h"
#include "heed/train/runs/run.h"

#include <optional>
#include <string>

namespace heed {

/// The content of data.json.
struct DataRecord {
  std::string name, source;          ///< data.name, data.source
  std::string path;                  ///< location of the data, an absolute path
  RecordedData recorded;             ///< classes, validation and test files, and checksums of the files that were read
  std::optional<int> background;     ///< common grey level of the test images (data/images/background.h)
  std::vector<std::string> changes;  ///< of the data, with which the run was resumed: "after step 7: 1 added (a.png)"
};

/// Reads all files and describes the data.
DataRecord describe_data(const DataConfig& data, const DataFacts& facts);

/// Opens the data of an experiment and describes them, as a run that starts now would.
DataRecord describe_data_now(const Experiment& experiment);

/// Returns the record as the content of data.json.
std::string data_json(const DataRecord& record);

/// Returns the record of a run; none for runs of heed 0.2.0 and earlier.
std::optional<DataRecord> read_data_record(const RunPaths& paths);

/// Returns the differences between the files of two records, such as "2 added (a, b), 1 edited (c)"; empty if none.
std::string data_changes(const DataRecord& before, const DataRecord& now);

/// Returns the differences of two records in what all seeds of an experiment share: those of data_changes(), otherwise
/// "other classes" or "other test files"; empty if none. The data's path and the validation examples may differ.
std::string data_difference(const DataRecord& before, const DataRecord& now);

/// Returns a hash, 16 hexadecimal digits, of what data_difference() compares.
std::string data_hash(const DataRecord& record);

/// Returns the hash of a run's data; empty without a record. Runs with other data are not seeds of one experiment.
std::string data_hash(const RunPaths& paths);

/// Returns the path of the data, with their difference from others: "/data/b: 2 added (x, y)", or "/data/b" if none.
std::string data_text(const DataRecord& record, const DataRecord& others);

/// Reads the test files with the checksum of a training or validation file and returns which have its content, such as
/// "1 of 9 test files are copies of training or validation files: test/a.png is train/b.png"; empty if none. Files of
/// labels in MNIST's format may agree.
std::string copied_test_files(const DataRecord& record);

/// Returns which of these test files, paths of any data, are copies of training or validation files of the record, in
/// the same words; empty if none or if the record names no test files. Reads only those with the length of such a file.
std::string copied_test_files(const DataRecord& record, const std::vector<std::string>& files);

/// Returns the differences of the recorded files `names` of the data from those at data.path, such as "1 edited (b)";
/// empty if none, if no file there has such a name, as in other data, or without a path.
std::string changed_files(const DataConfig& data, const std::vector<std::string>& names);

/// Applies a run's record to an experiment on the same data set: classes, validation files and, if the experiment gives
/// no path, the recorded one. If the data are not at the recorded path, the default directories are tried.
void use_record(Experiment& experiment, const DataRecord& record);

}  // namespace heed
