// Definitions as C++: a header with forward, backward and cost, and optionally planted bugs.
#include "definition_text.h"
#include "features.h"
#include "shared_functions.h"

#include "heed/base/random.h"
#include "heed/base/split.h"

#include <fmt/format.h>

namespace heed {

namespace {

/// Writer of one header. Each line that depends on the definition is written by a separate call; pick() selects the
/// correct text or a bug's text.
class Writer {
 public:
  Writer(const Definition& d, const std::string& name, const PlantedBugs& bugs)
      : d_(d), name_(name), bugs_(bugs), pairs_(d.order == ProductOrder::pairs) {}

  std::string header() {
    begin();
    memory();
    forward();
    backward();
    plain(cost_text(d_, bugs_) + " private:");
    functions();
    end();
    return text_;
  }

  std::string stub() {
    begin();
    line(
        "  // The backward pass reads saved memory; scratch memory lasts for one pass. Return a struct of matrices\n"
        "  // from layout.matrix(rows, columns) or lay_out_heads(heads, rows, columns, layout), as bug-hunt.h does.\n"
        "  template <class T>\n"
        "  NoMemory saved(const AttentionShape&, MemoryLayout<T>&) const {{\n"
        "    return {{}};\n  }}\n"
        "  template <class T>\n"
        "  NoMemory scratch(const AttentionShape&, MemoryLayout<T>&) const {{\n"
        "    return {{}};\n  }}\n\n"
        "  // Computes the steps above, with the products in that order. in.q[h], out[h] and so on belong to head h.\n"
        "  template <class T>\n"
        "  void run_forward(const AttentionInput<T>&, Heads<T>, const NoMemory&, const NoMemory&) const {{\n"
        "    fail(\"not yet\");\n  }}\n\n"
        "  // The parameters after `in` are out and dout. Write a line `// Undoing 3: dq = ....` for each step:\n"
        "  // gradcheck quotes it if a gradient is wrong.\n"
        "  template <class T>\n"
        "  void run_backward(const AttentionInput<T>&, Heads<const T>, Heads<const T>, const NoMemory&,\n"
        "                    const NoMemory&, const AttentionGradient<T>&) const {{\n"
        "    fail(\"not yet\");\n  }}\n\n"
        "  // Counts every operation that the forward and the backward pass execute, step by step.\n"
        "  Cost cost(const AttentionShape&) const override {{\n"
        "    return {{}};  // not yet\n  }}");
    end();
    return text_;
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    text_ += fmt::format(text, std::forward<Args>(args)...);
    text_ += "\n";
  }

  /// Writes a line unchanged, including braces.
  void plain(const std::string& text) { text_ += text + "\n"; }

  void begin() {
    line("// A personal mechanism. For each head, with q [N, d], k [M, d] and v [M, e]:\n//");
    for (const std::string& equation : split_lines(equations_of(d_))) line("// {}", equation);
    line(
        "#include \"heed/attention/mechanism_base.h\"\n#include \"heed/kernels/products/gemm.h\"\n\n#include "
        "<numbers>\n\n"
        "namespace heed {{\n\nclass Personal : public MechanismBase<Personal> {{\n public:\n"
        "  static constexpr const char* mechanism_name = \"{}\";\n"
        "  static constexpr const char* summary = \"a personal mechanism\";\n"
        "  static constexpr const char* complexity = \"time O({})\";\n\n"
        "  template <class Visitor>\n  void options(Visitor&) {{}}\n"
        "  static std::vector<OptionValues> variants() {{ return {{{{}}}}; }}\n"
        "  MechanismTraits traits() const override {{ return {{.cross = true}}; }}\n",
        name_, pairs_ ? "N M d" : "(N + M) d^2");
  }

  void end() { line("}};\n\ntemplate MechanismEntry mechanism_entry<Personal>();\n\n}}  // namespace heed"); }

  void memory() {
    plain(R"(  // Saved for each head: the features X and Y; F and G, X and Y divided by lengths; the lengths; W;)");
    plain(pairs_ ? R"(  // S, A and the sums of E; and P.)" : R"(  // Z, the sums s and F s; and P.)");
    plain(R"(  template <class T>
  struct Saved {
    Matrix<T> X, F, Y, G, W, S, A, Z, P;
    T *F_lengths, *G_lengths, *sums, *s;
  };
  template <class T>
  std::vector<Saved<T>> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const auto [N, M, d, e] = shape.sizes();
    std::vector<Saved<T>> heads;
    for (Index h = 0; h < shape.heads; ++h)
      heads.push_back({layout.matrix(N, d), layout.matrix(N, d), layout.matrix(M, d), layout.matrix(M, d),
                       layout.matrix(M, e), layout.matrix(N, M), layout.matrix(N, M), layout.matrix(d, e),
                       layout.matrix(N, e), layout.numbers(N + d), layout.numbers(M + d), layout.numbers(N),
                       layout.numbers(d)});
    return heads;
  }

  template <class T>
  struct Scratch {
    Matrix<T> dF, dG, dW, dA, dZ, dP;
    T *dsums, *ds;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const auto [N, M, d, e] = shape.sizes();
    return {layout.matrix(N, d), layout.matrix(M, d), layout.matrix(M, e), layout.matrix(N, M),
            layout.matrix(d, e), layout.matrix(N, e), layout.numbers(N),   layout.numbers(d)};
  }
)");
  }

  void features(const char* x, const char* raw, const char* name, const FeatureMap& map, Norm norm) {
    line("      map({}, f.{}, {});", x, raw, value(map));
    if (norm == Norm::none)
      line("      map<T>(f.{}, f.{}, [](T x) {{ return x; }});", raw, name);
    else
      line("      normalise_{1}s<T>(f.{2}, f.{0}, f.{0}_lengths);", name, norm == Norm::token ? "token" : "channel",
           raw);
  }

  /// Returns the name of the class's function that computes a feature.
  std::string function(const FeatureMap& map) {
    for (std::size_t i = 0; i < maps_.size(); ++i)
      if (maps_[i].feature == map.feature && maps_[i].c == map.c) return fmt::format("feature{}", i + 1);
    maps_.push_back(map);
    return fmt::format("feature{}", maps_.size());
  }

  /// Return the text of lambdas that compute a feature and its slope.
  std::string value(const FeatureMap& map) { return fmt::format("[this](T x) {{ return {}(x); }}", function(map)); }
  std::string slope(const FeatureMap& map) {
    return fmt::format("[this](T x) {{ return {}_slope(x); }}", function(map));
  }

  void forward() {
    plain(R"(  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const std::vector<Saved<T>>& saved,
                   const Scratch<T>&) const {
    const auto [N, M, d, e] = in.shape.sizes();
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Saved<T>& f = saved[static_cast<std::size_t>(h)];
      const Matrix<const T> q = in.q[h], k = in.k[h], v = in.v[h];
      // F and G)");
    features("q", "X", "F", d_.query, d_.query_norm);
    features("k", "Y", "G", d_.key, d_.key_norm);
    line("      // W");
    line("      map(v, f.W, [](T x) {{ return x; }});");
    if (is_map(d_.key_gate)) line("      gate(k, f.W, {});", value(d_.key_gate));
    if (pairs_) {
      line("      // A");
      line("      kernels::gemm(f.F, transposed(f.G), f.S);");
      line("      map<T>(f.S, f.A, {});", is_map(d_.score) ? value(d_.score) : "[](T x) { return x; }");
      line("      for (Index i = 0; i < N; ++i) {{");
      if (d_.by_sums) {
        line("        f.sums[i] = f.A(i, 0);");
        line("        for (Index j = 1; j < M; ++j) f.sums[i] += f.A(i, j);");
      } else {
        line("        f.sums[i] = T(static_cast<double>(M));");
      }
      line("        for (Index j = 0; j < M; ++j) f.A(i, j) = f.A(i, j) / f.sums[i];\n      }}");
      line("      // P\n      kernels::gemm(f.A, f.W, f.P);");
    } else {
      line("      // P\n      kernels::gemm(transposed(f.G), f.W, f.Z);\n      kernels::gemm(f.F, f.Z, f.P);");
      if (d_.by_sums) {
        line("      for (Index c = 0; c < d; ++c) {{\n        f.s[c] = f.G(0, c);");
        line("        for (Index j = 1; j < M; ++j) f.s[c] += f.G(j, c);\n      }}");
      }
      line("      for (Index i = 0; i < N; ++i) {{");
      if (d_.by_sums) {
        line("        f.sums[i] = f.F(i, 0) * f.s[0];");
        line("        for (Index c = 1; c < d; ++c) f.sums[i] += f.F(i, c) * f.s[c];");
      } else {
        line("        f.sums[i] = T(static_cast<double>(M));");
      }
      line("        for (Index c = 0; c < e; ++c) f.P(i, c) = f.P(i, c) / f.sums[i];\n      }}");
    }
    line("      // out\n      map<T>(f.P, out[h], [](T x) {{ return x; }});");
    if (is_map(d_.query_gate)) line("      gate(q, out[h], {});", value(d_.query_gate));
    line("    }}\n  }}\n");
  }

  void undo_features(const char* x, const char* name, const FeatureMap& map, Norm norm, bool gated, int bug) {
    const std::string g = fmt::format("g.d{}", name);
    if (norm != Norm::none)
      line("      undo_{1}s<T>(f.{0}, f.{0}_lengths, {2});", name, norm == Norm::token ? "token" : "channel", g);
    const std::string slope = fmt::format("{}_slope(x)", function(map));
    const std::string update = gated ? "Update::accumulate" : "to.update";
    line("      chain({0}, {1}, [this](T x) {{ return {2}; }}, {3}, to.{0}[h]);", x,
         pick(bug, g, {g, g, g, g + ".top_rows(" + std::string(x[0] == 'q' ? "N" : "M") + " - 1)"}),
         pick(bug, slope, {"-" + slope, "T(1)", "T(2) * " + slope, slope}), update);
  }

  void backward() {
    const bool query_gated = is_map(d_.query_gate), key_gated = is_map(d_.key_gate);
    if (query_gated) line("  // Undoing the gate of out: dP = dout u, and dq has a part P u' dout.");
    if (pairs_) {
      line("  // Undoing P = A W: dA = dP W^T, dW = A^T dP.");
      plain(d_.by_sums ? "  // Undoing the sums: dE = (dA - sum_l A_l dA_l) / sum, row by row."
                       : "  // Undoing the division: dE = dA / M.");
      line("  // Undoing S = F G^T: dF = dS G, dG = dS^T F.");
    } else if (d_.by_sums) {
      line("  // Undoing P = U / t, U = F Z, t = F s: dU = dP / t, dt = -sum_c P_c dP_c / t.");
      line("  // Undoing U = F Z and t = F s: dF = dU Z^T + dt s^T, dZ = F^T dU, ds = F^T dt.");
      line("  // Undoing Z = G^T W and s = sum_j G_j: dG_j = (W dZ^T)_j + ds, dW = G dZ.");
    } else {
      line("  // Undoing P = U / M: dU = dP / M. Undoing U = F Z: dF = dU Z^T, dZ = F^T dU.");
      line("  // Undoing Z = G^T W: dG = W dZ^T, dW = G dZ.");
    }
    plain(key_gated ? "  // Undoing W = v t: dv = dW t, and dk has a part dW v t'." : "  // Undoing W = v: dv = dW.");
    if (d_.query_norm != Norm::none || d_.key_norm != Norm::none)
      line("  // Undoing the lengths: dX = (dF - F <F, dF>) / length.");
    line("  // Undoing the features: dq = dX X'(q), dk = dY Y'(k).");
    plain(R"(  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const std::vector<Saved<T>>& saved,
                    const Scratch<T>& g, const AttentionGradient<T>& to) const {
    const auto [N, M, d, e] = in.shape.sizes();
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Saved<T>& f = saved[static_cast<std::size_t>(h)];
      const Matrix<const T> q = in.q[h], k = in.k[h], v = in.v[h];
      map(dout[h], g.dP, [](T x) { return x; });)");
    if (query_gated)
      line("      undo_gate<T>(q, f.P, dout[h], {}, {}, to.update, to.q[h], g.dP);", value(d_.query_gate),
           slope(d_.query_gate));
    if (pairs_) {
      line("      kernels::gemm(g.dP, transposed(f.W), g.dA);\n      kernels::gemm(transposed(f.A), g.dP, g.dW);");
      line("      for (Index i = 0; i < N; ++i) {{");
      if (d_.by_sums) {
        line("        T inner = f.A(i, 0) * g.dA(i, 0);");
        line("        for (Index j = 1; j < M; ++j) inner += f.A(i, j) * g.dA(i, j);");
      }
      line("        for (Index j = 0; j < M; ++j) g.dA(i, j) = {} / f.sums[i];\n      }}",
           d_.by_sums ? "(g.dA(i, j) - inner)" : "g.dA(i, j)");
      if (is_map(d_.score)) line("      chain<T>(f.S, g.dA, {}, Update::assign, g.dA);", slope(d_.score));
      line("      kernels::gemm(g.dA, f.G, g.dF);\n      kernels::gemm(transposed(g.dA), f.F, g.dG);");
    } else {
      line("      for (Index i = 0; i < N; ++i) {{");
      if (d_.by_sums) {
        line("        T inner = f.P(i, 0) * g.dP(i, 0);");
        line("        for (Index c = 1; c < e; ++c) inner += f.P(i, c) * g.dP(i, c);");
        line("        g.dsums[i] = -(inner / f.sums[i]);");
      }
      line("        for (Index c = 0; c < e; ++c) g.dP(i, c) = g.dP(i, c) / f.sums[i];\n      }}");
      line("      kernels::gemm(g.dP, transposed(f.Z), g.dF);\n      kernels::gemm(transposed(f.F), g.dP, g.dZ);");
      line("      kernels::gemm(f.W, transposed(g.dZ), g.dG);\n      kernels::gemm(f.G, g.dZ, g.dW);");
      if (d_.by_sums) {
        line("      for (Index c = 0; c < d; ++c) {{\n        g.ds[c] = f.F(0, c) * g.dsums[0];");
        line("        for (Index i = 1; i < N; ++i) g.ds[c] += f.F(i, c) * g.dsums[i];\n      }}");
        line(
            "      for (Index i = 0; i < N; ++i)\n        for (Index c = 0; c < d; ++c) g.dF(i, c) += g.dsums[i] * "
            "f.s[c];");
        line("      for (Index j = 0; j < M; ++j)\n        for (Index c = 0; c < d; ++c) g.dG(j, c) += g.ds[c];");
      }
    }
    if (key_gated)
      line("      undo_gate<T>(k, v, g.dW, {}, {}, to.update, to.k[h], g.dW);", value(d_.key_gate), slope(d_.key_gate));
    line("      for (Index j = 0; j < {}; ++j)", bugs_.value == 1 ? "M - 1" : "M");
    line("        for (Index c = 0; c < e; ++c) {};",
         pick(bugs_.value, "write(to.update, to.v[h](j, c), g.dW(j, c))",
              {"write(to.update, to.v[h](j, c), g.dW(j, c))", "write(to.update, to.v[h](j, c), -g.dW(j, c))",
               "to.v[h](j, c) = g.dW(j, c)", "write(to.update, to.v[h](j, c), g.dW(j, e - 1 - c))"}));
    undo_features("q", "F", d_.query, d_.query_norm, query_gated, bugs_.query);
    undo_features("k", "G", d_.key, d_.key_norm, key_gated, bugs_.key);
    line("    }}\n  }}\n");
  }

  void functions() {
    for (std::size_t i = 0; i < maps_.size(); ++i) {
      const FeatureInfo& info = info_of(maps_[i].feature);
      for (const bool value : {true, false}) {
        const std::string text = value ? info.value : info.slope;
        line("  template <class T>\n  static T feature{}{}(T x) {{\n    using std::exp, std::log, std::sqrt, std::erf;",
             i + 1, value ? "" : "_slope");
        line("    const T c({}), y = c * x;", maps_[i].c);
        if (text.find("s * ") != std::string::npos || text.ends_with(" s"))
          line("    const T s = T(1) / (T(1) + exp(-y));");
        line("    return {};\n  }}", text);
      }
    }
    plain(shared_functions);
    const std::string eps = fmt::format("{}", d_.eps);
    for (std::size_t at; (at = text_.find("EPS")) != std::string::npos;) text_.replace(at, 3, eps);
  }

  Definition d_;
  std::string name_, text_;
  PlantedBugs bugs_;
  bool pairs_;
  std::vector<FeatureMap> maps_;
};

}  // namespace

std::string header_of(const Definition& definition, const std::string& name, const PlantedBugs& bugs) {
  return Writer(definition, name, bugs).header();
}

PlantedBugs bugs_of(const std::string& identity) {
  const RandomStream random = RandomStream(17).derive(plain_identity(identity)).derive("bugs");
  const auto draw = [&](Index i, Index n) { return static_cast<int>(1 + random.below(i, n)); };
  return {.query = draw(0, 4),
          .key = draw(1, 4),
          .value = draw(2, 4),
          .forward_cost = draw(3, 2),
          .backward_cost = draw(4, 3)};
}

std::string stub_of(const Definition& definition, const std::string& name) {
  return Writer(definition, name, {}).stub();
}

}  // namespace heed
