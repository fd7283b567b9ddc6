// NAME. AUTHORS, "TITLE", YEAR, arXiv: the idea in one sentence.
//
//   equation                     [shape]    Eq. number in the paper
//
// Time O(?), memory O(?), ? exponentials.
// Differs: what you do otherwise than the paper, and why.
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/products/gemm.h"

namespace heed {

class MyAttention : public MechanismBase<MyAttention> {
 public:
  static constexpr const char* mechanism_name = "my_attention";
  static constexpr const char* summary = "one line";
  static constexpr const char* complexity = "time O(?), memory O(?)";

  // What users may set: visit("name", member, "meaning"). variants() together reach every branch of the code.
  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }

  // check(shape) refuses sizes that make no sense; parameters(shape) names tensors that are learned. Leave out what you
  // do not need. docs/adding-a-mechanism.md has all parts.

  // Saved: what the backward pass reads, each part with the step that it is for.
  template <class T>
  NoMemory saved(const AttentionShape&, MemoryLayout<T>&) const {
    return {};
  }
  // Scratch: for one pass.
  template <class T>
  NoMemory scratch(const AttentionShape&, MemoryLayout<T>&) const {
    return {};
  }

  // In numbered steps.
  template <class T>
  void run_forward(const AttentionInput<T>&, Heads<T>, const NoMemory&, const NoMemory&) const {
    fail("not yet");
  }

  // Undoes them in reverse, with a line `// Undoing 1: dq = ..., dk = ....` for each.
  template <class T>
  void run_backward(const AttentionInput<T>&, Heads<const T>, Heads<const T>, const NoMemory&, const NoMemory&,
                    const AttentionGradient<T>&) const {
    fail("not yet");
  }

  // Step by step: forward and backward, executed; *_contractions, as papers count; attention_exp.
  Cost cost(const AttentionShape&) const override {
    return {};  // not yet
  }
};

template MechanismEntry mechanism_entry<MyAttention>();

}  // namespace heed
