// Search for the first infinity or NaN of a step.
#include "heed/train/step.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace heed {

namespace {

/// Checks the tensors of a model for which wanted(specification) is true.
template <class T, class Tensors, class Wanted>
void check_tensors(NonFinite<T>& found, const char* what, const ParameterList& list, const Tensors& tensors,
                   const Wanted& wanted) {
  for (ParameterId id = 0; id < list.size(); ++id)
    if (wanted(list[id])) found.check(tensors[id], [&] { return what + list[id].name; });
}

/// Checks the gradients of all trainable tensors.
template <class T>
void check_gradients(NonFinite<T>& found, const Gradients<T>& gradients) {
  check_tensors(found, "the gradient with respect to ", gradients.list(), gradients,
                [](const ParameterSpec& spec) { return spec.trainable; });
}

}  // namespace

template <class T>
std::string BatchGradient<T>::first_non_finite() {
  NonFinite<T> found;
  // Skips running statistics: they are results of the step and are checked with its other results.
  check_tensors(found, "the tensor ", parameters_.list(), parameters_,
                [](const ParameterSpec& spec) { return !spec.running; });
  const LaneRange own = share_.own(step_.lanes);
  if (found.where().empty()) found = lockstep_ ? first_in_lockstep(own) : first_in_lanes(own);
  // In lockstep, the first failure is the one after the fewest finite tensors; otherwise it is the lowest rank's, since
  // lower ranks have earlier lanes.
  const std::vector<std::string> texts = ranks_.texts(found.where()),
                                 before = ranks_.texts(std::to_string(lockstep_ ? found.finite_before() : 0));
  std::string first = "a sum over the batch";
  Index least = std::numeric_limits<Index>::max();
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (!texts[i].empty() && std::stoll(before[i]) < least) first = texts[i], least = std::stoll(before[i]);
  return first;
}

template <class T>
NonFinite<T> BatchGradient<T>::first_in_lanes(LaneRange lanes) {
  NonFinite<T> found;
  for (Index lane = lanes.first; lane < lanes.last && found.where().empty(); ++lane) {
    run_lane(lane, gradients(), 0, &found);
    check_gradients(found, gradients());
  }
  return found;
}

template <class T>
NonFinite<T> BatchGradient<T>::first_in_lockstep(LaneRange lanes) {
  std::vector<NonFinite<T>> found(lanes.count());
  run_in_lockstep(lanes, &found);
  for (std::size_t i = 0; i < found.size(); ++i) check_gradients(found[i], sums_[i]);
  const auto order = [](const NonFinite<T>& a) { return std::pair(a.where().empty(), a.finite_before()); };
  return *std::min_element(found.begin(), found.end(),
                           [&](const NonFinite<T>& a, const NonFinite<T>& b) { return order(a) < order(b); });
}

template std::string BatchGradient<float>::first_non_finite();
template std::string BatchGradient<double>::first_non_finite();

}  // namespace heed
