#include "heed/train/tasks/teaching.h"

#include "heed/base/math.h"
#include "heed/base/parallel.h"
#include "heed/kernels/rows/rows.h"
#include "heed/kernels/rows/softmax.h"

#include <vector>

namespace heed {

template <class T>
Teaching<T> teach(View<const T> logits, View<const T> center, double temperature, Teaching<T> earlier) {
  const Index K = center.size(), rows = logits.size() / K;
  Teaching<T> teaching = std::move(earlier);
  if (teaching.q.shape() != logits.shape()) teaching.q = Tensor<T>(logits.shape());
  if (teaching.mean.shape() != center.shape()) teaching.mean = Tensor<T>(center.shape());
  kernels::column_sums(Matrix<const T>(logits.data(), rows, K), Update::assign, teaching.mean.data());
  for (T& mean : teaching.mean) mean /= static_cast<T>(rows);
  std::vector<double>& entropies = teaching.entropies;
  entropies.resize(rows);
  const T inverse(1 / temperature);
  parallel_for(rows, [&](Index r) {
    thread_local std::vector<T> x;
    x.resize(K);
    T* const q = teaching.q.data() + r * K;
    for (Index k = 0; k < K; ++k) q[k] = x[k] = inverse * (logits[r * K + k] - center[k]);
    T kept[2], mean_x;
    kernels::softmax_rows(Matrix<T>(q, 1, K), Matrix<T>(kept, 1, 2));
    kernels::row_dots<T>(Matrix<const T>(q, 1, K), Matrix<const T>(x.data(), 1, K), &mean_x);
    // -sum q log q = log sum exp(x) - sum q x
    entropies[r] = static_cast<double>(kept[0]) + math::log(static_cast<double>(kept[1])) - static_cast<double>(mean_x);
  });
  teaching.entropy = 0;
  for (const double entropy : entropies) teaching.entropy += entropy / static_cast<double>(rows);
  return teaching;
}

template <class T>
void move_center(View<T> center, View<const T> mean, double momentum) {
  for (Index k = 0; k < center.size(); ++k) center[k] = T(momentum) * center[k] + T(1 - momentum) * mean[k];
}

template Teaching<float> teach(View<const float>, View<const float>, double, Teaching<float>);
template Teaching<double> teach(View<const double>, View<const double>, double, Teaching<double>);
template void move_center(View<float>, View<const float>, double);
template void move_center(View<double>, View<const double>, double);

}  // namespace heed
