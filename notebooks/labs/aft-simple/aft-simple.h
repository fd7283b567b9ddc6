// AFT-simple, by hand. Zhai et al., "An Attention Free Transformer", 2021, arXiv:2105.14103, Eq. 5. Everything is
// element-wise, with one head of all d channels:
//
//   y_c = sum_s exp(k_sc) v_sc / sum_s exp(k_sc)      [1, d], a sum over the tokens s
//   out_tc = sigma(q_tc) y_c                          [N, d]
#include "heed/attention/mechanism_base.h"

namespace heed {

class MyAft : public MechanismBase<MyAft> {
 public:
  static constexpr const char* mechanism_name = "my_aft";
  static constexpr const char* summary = "sigma(q) times the mean of v weighted by exp(k)";
  static constexpr const char* complexity = "not yet";

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "my_aft", .linear = true}}; }
  AttentionLayout layout(Index dim, Index) const override { return {1, dim, dim, dim}; }
  void check(const AttentionShape& s) const override {
    require(s.heads == 1, "[my_aft] {} heads; expected one head of all channels", s.heads);
    require(s.width == s.value_width, "[my_aft] q has {} channels, v {}; they must match", s.width, s.value_width);
  }

  // Values saved for the backward pass, and scratch memory of one pass. Take matrices from the layout:
  // layout.matrix(rows, columns) is uninitialised.
  template <class T>
  struct Saved {};
  template <class T>
  Saved<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return {};
  }
  template <class T>
  struct Scratch {};
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return {};
  }

  // q, k and v are in.q[0], in.k[0] and in.v[0], the output is out[0]. Number your steps.
  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, const Scratch<T>& scratch) const {
    using std::exp;  // for all number types
    fail("not yet");
  }

  // Write your equations here, in lines like `// Undoing 3: ...`.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const T> dout, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& to) const {
    fail("not yet");
  }

  // Every operation counts: mul, add (and subtract), div, exp, cmp. A sum of n terms is n - 1 additions.
  // forward_contractions and attention_exp are counted as in papers; left_out is the number of executed contractions
  // and exps minus these counts (docs/gradcheck.md). gradcheck reports these, too; the lab marks forward and backward
  // only.
  Cost cost(const AttentionShape& shape) const override {
    [[maybe_unused]] const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    fail("not yet");
    return cost;
  }
};

template MechanismEntry mechanism_entry<MyAft>();

}  // namespace heed
