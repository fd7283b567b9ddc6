// heed probe --trace: names and order of a pass's tensors, and an attention of plain loops with planted errors that
// heed diff finds by the trace.
#include "heed/io/safetensors.h"
#include "support/cli.h"

#include <cmath>
#include <deque>

using namespace heed;
using namespace heed::test;

namespace {

constexpr Index B = 2, H = 3, N = 7, M = 5, d = 4;

Tensor<double> drawn(const Shape& shape, const char* name) {
  Tensor<double> x(shape);
  const RandomStream random = RandomStream(5).derive(name);
  for (Index i = 0; i < x.size(); ++i) x[i] = random.uniform(i, -1, 1);
  return x;
}

/// A strided matrix: element (i, k) is data[i row + k column].
struct Strided {
  const double* data;
  Index row, column;
};

/// Computes a b^T of strided matrices [rows, inner] and [columns, inner]: sum over k of a(i, k) b(j, k).
void product(Index rows, Index columns, Index inner, Strided a, Strided b, double* out) {
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) {
      double sum = 0;
      for (Index k = 0; k < inner; ++k) sum += a.data[i * a.row + k * a.column] * b.data[j * b.row + k * b.column];
      out[i * columns + j] = sum;
    }
}

/// Softmax attention in plain loops, with tensors named as in a trace.
struct PlainAttention {
  enum class Mistake { none, axis, scale, zero };

  std::map<std::string, Tensor<double>> inputs{{"q", drawn({B, H, N, d}, "q")},
                                               {"k", drawn({B, H, M, d}, "k")},
                                               {"v", drawn({B, H, M, d}, "v")},
                                               {"grad_out", drawn({B, H, N, d}, "grad_out")}};

  std::map<std::string, Tensor<double>> run(Mistake mistake) const {
    std::map<std::string, Tensor<double>> x;
    for (const char* const map : {"S.out", "A.out", "A.grad", "S.grad"}) x[map] = Tensor<double>({B, H, N, M});
    for (const char* const row : {"softmax.out", "q.grad"}) x[row] = Tensor<double>({B, H, N, d});
    for (const char* const key : {"k.grad", "v.grad"}) x[key] = Tensor<double>({B, H, M, d});
    for (Index head = 0; head < B * H; ++head) {
      const auto in = [&](const char* name, Index rows) { return inputs.at(name).data() + head * rows * d; };
      const auto at = [&](const char* name) { return x.at(name).data() + head * (x.at(name).size() / (B * H)); };
      double *const S = at("S.out"), *const A = at("A.out"), *const dA = at("A.grad"), *const dS = at("S.grad");
      const double* const dout = in("grad_out", N);
      product(N, M, d, {in("q", N), d, 1}, {in("k", M), d, 1}, S);
      const bool axis = mistake == Mistake::axis;  // sums over queries instead of keys
      std::vector<double> sums(N * M);
      for (Index i = 0; i < N * M; ++i) sums[axis ? i % M : i / M] += A[i] = std::exp(S[i] / 2);
      for (Index i = 0; i < N * M; ++i) A[i] /= sums[axis ? i % M : i / M];
      product(N, d, M, {A, M, 1}, {in("v", M), 1, d}, at("softmax.out"));
      product(N, M, d, {dout, d, 1}, {in("v", M), d, 1}, dA);
      product(M, d, N, {A, 1, M}, {dout, 1, d}, at("v.grad"));
      for (Index i = 0; i < N; ++i) {
        double D = 0;
        for (Index j = 0; j < M; ++j) D += A[i * M + j] * dA[i * M + j];
        for (Index j = 0; j < M; ++j)
          dS[i * M + j] = A[i * M + j] * (dA[i * M + j] - D) / (mistake == Mistake::scale ? 1 : 2);
      }
      product(N, d, M, {dS, M, 1}, {in("k", M), 1, d}, at("q.grad"));
      if (mistake != Mistake::zero) product(M, d, N, {dS, 1, M}, {in("q", N), 1, d}, at("k.grad"));
    }
    return x;
  }
};

/// Writes tensors in alphabetical order, as the safetensors package does.
void write_tensors(const std::string& path, const std::map<std::string, Tensor<double>>& tensors) {
  SafetensorsWriter file;
  for (const auto& [name, values] : tensors) file.add(name, values.view());
  file.write(path);
}

std::vector<std::string> names_in(const std::string& path) { return SafetensorsFile(path).names(); }

using Strings = std::vector<std::string>;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_trace, Workshop)

BOOST_AUTO_TEST_CASE(planted_errors_of_an_attention_are_found) {
  const PlainAttention attention;
  const std::string in = *this / "in", trace = *this / "trace", other = *this / "other";
  write_tensors(in, attention.inputs);
  output_of({"probe", "attention", "--mechanism", "softmax", in, *this / "out", "--trace", trace});
  BOOST_TEST(names_in(trace) == (Strings{"S.out", "A.out", "softmax.out", "softmax.grad", "A.grad", "S.grad", "v.grad",
                                         "k.grad", "q.grad"}),
             boost::test_tools::per_element());
  using Mistake = PlainAttention::Mistake;
  write_tensors(other, attention.run(Mistake::none));
  check_contains(output_of({"diff", trace, other, "--common", "--tolerance", "1e-12"}),
                 {"only in A (1): 'softmax.grad'"});
  const auto check_first = [&](Mistake mistake, const Strings& pieces) {
    write_tensors(other, attention.run(mistake));
    check_contains(heed_with({"diff", trace, other, "--tolerance", "1e-12"}).out, pieces);
    // Tensors are reported in the order of the trace, whichever file is A.
    check_contains(heed_with({"diff", other, trace, "--tolerance", "1e-12"}).out, {pieces[0]});
  };
  output_of({"probe", "attention", "--mechanism", "sima", in, *this / "out", "--trace", *this / "sima"});
  BOOST_TEST(names_in(*this / "sima") == (Strings{"map.out", "sima.out", "sima.grad", "v.grad", "k.grad", "q.grad"}),
             boost::test_tools::per_element());
  check_first(Mistake::axis, {"first A.out at [0, 0, 0, 0]", "A.out: 210 of 210 elements differ"});
  check_first(Mistake::scale, {"first S.grad at", "looks  like 2 times what it should be; perhaps 2"});
  check_first(Mistake::zero, {"first k.grad at", "looks  missing: all elements are 0"});
}

// A composed form repeats its forward pass in the backward pass and for its map; the trace has each step only once.
BOOST_AUTO_TEST_CASE(two_forms_of_a_mechanism_have_the_same_steps) {
  const std::string in = *this / "in", plugin = *this / "two_forms.so";
  output_of({"plugin", "examples/two_forms.h", "-o", plugin});
  write_tensors(in, PlainAttention().inputs);
  for (const std::string form : {"relu_by_hand", "relu_composed"})
    output_of(
        {"probe", "attention", "--plugin", plugin, "--mechanism", form, in, *this / "out", "--trace", *this / form});
  BOOST_TEST(names_in(*this / "relu_composed") == (Strings{"S.out", "A.out", "relu_composed.out", "relu_composed.grad",
                                                           "A.grad", "S.grad", "v.grad", "k.grad", "q.grad"}),
             boost::test_tools::per_element());
  check_contains(
      output_of({"diff", *this / "relu_composed", *this / "relu_by_hand", "--common", "--tolerance", "1e-12"}),
      {"equal: all 6 common tensors"});
}

// A layer's only operation is traced under the name of its PyTorch module. If the operation also adds the residual, its
// output is not the module's, so the operation's name is appended: blocks.0.attn.proj/linear.
BOOST_AUTO_TEST_CASE(a_model_is_traced_in_order) {
  const std::string run = *this / "run", in = *this / "in", out = *this / "out", trace = *this / "trace";
  run_until(2, experiment(), run);
  Tensor<float> images(Shape{3, 1, 8, 8});
  for (Index i = 0; i < images.size(); ++i) images[i] = static_cast<float>(RandomStream(3).uniform(i, -1, 1));
  const std::vector<std::int64_t> labels{1, 2, 3};
  SafetensorsWriter file;
  file.add("images", std::as_const(images).view());
  file.add("labels", View<const std::int64_t>(labels.data(), Shape{3}));
  file.write(in);
  const Strings probe{"probe", "model", write_experiment(*this, experiment()), "--weights", run + "/last.safetensors",
                      in};
  const auto with = [&](const Strings& more) {
    Strings arguments = probe;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  output_of(with({out}));
  output_of(with({*this / "traced", "--trace", trace}));
  check_contains(output_of({"diff", out, *this / "traced", "--tolerance", "1e-4"}), {"equal: "});
  const Strings names = names_in(trace);
  const Strings begin{"patch_embed.proj.out",       "pos_embed/embed_tokens.out", "blocks.0.norm1.out",
                      "blocks.0.attn.qkv.out",      "blocks.0.attn/softmax.out",  "blocks.0.attn.proj/linear.out",
                      "blocks.0.norm2.out",         "blocks.0.mlp.fc1.out",       "blocks.0.mlp.act.out",
                      "blocks.0.mlp.fc2/linear.out"};
  BOOST_TEST(Strings(names.begin(), names.begin() + 10) == begin, boost::test_tools::per_element());
  const auto place = [&](const char* name) { return std::ranges::find(names, name) - names.begin(); };
  BOOST_TEST(place("cross_entropy.out") + 2 == place("head.grad"));
  BOOST_TEST(place("blocks.1.norm1.grad") < place("blocks.0.mlp.fc2/linear.grad"));
  BOOST_TEST(place("head.weight.grad") < place("patch_embed.proj.weight.grad"));
  BOOST_TEST(place("patch_embed.proj.weight.grad") < std::ssize(names));
  check_contains(output_of({"diff", trace, trace}), {trace + ", step 2", "equal: "});
  check_refusal(with({out, "--trace", out}), {"--trace " + out + ": is also OUT; expected another file"});
  check_refusal(with({out, "--trace", *this / "./out"}), {": is also OUT; expected another file"});
  check_refusal(with({out, "--trace", run + "/./last.safetensors"}), {": is also --weights; expected another file"});
  check_refusal(with({in}), {"OUT " + in + ": is also IN; expected another file"});
}

BOOST_AUTO_TEST_CASE(a_linear_layer_is_traced) {
  write_tensors(*this / "in", {{"x", drawn({4, 3}, "x")},
                               {"weight", drawn({2, 3}, "weight")},
                               {"bias", drawn({2}, "bias")},
                               {"grad_out", drawn({4, 2}, "grad_out")}});
  output_of({"probe", "linear", *this / "in", *this / "out", "--trace", *this / "trace"});
  BOOST_TEST(names_in(*this / "trace") == (Strings{"linear.out", "linear.grad", "bias.grad", "weight.grad", "x.grad"}),
             boost::test_tools::per_element());
  check_refusal({"probe", "knn", *this / "in", *this / "out", "--trace", *this / "trace"}, {"--trace"});
}

BOOST_AUTO_TEST_SUITE_END()
