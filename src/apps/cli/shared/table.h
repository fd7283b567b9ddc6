// Tables of results: the same rows as text, CSV, JSON or Markdown.
#pragma once

#include "number_text.h"

#include "heed/io/json.h"
#include "heed/tape/profile.h"

#include <ostream>
#include <string>
#include <vector>

namespace heed::cli {

/// Rows of values below columns. A null is "-" in text, an empty field in CSV and null in JSON.
///
///   Table table;
///   table.column("layer", "layer").column("time, ms", "ms", fixed(3)).data({"steps"});
///   table.add({"fc1", 0.25, 10});
///   table.print(std::cout);  // has no steps
///   table.json().dump()      // [{"layer":"fc1","ms":0.25,"steps":10}]
class Table {
 public:
  /// Adds a column with a heading for text and Markdown and a name for CSV and JSON. `format` applies to its numbers in
  /// text and Markdown; CSV and JSON have the shortest digits that parse to the same number.
  Table& column(std::string title, std::string key, NumberFormat format = {});

  /// Adds a column for text and Markdown only.
  Table& text(std::string title, NumberFormat format = {});

  /// Adds columns for CSV and JSON only; `format` applies to their numbers in CSV.
  Table& data(const std::vector<std::string>& keys, NumberFormat format = {});

  /// Adds a row with a value for each column: texts, numbers, booleans and nulls, for JSON also lists and objects.
  /// Missing values at the end are null.
  void add(std::vector<Json> row);

  bool empty() const { return rows_.empty(); }

  /// Prints the columns, the first aligned to the left, the others to the right.
  void print(std::ostream& out) const;
  void print_markdown(std::ostream& out) const;

  std::string csv() const;

  /// Returns a list with an object for each row.
  Json json() const;

 private:
  struct Column {
    bool in_text, in_data;     ///< printed as text and Markdown; written to CSV and JSON
    std::string title, key;    ///< heading; name in CSV and JSON
    NumberFormat format, csv;  ///< formats of numbers in text and in CSV
  };

  std::vector<std::vector<std::string>> cells() const;

  std::vector<Column> columns_;
  std::vector<std::vector<Json>> rows_;
};

/// Prints the milliseconds per training step of each operation, forward and backward, longest first.
void print_profile(const Profile& profile, Index steps);

/// Returns `text` as a field of CSV: quoted if it has commas, quotes or line breaks.
std::string csv_text(const std::string& text);

}  // namespace heed::cli
