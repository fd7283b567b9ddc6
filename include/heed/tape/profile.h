// Time spent in the operations of a pass.
#pragma once

#include "heed/base/tensor.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// Seconds spent in the forward and backward functions of operations, by name, or by name and layer. Times of threads
/// are summed: n threads may spend n seconds per second.
class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Profile(bool by_layer = false) : by_layer_(by_layer) {}

  /// Time of an operation, in all layers or in one, in seconds.
  struct Row {
    const char* operation;
    const std::string* layer = nullptr;  ///< null unless rows are by layer
    double forward = 0, backward = 0;

    double total() const { return forward + backward; }
  };

  void add_forward(const char* operation, const std::string* layer, Clock::time_point start) {
    row(operation, layer).forward += spent(start);
  }
  void add_backward(const char* operation, const std::string* layer, Clock::time_point start) {
    row(operation, layer).backward += spent(start);
  }

  /// Excludes the time since `start`, in which the running operation waited for other threads.
  void exclude_wait(Clock::time_point start) { waited_ += since(start); }

  Profile& operator+=(const Profile& other) {
    for (const Row& r : other.rows_) {
      row(r.operation, r.layer).forward += r.forward;
      row(r.operation, r.layer).backward += r.backward;
    }
    return *this;
  }

  /// Returns the rows in order of their first operation.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  static double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

  double spent(Clock::time_point start) { return since(start) - std::exchange(waited_, 0.0); }

  Row& row(std::string_view operation, const std::string* layer) {
    if (!by_layer_) layer = nullptr;
    for (Row& r : rows_)
      if (r.layer == layer && r.operation == operation) return r;
    return rows_.emplace_back(Row{operation.data(), layer});
  }

  bool by_layer_;
  double waited_ = 0;
  std::vector<Row> rows_;  // a dozen rows, so linear search is faster than a map
};

}  // namespace heed
