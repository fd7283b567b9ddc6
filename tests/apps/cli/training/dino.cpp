// Self-supervision and dense transfer from the command line: probes, use of the run, and errors.
#include "support/cli.h"
#include "support/lines.h"
#include "support/training.h"

#include "heed/io/safetensors.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

using namespace heed;
using namespace heed::test;

namespace {

Tensor<double> numbers(const Shape& shape, std::uint64_t seed) {
  Tensor<double> tensor(shape);
  for (Index i = 0; i < tensor.size(); ++i) tensor[i] = RandomStream(seed).normal(i);
  return tensor;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_dino)

// The loss equals its definition, view by view; a logit's gradient equals central differences.
BOOST_AUTO_TEST_CASE(probe_of_the_loss) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in", out = directory / "out";
  const Index V = 4, B = 3, K = 5;
  Tensor<double> student = numbers({V, B, K}, 1);
  const Tensor<double> teacher = numbers({2, B, K}, 2), center = numbers({K}, 3);
  const auto log_softmax = [&](const double* x, const double* minus, double temperature) {
    std::vector<double> y;
    double sum = 0;
    for (Index k = 0; k < K; ++k) sum += std::exp(y.emplace_back((x[k] - (minus ? minus[k] : 0)) / temperature));
    for (double& value : y) value -= std::log(sum);
    return y;
  };
  const auto loss = [&] {
    double sum = 0;
    for (Index i = 0; i < 2; ++i)
      for (Index j = 0; j < V; ++j)
        for (Index b = 0; b < B && i != j; ++b) {
          const auto q = log_softmax(teacher.data() + (i * B + b) * K, center.data(), 0.5);
          const auto p = log_softmax(student.data() + (j * B + b) * K, nullptr, 0.8);
          for (std::size_t k = 0; k < q.size(); ++k) sum -= std::exp(q[k]) * p[k];
        }
    return sum / static_cast<double>(2 * (V - 1) * B);
  };
  SafetensorsWriter writer;
  writer.add("student", std::as_const(student).view());
  writer.add("teacher", teacher.view());
  writer.add("center", center.view());
  writer.write(in);
  Tensor<float> huge(Shape{V, B, K}), of_teacher(Shape{2, B, K}), at_zero(Shape{K});
  std::fill_n(huge.begin(), K, 3e38f);
  SafetensorsWriter floats;
  floats.add("student", std::as_const(huge).view());
  floats.add("teacher", std::as_const(of_teacher).view());
  floats.add("center", std::as_const(at_zero).view());
  const std::string in_float = directory / "in_float";
  floats.write(in_float);
  output_of({"probe", "dino", "--set", "student_temp=0.8", "--set", "teacher_temp=0.5", "--set", "center_momentum=0.7",
             in, out});
  const SafetensorsFile found(out);
  BOOST_TEST(std::abs(found.read<double>("loss")[0] - loss()) < 1e-14);
  const Tensor<double> gradient = found.read<double>("grad.student"), moved = found.read<double>("center");
  for (Index i = 0; i < student.size(); ++i) {
    const double before = student[i], h = 1e-5;
    student[i] = before + h;
    const double above = loss();
    student[i] = before - h;
    BOOST_TEST(std::abs(gradient[i] - (above - loss()) / (2 * h)) < 1e-9);
    student[i] = before;
  }
  for (Index k = 0; k < K; ++k) {
    double mean = 0;
    for (Index row = 0; row < 2 * B; ++row) mean += teacher[row * K + k] / 6;
    BOOST_TEST(std::abs(moved[k] - (0.7 * center[k] + 0.3 * mean)) < 1e-14);
  }
  check_refusal({"probe", "dino", "--set", "teacher_temp=0", in, out}, {"teacher_temp = 0"});
  std::filesystem::remove(out);
  check_refusal({"probe", "dino", "--set", "student_temp=1e-3", "--set", "teacher_temp=1e-3", in_float, out},
                {"'loss' is not finite", "too large for F32"});
  BOOST_TEST(!std::filesystem::exists(out));
}

// The head has one hidden value, h = gelu(gelu(x)). The vector h (3, 4) is divided by its length, so h cancels: the
// output is constant, and grad.x is 0.
BOOST_AUTO_TEST_CASE(probe_of_the_head) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in", out = directory / "out";
  const auto write = [&](bool with_v) {
    SafetensorsWriter writer;
    const Tensor<double> x(Shape{1, 1}, {2}), one(Shape{1, 1}, {1}), zero(Shape{1}), two(Shape{2, 1}, {3, 4}),
        none(Shape{2}), v(Shape{1, 2}, {0, 5}), g(Shape{1, 1}, {2}), dout(Shape{1, 1}, {1});
    writer.add("x", x.view());
    writer.add("mlp.0.weight", one.view());
    writer.add("mlp.0.bias", zero.view());
    writer.add("mlp.2.weight", one.view());
    writer.add("mlp.2.bias", zero.view());
    writer.add("mlp.4.weight", two.view());
    writer.add("mlp.4.bias", none.view());
    if (with_v) writer.add("last_layer.weight_v", v.view());
    writer.add("last_layer.weight_g", g.view());
    writer.add("grad_out", dout.view());
    writer.write(in);
  };
  write(true);
  output_of({"probe", "dino_head", in, out});
  const SafetensorsFile found(out);
  BOOST_TEST(std::abs(found.read<double>("out")[0] - 2 * 0.8) < 1e-14);  // g (0, 1) . (3, 4) / 5
  BOOST_TEST(std::abs(found.read<double>("grad.x")[0]) < 1e-14);
  BOOST_TEST(std::abs(found.read<double>("grad.last_layer.weight_g")[0] - 0.8) < 1e-14);
  // With w = v / |v| = (0, 1) and u = (3, 4) / 5, the gradient of v is g (u - (u . w) w) / |v|.
  BOOST_TEST(std::abs(found.read<double>("grad.last_layer.weight_v")[0] - 2 * 0.6 / 5) < 1e-14);
  BOOST_TEST(std::abs(found.read<double>("grad.last_layer.weight_v")[1]) < 1e-14);
  write(false);
  check_refusal({"probe", "dino_head", in, out}, {"'last_layer.weight_v' is missing"});
}

BOOST_AUTO_TEST_CASE(a_run_without_labels) {
  const Workshop workshop(132, 30);
  Experiment x = dino_experiment(workshop);
  x.train.epochs = 1;
  const std::string run = workshop / "run";
  check_contains(output_of({"train", write_experiment(workshop, x), "--run", run}),
                 {"validation accuracy", "test accuracy"});
  check_contains(output_of({"eval", run, "--knn"}),
                 {"20 nearest neighbours among 112 training images: 30 images", "top-1 accuracy"});
  check_contains(output_of({"features", run, "--blocks", "2", "-o", workshop / "f"}), {"32 features of 30 images"});
  check_contains(output_of({"spectrum", run, "--images", "4"}), {"4 test images"});
  // With batches of three, seven images are two full batches and one of a single image.
  std::vector<std::vector<std::string>> spectra;
  for (const char* const batch : {"16", "3", "7"}) {
    const std::string file = workshop / "spectrum.csv";
    check_contains(
        output_of({"spectrum", run, "--images", "7", "--set", fmt::format("train.batch={}", batch), "-o", file}),
        {" 7 test images"});
    spectra.push_back(lines_of(read_file(file)));
  }
  for (const std::vector<std::string>& other : spectra) {
    BOOST_TEST_REQUIRE(other.size() == spectra[0].size());
    for (std::size_t i = 1; i < other.size(); ++i) {
      std::istringstream cells(other[i]), expected(spectra[0][i]);
      for (std::string x, y; std::getline(cells, x, ',') && std::getline(expected, y, ',');)
        BOOST_TEST((x == y || std::abs(std::stod(x) - std::stod(y)) < 1e-4), other[i] << " is not " << spectra[0][i]);
    }
  }
  check_refusal({"eval", run}, {"trained without labels and has no classifier", "--knn"});
  check_refusal({"predict", run, "--index", "0"}, {"has no classifier"});
  check_refusal({"train", write_experiment(workshop, x), "--run", workshop / "b", "--set", "attention.mechanism=aft"},
                {"[dino] local_size = 4", "blocks.0.attn", "only pos_embed can be interpolated"});
  check_refusal({"train", write_experiment(workshop, x), "--run", workshop / "b", "--set", "train.method=supervised"},
                {"[dino] is for train.method = \"dino\", not \"supervised\""});
}

BOOST_AUTO_TEST_SUITE_END()
