// Where the time of a pass goes.
#pragma once

#include "heed/base/tensor.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// Seconds spent in the forward and backward functions of operations, by their names, or by their names and layers.
/// Those of several threads are added up, so n threads may spend n seconds in each second.
class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Profile(bool by_layer = false) : by_layer_(by_layer) {}

  struct Row {
    const char* operation;
    const std::string* layer = nullptr;  ///< of the model's, if rows are by layer
    double forward = 0, backward = 0;

    double total() const { return forward + backward; }
  };

  void add_forward(const char* operation, const std::string* layer, Clock::time_point start) {
    row(operation, layer).forward += spent(start);
  }
  void add_backward(const char* operation, const std::string* layer, Clock::time_point start) {
    row(operation, layer).backward += spent(start);
  }

  /// Takes the time since `start` off the operation that is running: it only waited for other threads.
  void leave_out(Clock::time_point start) { left_out_ += since(start); }

  Profile& operator+=(const Profile& other) {
    for (const Row& r : other.rows_) {
      row(r.operation, r.layer).forward += r.forward;
      row(r.operation, r.layer).backward += r.backward;
    }
    return *this;
  }

  /// In the order in which they were first met.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  static double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

  double spent(Clock::time_point start) { return since(start) - std::exchange(left_out_, 0.0); }

  Row& row(std::string_view operation, const std::string* layer) {
    if (!by_layer_) layer = nullptr;
    for (Row& r : rows_)
      if (r.layer == layer && r.operation == operation) return r;
    return rows_.emplace_back(Row{operation.data(), layer});
  }

  bool by_layer_;
  double left_out_ = 0;
  std::vector<Row> rows_;  // a dozen operations: looking through them takes less than looking one up
};

}  // namespace heed
