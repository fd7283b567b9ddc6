#include "heed/ops/batch_norm.h"

#include "heed/cost/for_each_number.h"

#include <cmath>

namespace heed {

template <class T>
Var<T> batch_norm(Var<T> x, Var<T> gamma, Var<T> beta, View<T> running_mean, View<T> running_variance, double momentum,
                  double eps) {
  using std::sqrt;
  Tape<T>& tape = tape_of("batch_norm", x, gamma, beta);
  const Shape& xs = x.shape();
  require(xs.rank() >= 2, "[batch_norm] x has shape {}; expected [B, C, ...]", xs);
  const Index images = xs[0], channels = xs[1], places = xs.elements() / std::max<Index>(images * channels, 1);
  const Index count = images * places;
  const bool training = tape.training(), update_running = training && !tape.pass().again;
  for (const Shape& shape : {gamma.shape(), beta.shape(), running_mean.shape(), running_variance.shape()})
    require(shape == Shape{channels}, "[batch_norm] a parameter has shape {}; expected [{}]", shape, channels);
  require(!training || count > 1, "[batch_norm] a single value per channel has no variance to train with");

  Cost cost;
  cost.forward = channels * Counts{.mul = 2 * count, .add = 2 * count + 1, .div = 1, .sqrt = 1};
  if (training) cost.forward += channels * Counts{.mul = count + 4, .add = 3 * count, .div = 3};
  cost.backward = channels * Counts{.mul = 2 * count, .add = 3 * count - 2};
  cost.backward +=
      channels * (training ? Counts{.mul = 3 * count + 1, .add = 3 * count, .div = 2} : Counts{.mul = count + 1});
  T* const mean = tape.memory(channels);
  T* const scale = tape.memory(channels);
  // Calls f(position) for every element of channel c, in order.
  const auto over_channel = [=](Index c, const auto& f) {
    for (Index b = 0; b < images; ++b)
      for (Index p = 0; p < places; ++p) f((b * channels + c) * places + p);
  };

  return tape.record(
      {"batch_norm", cost}, xs, {x, gamma, beta},
      [=](T* y) {
        const T* const px = x.data();
        const T n(static_cast<double>(count));
        for (Index c = 0; c < channels; ++c) {
          T variance = running_variance[c];
          mean[c] = running_mean[c];
          if (training) {
            const Index first = c * places;
            T sum(0), squares(0);
            over_channel(c, [&](Index i) { i == first ? void(sum = px[i]) : void(sum += px[i]); });
            mean[c] = sum / n;
            over_channel(c, [&](Index i) {
              const T centred = px[i] - mean[c], square = centred * centred;
              i == first ? void(squares = square) : void(squares += square);
            });
            variance = squares / n;
            if (update_running) {
              running_mean[c] = T(1 - momentum) * running_mean[c] + T(momentum) * mean[c];
              running_variance[c] =
                  T(1 - momentum) * running_variance[c] + T(momentum) * (squares / T(static_cast<double>(count - 1)));
            }
          }
          scale[c] = T(1) / sqrt(variance + T(eps));
          const T g = gamma.data()[c], b = beta.data()[c];
          over_channel(c, [&](Index i) { y[i] = (px[i] - mean[c]) * scale[c] * g + b; });
        }
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dgamma = tape.target(gamma), dbeta = tape.target(beta), dx = tape.target(x);
        const T *px = x.data(), *pdy = dy.data();
        const T n(static_cast<double>(count));
        for (Index c = 0; c < channels; ++c) {
          const Index first = c * places;
          T sum(0), product_sum(0);
          over_channel(c, [&](Index i) {
            const T product = pdy[i] * ((px[i] - mean[c]) * scale[c]);
            i == first ? void(sum = pdy[i]) : void(sum += pdy[i]);
            i == first ? void(product_sum = product) : void(product_sum += product);
          });
          if (dgamma) write(dgamma.update, dgamma.data[c], product_sum);
          if (dbeta) write(dbeta.update, dbeta.data[c], sum);
          if (!dx) continue;
          const T factor = gamma.data()[c] * scale[c];
          const T mean_dy = training ? sum / n : T(0), mean_product = training ? product_sum / n : T(0);
          over_channel(c, [&](Index i) {
            const T g = training ? pdy[i] - mean_dy - (px[i] - mean[c]) * scale[c] * mean_product : pdy[i];
            write(dx.update, dx.data[i], factor * g);
          });
        }
      });
}

#define INSTANTIATE(T) template Var<T> batch_norm(Var<T>, Var<T>, Var<T>, View<T>, View<T>, double, double);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
