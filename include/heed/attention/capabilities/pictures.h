// Capability of mechanisms: pictures of intermediate results, in addition to a map or instead of one.
#pragma once

#include "heed/attention/mechanism.h"

namespace heed {

/// Meaning of a picture's elements. The parts of a picture (heads or groups of channels) are drawn side by side.
enum class PictureAxes {
  pairs,   ///< [parts, N, M]: a value for each pair of query and key, as in an attention map
  tokens,  ///< [parts, N or M]: a value for each query or key
  matrix,  ///< [parts, rows, columns]: matrices drawn directly
};

/// A picture that a mechanism offers.
struct PictureInfo {
  std::string name;
  std::string meaning;  ///< one line, the start of the drawing's title
  PictureAxes axes;
  std::string part = "head";
};

/// Interface for callers, returned by Mechanism::pictures(). Mechanisms derive from this class directly.
class PicturesCapability {
 public:
  virtual ~PicturesCapability() = default;
  virtual std::vector<PictureInfo> picture_infos() const = 0;

  /// Returns the picture `name`, one of picture_infos(), of one image. `in` has parameters and prepared tensors.
  virtual Tensor<float> picture(const std::string& name, const AttentionInput<float>& in) const = 0;
};

/// Returns the pictures that a mechanism offers; most offer none.
inline std::vector<PictureInfo> picture_infos(const Mechanism& mechanism) {
  const PicturesCapability* const pictures = mechanism.pictures();
  return pictures ? pictures->picture_infos() : std::vector<PictureInfo>{};
}

}  // namespace heed
