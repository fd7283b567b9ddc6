// NAME. AUTHORS, "TITLE", YEAR, arXiv: the idea in one sentence.
//
//   equation                     [shape]    Eq. number in the paper
//
// Time O(?), memory O(?), ? exponentials.
// Differs: your differences from the paper, and the reasons.
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/products/gemm.h"

namespace heed {

class MyAttention : public MechanismBase<MyAttention> {
 public:
  static constexpr const char* mechanism_name = "my_attention";
  static constexpr const char* summary = "one line";
  static constexpr const char* complexity = "time O(?), memory O(?)";

  // User options: visit("name", member, "meaning"). variants() together reach every branch of the code.
  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }

  // check(shape) rejects impossible sizes; parameters(shape) declares learned tensors. Omit unused parts.
  // docs/adding-a-mechanism.md describes all parts.

  // Saved: for the backward pass; name the step that reads each part.
  template <class T>
  NoMemory saved(const AttentionShape&, MemoryLayout<T>&) const {
    return {};
  }
  // Scratch: memory of one pass.
  template <class T>
  NoMemory scratch(const AttentionShape&, MemoryLayout<T>&) const {
    return {};
  }

  // The forward pass, in numbered steps.
  template <class T>
  void run_forward(const AttentionInput<T>&, Heads<T>, const NoMemory&, const NoMemory&) const {
    fail("not yet");
  }

  // The backward pass, in reverse, with a line `// Undoing 1: dq = ..., dk = ....` for each step.
  template <class T>
  void run_backward(const AttentionInput<T>&, Heads<const T>, Heads<const T>, const NoMemory&, const NoMemory&,
                    const AttentionGradient<T>&) const {
    fail("not yet");
  }

  // Step by step: executed operations forward and backward; *_contractions, as counted in papers; attention_exp.
  Cost cost(const AttentionShape&) const override {
    return {};  // not yet
  }
};

template MechanismEntry mechanism_entry<MyAttention>();

}  // namespace heed
