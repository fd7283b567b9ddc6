#include "heed/train/ranks.h"

namespace heed {

Ranks& one_process() {
  class OneProcess : public Ranks {
    int count() const override { return 1; }
    int rank() const override { return 0; }
    void sum(std::span<float>) override {}
    void sum(std::span<double>) override {}
  };
  static OneProcess process;
  return process;
}

}  // namespace heed
