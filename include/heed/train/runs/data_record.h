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
  std::string name, source;          ///< data.name; data.source, in data.json only if it has an effect
  std::string path;                  ///< location of the data, an absolute path
  RecordedData recorded;             ///< classes, validation and test files, and checksums of the files that were read
  std::optional<int> background;     ///< common grey level of the test images (data/images/background.h)
  std::vector<std::string> changes;  ///< changes of the data at resumptions: "after step 7: 1 added (a.png)"
  std::vector<std::string> own_validation{};  ///< validation files that are not set aside; not in data.json
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

/// Returns the number of validation and test files of `before` whose content is in a training file of `now`, under any
/// name, as after the addition of a directory for validation.
Index former_held_out(const DataRecord& before, const DataRecord& now);

/// Returns the differences of two records that make their runs different experiments: those of data_changes(),
/// otherwise "other classes" or "other test files"; empty if none. The data's path and the validation examples may
/// differ between seeds of one experiment.
std::string data_difference(const DataRecord& before, const DataRecord& now);

/// Returns a hash, as 16 hexadecimal digits, of everything that data_difference() compares.
std::string data_hash(const DataRecord& record);

/// Returns the hash of a run's data; empty without a record. Runs with different hashes are not seeds of one
/// experiment.
std::string data_hash(const RunPaths& paths);

/// Returns the path of the recorded data and their difference from `others`: "/data/b: 2 added (x, y)", or "/data/b" if
/// there is none.
std::string data_text(const DataRecord& record, const DataRecord& others);

/// Returns the test files with the same content as a training or validation file, such as "1 of 9 test files are copies
/// of training or validation files: test/a.png is train/b.png"; empty if there are none. Reads only files with equal
/// checksums; training and validation files that are missing or have changed are compared by their recorded checksums.
/// Label files in MNIST's format are ignored, since they may be equal.
/// `before` is an earlier record of the data, with whose training and validation files they are compared, too.
std::string copied_test_files(const DataRecord& record, const DataRecord* before = nullptr);

/// Returns which of `files`, the test files of any data set, are copies of the record's training or validation files,
/// as "1 of 9 test files are copies of ..."; empty if there are none or if the record names no test files. Reads only
/// files with the length of a training or validation file.
std::string copied_test_files(const DataRecord& record, const std::vector<std::string>& files);

/// Compares the files `names` at data.path or, if it is empty, in the default directory, with their recorded checksums
/// and returns the changes, such as "1 edited (b)"; empty if there are none, or if none of the files exists there, as
/// in another data set. `read` are paths of files that were read: those without a checksum were added.
std::string changed_files(const DataConfig& data, const std::vector<std::string>& names,
                          const std::vector<std::string>& read = {});

/// Applies a run's record to an experiment on the same data set: classes, validation files and, if the experiment gives
/// no path, the recorded path. If the data are not at the recorded path, the default directories are tried.
void use_record(Experiment& experiment, const DataRecord& record);

}  // namespace heed
