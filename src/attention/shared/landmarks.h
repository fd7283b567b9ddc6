// Options for choosing landmarks, a few rows that represent all tokens (kernels/grids/pooling.h).
#pragma once

#include "image_grid.h"

#include "heed/kernels/grids/pooling.h"

namespace heed {

struct LandmarkOptions {
  enum class Sampling { pool, conv, random, first };

  Sampling sampling = Sampling::pool;
  Index ratio = 0, landmarks = 0, dims = 2;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("sampling", sampling, {"pool", "conv", "random", "first"},
          "landmarks are cell means, outputs of a convolution, random tokens or the first tokens");
    visit("ratio", ratio, "side of a cell (pool, conv)");
    visit("landmarks", landmarks,
          "number of landmarks, for random, first, and pool without ratio (a square number of adaptive cells)");
    visit("dims", dims, "2: cells of the image grid; 1: cells of consecutive tokens (pool with ratio; sequences)");
  }

  /// Sets the sizes that were not given, from the shapes of the landmark tensors.
  void read_sizes(const std::map<std::string, Shape>& tensors) {
    const auto index = tensors.find("landmark_index"), weight = tensors.find("landmark.weight");
    if (landmarks == 0 && sampling == Sampling::random && index != tensors.end()) landmarks = index->second.elements();
    if (ratio == 0 && sampling == Sampling::conv && weight != tensors.end() && weight->second.rank() == 4)
      ratio = weight->second[3];
  }

  void check(const char* owner, const AttentionShape& shape) const {
    const Index tokens = shape.body();
    require(dims == 1 || dims == 2, "[{}] dims is {}; expected 1 or 2", owner, dims);
    require(ratio >= 0, "[{}] ratio is {}; expected 1 or more", owner, ratio);
    if (sampling == Sampling::random || sampling == Sampling::first) {
      require(ratio == 0, "[{}] ratio is {}; sampling=random and sampling=first use landmarks instead", owner, ratio);
      require(landmarks >= 1 && (landmarks <= tokens || (sampling == Sampling::first && shape.sequence())),
              "[{}] landmarks is {}; expected 1 to {}, the number of tokens", owner, landmarks, tokens);
      require(sampling == Sampling::first || shape.full_length(),
              "[{}] a sequence has {} tokens; expected {}, the full length, from which sampling=random draws landmarks",
              owner, shape.queries, shape.longest);
      return;
    }
    if (sampling == Sampling::conv) {
      require(dims == 2, "[{}] dims is 1; sampling=conv needs the image grid, dims=2", owner);
      require(!shape.sequence(), "[{}] sampling is conv; a sequence has no image grid", owner);
      require(landmarks == 0, "[{}] landmarks is {}; sampling=conv uses ratio instead", owner, landmarks);
    }
    require((ratio > 0) != (landmarks != 0),
            "[{}] ratio is {}, landmarks is {}; set exactly one of them, such as attention.landmarks=49", owner, ratio,
            landmarks);
    constexpr Index most = 16'384;  // since a matrix of all pairs of landmarks is inverted
    const Index count = landmarks != 0 ? landmarks : tokens / ratio / (dims == 1 ? 1 : ratio);
    require(count <= most, "[{}] there are {} landmarks; expected at most {}", owner, count, most);
    if (shape.sequence()) {
      require(dims == 1, "[{}] dims is 2; a sequence has no image grid: expected dims=1", owner);
      require(landmarks >= 0, "[{}] landmarks is {}; expected 1 or more", owner, landmarks);
      return;
    }
    if (dims == 1) {
      require(landmarks == 0, "[{}] landmarks is {}; dims=1 uses ratio instead", owner, landmarks);
      require(tokens > 0 && tokens % ratio == 0, "[{}] ratio is {}; it must divide the {} tokens", owner, ratio,
              tokens);
      return;
    }
    require(shape.grid_height * shape.grid_width == tokens && tokens > 0,
            "[{}] {} tokens, image grid {} x {}; sampling needs as many tokens as the grid has cells", owner, tokens,
            shape.grid_height, shape.grid_width);
    if (ratio > 0)
      require_cells(shape, owner, "ratio", ratio);
    else
      require(landmarks == side() * side(), "[{}] landmarks is {}; expected a square number", owner, landmarks);
  }

  /// Returns landmark.weight [d, d, ratio, ratio] of a convolution, shared by heads, or landmark_index [m] of random
  /// tokens, drawn without replacement; nothing for other kinds of sampling.
  std::vector<ParameterSpec> parameters(const AttentionShape& shape) const {
    const Index d = shape.width;
    if (sampling == Sampling::conv)
      return {{"landmark.weight",
               {d, d, ratio, ratio},
               Initial::uniform(1 / std::sqrt(static_cast<double>(d * ratio * ratio)))}};
    if (sampling == Sampling::random)
      return {{"landmark_index",
               {landmarks},
               Initial::distinct(shape.class_token, shape.queries - shape.class_token),
               false,
               false}};
    return {};
  }

  /// Returns the landmarks for a shape that passed check().
  kernels::Landmarks of(const AttentionShape& shape) const {
    using Kind = kernels::Landmarks::Kind;
    const Index skip = shape.class_token, tokens = shape.body();
    if (sampling == Sampling::random || sampling == Sampling::first)
      return {Kind::tokens, std::min(landmarks, tokens), skip};
    if (shape.sequence()) {
      const Index count = ratio > 0 ? (tokens + ratio - 1) / ratio : std::min(landmarks, tokens);
      return {Kind::mean, count, skip, {1, tokens, 1, count, ratio}};
    }
    const Index height = dims == 1 ? 1 : shape.grid_height, width = dims == 1 ? tokens : shape.grid_width;
    const Index rows = landmarks > 0 ? side() : std::max<Index>(height / ratio, 1);
    const kernels::Cells cells{height, width, rows, landmarks > 0 ? side() : width / ratio};
    return {sampling == Sampling::conv ? Kind::convolution : Kind::mean, cells.count(), skip, cells};
  }

  /// Returns true if sampling reads a tensor.
  bool has_tensor() const { return sampling == Sampling::conv || sampling == Sampling::random; }

  /// Returns the tensor that sampling reads, in the form that kernels expect: the weight [d, d ratio^2] or the index
  /// [m, 1]; empty for none. Throws Error if an index is out of range.
  template <class T>
  Matrix<const T> tensor(const char* owner, const AttentionInput<T>& in) const {
    if (!has_tensor()) return {};
    const View<const T> values = in.parameters[0];
    const Index first = in.shape.class_token, last = in.shape.queries - 1;
    for (Index i = 0; i < values.size() && sampling == Sampling::random; ++i) {
      const double index = static_cast<double>(values[i]);
      require(index >= static_cast<double>(first) && index <= static_cast<double>(last) && index == std::floor(index),
              "[{}] landmark_index[{}] is {}; expected a whole number from {} to {}", owner, i, index, first, last);
    }
    return as_matrix(values);
  }

  /// Returns the gradient of the tensor that sampling reads, in the same form as tensor(); empty for none.
  template <class T>
  Matrix<T> tensor_gradient(const AttentionGradient<T>& gradient) const {
    return has_tensor() ? as_matrix(gradient.parameters[0]) : Matrix<T>{};
  }

 private:
  Index side() const {
    return static_cast<Index>(std::lround(std::sqrt(static_cast<double>(std::max<Index>(landmarks, 0)))));
  }
};

}  // namespace heed
