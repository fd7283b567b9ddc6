// Labelled sequences of tokens and pairs of sequences, with one interface for all file formats.
#pragma once

#include "heed/base/random.h"
#include "heed/config/data.h"
#include "heed/data/dataset.h"

#include <memory>
#include <string>
#include <vector>

namespace heed {

/// Labelled sequences or labelled pairs of sequences. Reading is safe from several threads.
class SequenceSet {
 public:
  virtual ~SequenceSet() = default;

  virtual Index size() const = 0;

  /// Returns the class of an example, an index into class_names().
  virtual int label(Index example) const = 0;

  /// Reads the tokens of an example; `which` is 0, or 1 for the second of a pair. Unless `chance` is nullptr, augments
  /// them at random.
  virtual void read(Index example, Index which, const RandomStream* chance, std::vector<int>& to) const = 0;

  /// Returns true if file i of files() is example i.
  bool has_file_per_example() const { return file_per_example_; }

  bool pairs() const { return pairs_; }
  Index vocabulary() const { return vocabulary_; }  ///< exclusive upper bound on the tokens
  Index fixed_length() const { return length_; }    ///< length of all sequences; 0: lengths may differ
  Index cut() const { return cut_; }  ///< number of sequences cut to the context; the two of a pair count separately
  Index shorter() const { return shorter_; }  ///< number of sequences shorter than the context; counted like cut()
  const std::vector<std::string>& class_names() const { return class_names_; }
  const std::vector<std::string>& files() const { return files_; }  ///< paths of the files that were read

 protected:
  SequenceSet(std::vector<std::string> class_names, Index vocabulary, bool pairs, Index length)
      : class_names_(std::move(class_names)), vocabulary_(vocabulary), length_(length), pairs_(pairs) {}

  std::vector<std::string> files_;
  bool file_per_example_ = false;
  Index cut_ = 0, shorter_ = 0;

 private:
  std::vector<std::string> class_names_;
  Index vocabulary_, length_;
  bool pairs_;
};

/// A set and the positions of selected examples in it.
struct SequenceExamples {
  std::shared_ptr<const SequenceSet> set;
  std::vector<Index> examples;
  bool sets_aside;  ///< validation examples are set aside from the training examples
};

/// Opens a part of a data set by data.name:
/// - listops: basic_train.tsv, basic_val.tsv, basic_test.tsv (data/sequences/listops.h);
/// - documents: trees of .txt files by class, like image folders (dataset.h), or train.tsv, val.tsv and
///   test.tsv with lines label<TAB>text;
/// - pairs: new_aan_pairs.{train,eval,test}.tsv of lines label<TAB>id<TAB>id<TAB>text<TAB>text, labels 0.0 and 1.0;
/// - pixels: the images of data.source, pixel by pixel (data/sequences/pixels.h).
/// Tokens of documents and pairs are bytes. Sequences are cut to `context` tokens. Throws Error naming the file and, if
/// known, the line.
SequenceExamples open_sequences(const DataConfig& data, Index context, Part part, std::uint64_t seed);

/// Throws Error unless a model of length `context` accepts the sequences: all tokens are below `vocabulary` and, if all
/// sequences have one length, it is `context`.
void require_fit(const SequenceExamples& examples, Index context, Index vocabulary);

}  // namespace heed
