// Answer to a request: JSON, and the arrays that it refers to.
#pragma once

#include "heed/base/tensor.h"
#include "heed/io/json.h"

#include <vector>

namespace heed::web {

struct Reply {
  Json json = Json::object();
  std::vector<Tensor<float>> arrays{};

  /// Stores an array and returns its reference: {"array": index, "shape": [...]}.
  Json keep(Tensor<float> array) {
    Json shape = Json::list(Json::List(array.shape().begin(), array.shape().end()));
    arrays.push_back(std::move(array));
    return Json::object({{"array", arrays.size() - 1}, {"shape", std::move(shape)}});
  }
};

}  // namespace heed::web
