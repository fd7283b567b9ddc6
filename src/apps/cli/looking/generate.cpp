// heed generate: text, or the rest of images, written by a trained model token by token.
#include "image_choice.h"

#include "heed/base/printable.h"
#include "heed/base/random.h"
#include "heed/bench/timing.h"
#include "heed/data/images/image_write.h"
#include "heed/data/sequences/pixels.h"
#include "heed/io/file.h"
#include "heed/nn/decoder.h"
#include "heed/train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <span>

namespace heed::cli {

namespace {

struct GenerateArguments : ModelChoice {
  std::string prompt, prompt_file, output;
  std::vector<std::string> images;
  Index tokens = 256, top_k = 0, seed = 1, zoom = 1;
  double temperature = 1, keep = 0.5;
  bool stats = false;
};

/// Measures the time of reading prompts and of writing tokens.
class Stopwatch {
 public:
  /// Reads a prompt except for its last token, which is read with the first token to be written.
  void read(Writer<float>& writer, std::span<const int> prompt) {
    if (prompt.empty()) return;
    const bench::Clock::time_point start = bench::Clock::now();
    for (const int token : prompt.first(prompt.size() - 1)) writer.append(token);
    writer.read();
    prompts_ += bench::seconds_since(start);
    given_ += prompt.size();
    writer.append(prompt.back());
  }

  /// Draws the next token, with a number of its own of the stream.
  int draw(Writer<float>& writer, const Sampling& sampling) {
    const bench::Clock::time_point start = bench::Clock::now();
    const int token = writer.draw(sampling, random_.uniform(static_cast<Index>(times_.size())));
    times_.push_back(bench::seconds_since(start));
    require_finite_answers(writer.logits(), "logit");
    return token;
  }

  /// Prints the rates, with medians over a few tokens at the start and at the end.
  void print(const Decoder<float>& decoder) const {
    std::string text = fmt::format("tokens given: {}, read in {:.3g} s; written: {}", given_, prompts_, times_.size());
    if (!times_.empty()) {
      const double sum = std::accumulate(times_.begin(), times_.end(), 0.0);
      const auto few = static_cast<std::ptrdiff_t>(std::min<std::size_t>(16, times_.size()));
      const auto median = [](std::vector<double> times) {
        std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
        return times[times.size() / 2];
      };
      text +=
          fmt::format(", {:.0f} tokens/s, per token {:.2f} us at the first, {:.2f} us at the last positions",
                      static_cast<double>(times_.size()) / sum, 1e6 * median({times_.begin(), times_.begin() + few}),
                      1e6 * median({times_.end() - few, times_.end()}));
    }
    fmt::print(stderr, "{}; state {} bytes after {} inputs\n", text, decoder.state_bytes(), decoder.position());
  }

  explicit Stopwatch(Index seed) : random_(RandomStream(static_cast<std::uint64_t>(seed)).derive("generate")) {}

 private:
  RandomStream random_;
  std::size_t given_ = 0;  ///< tokens of prompts
  double prompts_ = 0;     ///< seconds that they took
  std::vector<double> times_;
};

void write_out(const char* bytes, std::size_t count) {
  require(std::fwrite(bytes, 1, count, stdout) == count, "standard output cannot be written");
}

std::string read_standard_input() {
  std::string content;
  char piece[65536];
  while (const std::size_t count = std::fread(piece, 1, sizeof piece, stdin)) content.append(piece, count);
  require(std::ferror(stdin) == 0, "standard input cannot be read");
  return content;
}

std::string prompt_of(const GenerateArguments& a) {
  if (a.prompt_file.empty()) return a.prompt;
  return a.prompt_file == "-" ? read_standard_input() : read_text_file(a.prompt_file);
}

int write_text(const GenerateArguments& a, TrainedModel& trained) {
  Decoder<float> decoder(*trained.model, trained.parameters);
  const ModelConfig& config = decoder.config();
  const std::string prompt = prompt_of(a);
  require(config.vocab <= 256, "{}: its model.vocab is {}; expected 256 at most: a text's tokens are bytes", a.run,
          config.vocab);
  std::vector<int> tokens;
  for (const char c : prompt) {
    const int byte = static_cast<unsigned char>(c);
    require(byte < config.vocab, "the prompt has a byte {}; the model's vocab is {}", byte, config.vocab);
    tokens.push_back(byte);
  }
  constexpr int line_feed = 10;
  if (prompt.empty() && !config.start) tokens.push_back(line_feed);
  write_out(prompt.data(), prompt.size());
  Writer<float> writer(decoder);
  Stopwatch stopwatch(a.seed);
  stopwatch.read(writer, tokens);
  for (Index i = 0; i < a.tokens; ++i) {
    const char byte = static_cast<char>(stopwatch.draw(writer, {a.temperature, a.top_k}));
    write_out(&byte, 1);
  }
  require(std::fflush(stdout) == 0, "standard output cannot be written");
  if (a.stats) stopwatch.print(decoder);
  return ok;
}

/// Puts an image into a sheet, its upper left corner at (top, left).
void put(const Image& image, Index top, Index left, Image& sheet) {
  for (Index c = 0; c < image.size.channels; ++c)
    for (Index y = 0; y < image.size.height; ++y)
      std::copy_n(image.pixels.begin() + (c * image.size.height + y) * image.size.width, image.size.width,
                  sheet.pixels.begin() + (c * sheet.size.height + top + y) * sheet.size.width + left);
}

/// Each pixel becomes zoom x zoom alike.
Image enlarged(const Image& image, Index zoom) {
  const auto [channels, height, width] = image.size;
  Image large{{channels, zoom * height, zoom * width}, {}};
  large.pixels.reserve(static_cast<std::size_t>(large.size.elements()));
  for (Index row = 0; row < channels * zoom * height; ++row)  // those of all channels, one below the other
    for (Index x = 0; x < zoom * width; ++x)
      large.pixels.push_back(image.pixels[static_cast<std::size_t>(row / zoom * width + x / zoom)]);
  return large;
}

int complete_images(const GenerateArguments& a, TrainedModel& trained) {
  const DataConfig& data = trained.experiment.data;
  require(data.name == "pixels", "--complete: the run's data.name is {}; expected pixels", data.name);
  require(!a.output.empty(), "--complete needs -o OUT.png");
  require_png(a.output);
  std::error_code missing;
  for (const std::string& image : a.images)
    require(!std::filesystem::equivalent(a.output, image, missing), "-o {}: this is one of the images", a.output);
  Decoder<float> decoder(*trained.model, trained.parameters);
  require(decoder.config().vocab == data.levels, "[data] levels = {}; the model has tokens 0 to {}: expected {}",
          data.levels, decoder.config().vocab - 1, decoder.config().vocab);
  const bool colour = data.source == "cifar10" || data.source == "cifar100";
  const ImageSize original = colour ? ImageSize{3, 32, 32} : ImageSize{1, 28, 28}, size = token_image(original, data);
  require(size.elements() == decoder.config().context, "[model] context = {}; images of {} have {} sub-pixels",
          decoder.config().context, to_string(size), size.elements());
  const Index count = static_cast<Index>(a.images.size());
  Image sheet{{size.channels, 3 * size.height, count * size.width}, {}};
  sheet.pixels.resize(static_cast<std::size_t>(sheet.size.elements()));
  const Index kept = static_cast<Index>(std::floor(a.keep * static_cast<double>(size.height)));
  Stopwatch stopwatch(a.seed);
  for (Index i = 0; i < count; ++i) {
    const Image file = convert(load_image(a.images[static_cast<std::size_t>(i)]), original);
    const std::vector<int> tokens = pixel_tokens(file, data);
    const Index given = kept * size.width * size.channels;
    Writer<float> writer(decoder);
    stopwatch.read(writer, std::span(tokens).first(static_cast<std::size_t>(given)));
    for (Index t = given; t < size.elements(); ++t) stopwatch.draw(writer, {a.temperature, a.top_k});
    Image whole = image_of_tokens(tokens, size, data.levels);
    put(whole, 0, i * size.width, sheet);
    for (Index c = 0; c < size.channels; ++c)
      std::fill(whole.pixels.begin() + c * size.pixels() + kept * size.width,
                whole.pixels.begin() + (c + 1) * size.pixels(), std::uint8_t{0});
    put(whole, size.height, i * size.width, sheet);
    put(image_of_tokens(writer.tokens(), size, data.levels), 2 * size.height, i * size.width, sheet);
  }
  save_png(a.output, enlarged(sheet, a.zoom));
  fmt::print("{}: the originals, what was kept of them, and what was completed\n", printable(a.output));
  if (a.stats) stopwatch.print(decoder);
  return ok;
}

int generate_command(const GenerateArguments& a) {
  use_threads(a.threads);
  require(a.prompt.empty() || a.prompt_file.empty(), "--prompt and --prompt-file exclude each other");
  TrainedModel trained(a, a.sets);
  if (!a.images.empty()) return complete_images(a, trained);
  require(trained.experiment.data.name == "text", "{}: its data.name is {}; expected text, or --complete IMAGE...",
          a.run, trained.experiment.data.name);
  return write_text(a, trained);
}

}  // namespace

void add_generate(Command program) {
  static GenerateArguments a;
  Command command = program.command("generate", "Continue a text, or complete images, with a trained model");
  command.option("RUN", &a.run, "run directory", {.required = true});
  command.option("--complete", &a.images, "image files whose upper part is kept", {.value = "IMAGE"});
  command.option("--keep", &a.keep, "fraction of an image to keep",
                 {.range = {{0, 1}}, .needs = "--complete", .says_default = true});
  command.option("--zoom", &a.zoom, "draw each pixel as N x N",
                 {.value = "N", .range = {{1, 64}}, .needs = "--complete", .says_default = true});
  command.option("-o,--output", &a.output, "PNG of the originals, what was kept, and what was completed",
                 {.value = "OUT.png", .needs = "--complete"});
  command.option("--prompt", &a.prompt, "text to continue", {.value = "TEXT", .excludes = "--complete"});
  command.option("--prompt-file", &a.prompt_file, "file to continue; -: standard input",
                 {.value = "FILE", .excludes = "--complete"});
  command.option("--tokens", &a.tokens, "number of tokens to write",
                 {.range = {{0, 1e9}}, .excludes = "--complete", .says_default = true});
  command.option("--temperature", &a.temperature, "divisor of the logits; 0: the likeliest token",
                 {.range = {{0, 1e6}}, .says_default = true});
  command.option("--top-k", &a.top_k, "draw among the k likeliest tokens; 0: all",
                 {.range = {{0, 1e6}}, .says_default = true});
  command.option("--seed", &a.seed, "random seed", {.range = {{0, 1e15}}, .says_default = true});
  command.option("--stats", &a.stats, "print the time per token and the size of the state");
  add_model_choice(command, a);
  command.footer(
      "A text, prompt and continuation, goes to standard output, byte by byte. Images are resized to the size of "
      "the training images, without keeping the ratio of their sides.");
  command.action([] { return generate_command(a); });
}

}  // namespace heed::cli
