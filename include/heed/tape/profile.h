// Where the time of a pass goes.
#pragma once

#include "heed/base/tensor.h"

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// Seconds spent in the forward and backward functions of operations, by their names. Those of several threads are
/// added up, so n threads may spend n seconds in each second.
class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  struct Row {
    const char* operation;
    double forward = 0, backward = 0;

    double total() const { return forward + backward; }
  };

  void add_forward(const char* operation, Clock::time_point start) { row(operation).forward += spent(start); }
  void add_backward(const char* operation, Clock::time_point start) { row(operation).backward += spent(start); }

  /// Takes the time since `start` off the operation that is running: it only waited for other threads.
  void leave_out(Clock::time_point start) { left_out_ += since(start); }

  Profile& operator+=(const Profile& other) {
    for (const Row& r : other.rows_) {
      row(r.operation).forward += r.forward;
      row(r.operation).backward += r.backward;
    }
    return *this;
  }

  /// In the order in which they were first met.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  static double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

  double spent(Clock::time_point start) { return since(start) - std::exchange(left_out_, 0.0); }

  Row& row(std::string_view operation) {
    for (Row& r : rows_)
      if (r.operation == operation) return r;
    return rows_.emplace_back(Row{operation.data()});
  }

  double left_out_ = 0;
  std::vector<Row> rows_;  // a dozen operations: looking through them takes less than looking one up
};

}  // namespace heed
