// heed probe attention, linear, model, decode.
#include "probe.h"

#include "heed/attention/capabilities/map.h"
#include "heed/attention/options.h"
#include "heed/attention/capabilities/preparation.h"
#include "heed/attention/mechanism.h"
#include "heed/config/experiment.h"
#include "heed/io/weights.h"
#include "heed/nn/adder.h"
#include "heed/nn/decoder.h"
#include "heed/nn/families.h"
#include "heed/ops/adder_linear.h"
#include "heed/ops/attention_capabilities.h"
#include "heed/train/tasks/task.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"

#include <deque>

namespace heed::cli {

namespace {

/// Parses "HxW"; one token more than H W means a class token in front.
void read_grid(const std::string& text, Index tokens, AttentionShape& shape) {
  if (text.empty()) return;
  int used = 0;
  long height = 0, width = 0;
  constexpr long most = 1'000'000;  // limit of a side, so that areas do not overflow
  require(std::sscanf(text.c_str(), "%ldx%ld%n", &height, &width, &used) == 2 &&
              used == static_cast<int>(text.size()) && height > 0 && width > 0 && height <= most && width <= most,
          "--grid {}: expected HxW, such as 7x7", in_quotes(text));
  require(tokens == height * width || tokens == height * width + 1,
          "--grid {}: {} tokens are neither {} nor, with a class token, {}", text, tokens, height * width,
          height * width + 1);
  shape.grid_height = height;
  shape.grid_width = width;
  shape.class_token = tokens == height * width + 1;
}

/// Options of a mechanism, and two of the probe: `mode` is train or eval; `cls` says whether the first token is a class
/// token; without `cls`, the grid determines this.
struct ProbeOptions {
  OptionValues values;
  bool training = false;
  std::optional<bool> class_token{};
};

bool is_training(const std::string& mode) {
  require(mode == "train" || mode == "eval", "--set mode={}: expected train or eval", mode);
  return mode == "train";
}

ProbeOptions parse_attention_options(const std::vector<std::string>& sets) {
  ProbeOptions options{parse_options(sets)};
  if (const auto mode = options.values.extract("mode")) options.training = is_training(mode.mapped());
  if (const auto cls = options.values.extract("cls")) {
    require(cls.mapped() == "true" || cls.mapped() == "false", "--set cls={}: expected true or false", cls.mapped());
    options.class_token = cls.mapped() == "true";
  }
  return options;
}

template <class T>
Heads<const T> heads_of(const Tensor<T>& tensor, Index image) {
  if (tensor.size() == 0) return {};
  const Shape& s = tensor.shape();
  return {{tensor.data() + image * s[1] * s[2] * s[3], s[2], s[3]}, s[1], s[2] * s[3]};
}

template <class T>
void probe_attention(const ProbeArguments& a, GivenTensors& in, ProbeOutput<T>& results) {
  const ProbeOptions options = parse_attention_options(a.sets);
  const std::unique_ptr<Mechanism> mechanism = make_mechanism(a.mechanism, options.values);
  for (const std::string& line : options_without_effect(a.mechanism, options.values, "--set")) warn(line);
  try {
    mechanism->read_sizes(in.shapes());
  } catch (const Error& error) {
    fail("{}: {}", in.path(), error.what());
  }

  // The layout determines which operands are read. v is always read. q, if used, may have any number of tokens. k, if
  // used, has as many tokens as v; the layout determines its channels from those of q.
  const Tensor<T> v = in.take<T>("v", 4);
  const Shape& vs = v.shape();
  Tensor<T> q, k;
  if (mechanism->layout(vs[1] * vs[3], vs[1]).query_width > 0) q = in.take<T>("q", 4);
  const Index heads = q.size() > 0 ? q.shape()[1] : vs[1];
  const AttentionLayout layout = mechanism->layout(heads * vs[3], heads);
  require(layout.heads == heads, "{}: tensor '{}' has shape {}; {} has one head: expected [B, 1, tokens, D]", in.path(),
          q.size() > 0 ? "q" : "v", q.size() > 0 ? q.shape() : vs, a.mechanism);
  require(vs[1] == layout.key_heads, "{}: tensor 'v' has shape {}; expected [B, {}, M, D], since 'q' has {} heads",
          in.path(), vs, layout.key_heads, heads);
  const Index queries = q.size() > 0 ? q.shape()[2] : vs[2], width = q.size() > 0 ? q.shape()[3] : vs[3];
  const Shape q_shape{vs[0], layout.heads, queries, width};
  require(q.size() == 0 || q.shape() == q_shape, "{}: tensor 'q' has shape {}; expected {}, since 'v' has {}",
          in.path(), q.shape(), q_shape, vs);
  if (layout.key_width > 0) k = in.take<T>("k", Shape{vs[0], vs[1], vs[2], layout.key_channels(width)});
  const Tensor<T> dout = in.take_if_given<T>("grad_out", Shape{vs[0], heads, queries, vs[3]});

  AttentionShape shape{.heads = heads, .queries = queries, .keys = vs[2], .width = width, .value_width = vs[3]};
  read_grid(a.grid, queries, shape);
  if (options.class_token) {
    require(a.grid.empty() || *options.class_token == shape.class_token,
            "--set cls={}: {} tokens on a grid of {} imply {} class token", *options.class_token, queries, a.grid,
            shape.class_token ? "a" : "no");
    shape.class_token = *options.class_token;
  }
  mechanism->check(shape);

  Tape<T> tape({.training = options.training, .observers = results.observers()});
  const std::vector<ParameterSpec> specs = mechanism->parameters(shape);
  std::deque<Tensor<T>> values;
  std::vector<Var<T>> own;
  std::vector<View<const T>> views;
  for (const ParameterSpec& spec : specs) {
    values.push_back(spec.trainable ? in.take<T>(spec.name, spec.shape) : in.take_buffer<T>(spec.name, spec.shape));
    views.push_back(std::as_const(values.back()).view());
    own.push_back(spec.trainable ? tape.input(views.back()) : tape.constant(views.back()));
  }
  const Shape gumbel_shape = noise_shape(*mechanism, shape);
  Tensor<T> noise;
  if (gumbel_shape.elements() > 0 && (options.training || in.contains("gumbel")))
    noise = in.take<T>("gumbel", gumbel_shape);
  in.finish();

  const Var<T> vq = q.size() > 0 ? tape.input(q.view()) : Var<T>{}, vk = k.size() > 0 ? tape.input(k.view()) : Var<T>{},
               vv = tape.input(v.view());
  const Var<T> out =
      attention(*mechanism, vq, vk, vv, shape, std::span<const Var<T>>(own), std::as_const(noise).view());
  results.add("out", out.value());
  if (dout.size() > 0) {
    tape.backward(out, dout.view());
    if (vq) results.add("grad.q", tape.gradient(vq));
    if (vk) results.add("grad.k", tape.gradient(vk));
    results.add("grad.v", tape.gradient(vv));
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (specs[i].trainable) results.add("grad." + specs[i].name, tape.gradient(own[i]));
  }
  if (mechanism->maps()) {
    const Shape image = map_shape(*mechanism, shape);
    Tensor<T> maps(Shape{vs[0], image[0], image[1], image[2]});
    AttentionInput<T> input{.shape = shape, .q = {}, .k = {}, .v = {}, .parameters = views};
    Buffer<T> prepared(mechanism->memory(shape).prepared);
    if (prepared.size() > 0)
      mechanism->preparation()->prepare(
          AttentionPreparation<T>{shape, views, options.training, std::as_const(noise).view(), {prepared.data()}});
    input.prepared = {prepared.data()};
    for (Index b = 0; b < vs[0]; ++b) {
      input.q = heads_of(q, b), input.k = heads_of(k, b), input.v = heads_of(v, b);
      make_map(*mechanism, input, maps.data() + b * image.elements());
    }
    results.add("map", std::as_const(maps).view());
  }
}

template <class T>
void probe_linear(const ProbeArguments& a, GivenTensors& in, ProbeOutput<T>& results) {
  enum class Kind { mul, adder } kind = Kind::mul;
  AdderLinearOptions options;
  read_sets(a, "linear", [&](OptionReader& reader) {
    reader("kind", kind, {"mul", "adder"}, "products or l1 distances");
    if (kind == Kind::adder) options.options(reader);
  });
  const Tensor<T> x = in.take<T>("x", 2), weight = in.take<T>("weight", 2);
  require(weight.shape()[1] == x.shape()[1], "{}: tensor 'weight' has shape {}; expected [O, {}], since 'x' has {}",
          in.path(), to_string(weight.shape()), x.shape()[1], to_string(x.shape()));
  const Tensor<T> bias = in.take<T>("bias", Shape{weight.shape()[0]});
  const Tensor<T> dout = in.take_if_given<T>("grad_out", Shape{x.shape()[0], weight.shape()[0]});
  in.finish();
  Tape<T> tape({.observers = results.observers()});
  const Var<T> vx = tape.input(x.view()), vw = tape.input(weight.view()), vb = tape.input(bias.view());
  const Var<T> out = kind == Kind::mul ? linear(vx, vw, vb) : adder_linear(vx, vw, vb, options);
  results.add("out", out.value());
  if (dout.size() == 0) return;
  tape.backward(out, dout.view());
  results.add("grad.x", tape.gradient(vx));
  Tensor<T> dweight(weight.shape());
  std::copy(tape.gradient(vw).begin(), tape.gradient(vw).end(), dweight.begin());
  if (options.weight_scale == AdderLinearOptions::WeightScale::adaptive) adaptive_scale(dweight.size(), dweight.data());
  results.add("grad.weight", std::as_const(dweight).view());
  results.add("grad.bias", tape.gradient(vb));
}

struct ProbedModel {
  bool training = false;  ///< true: batch norm uses the batch's statistics and updates the running ones
  Experiment experiment;
  std::unique_ptr<Model> model;

  explicit ProbedModel(const ProbeArguments& a) {
    constexpr std::string_view mode = "mode=";  // an option of the probe, not of the model
    std::vector<std::string> sets;
    for (const std::string& set : a.sets)
      if (set.starts_with(mode))
        training = is_training(set.substr(mode.size()));
      else
        sets.push_back(set);
    experiment = load_experiment(a.model, sets);
    model = make_model(experiment);
  }
};

template <class T>
void probe_model(const ProbeArguments& a, GivenTensors& in, ProbeOutput<T>& results) {
  const auto [training, experiment, model] = ProbedModel(a);
  Parameters<T> parameters(model->parameters());
  load_weights(SafetensorsFile(a.weights), parameters);
  const std::unique_ptr<TaskBatch<T>> batch = make_task<T>(experiment, *model)->given_batch(in);
  in.finish();
  Gradients<T> gradients(parameters);
  if (training) model->examples_depend(batch->size());
  Tape<T> tape({.parameters = &parameters,
                .gradients = &gradients,
                .training = training,
                .execution = {.deterministic = true},
                .observers = results.observers()});
  const ExampleRange all{0, batch->size()};
  const Var<T> logits = batch->logits(*model, tape, all), loss = batch->loss(logits, all, batch->terms());
  results.add("logits", logits.value());
  results.add("loss", loss.value());
  tape.backward(loss);
  gradients.complete();
  scale_adaptively(parameters.list(), gradients);
  for (ParameterId id = 0; id < parameters.list().size(); ++id)
    if (parameters.list()[id].trainable)
      results.add("grad." + parameters.list()[id].name, std::as_const(gradients)[id]);
    else if (training && parameters.list()[id].running)
      results.add("buffer." + parameters.list()[id].name, std::as_const(parameters)[id]);
}

/// Computes the logits of sequences by incremental decoding.
template <class T>
void probe_decode(const ProbeArguments& a, GivenTensors& in, ProbeOutput<T>& results) {
  const std::unique_ptr<Model> model = make_model(load_experiment(a.model, a.sets));
  Parameters<T> parameters(model->parameters());
  load_weights(SafetensorsFile(a.weights), parameters);
  Decoder<T> decoder(*model, parameters);
  const ModelConfig& config = decoder.config();
  const Tensor<std::int64_t> tokens = in.take<std::int64_t>("tokens", 2);
  in.finish();
  const Index B = tokens.shape()[0], N = tokens.shape()[1];
  require(N <= config.context, "{}: tensor 'tokens' has shape {}; expected [B, T] with T at most context, {}",
          in.path(), tokens.shape(), config.context);
  for (Index i = 0; i < tokens.size(); ++i)
    require(tokens[i] >= 0 && tokens[i] < config.vocab,
            "{}: tensor 'tokens' has value {} at element {}; expected 0 to {}", in.path(), tokens[i], i,
            config.vocab - 1);
  Tensor<T> logits(Shape{B, N, config.vocab});
  for (Index b = 0; b < B; ++b) {
    decoder.restart();
    for (Index t = 0; t < N; ++t) {
      const Index at = t - config.start;
      const std::span<const T> row = decoder.next(at < 0 ? -1 : static_cast<int>(tokens[b * N + at]));
      std::ranges::copy(row, logits.data() + (b * N + t) * config.vocab);
    }
  }
  results.add("logits", std::as_const(logits).view());
}

}  // namespace

const Probe attention_probe{
    .name = "attention",
    .summary = "out, gradients and map of an attention mechanism",
    .probed = Probed::mechanism,
    .traces = true,
    .sets = "an option of the mechanism; repeatable",
    .contract =
        "IN   q [B,H,N,D], k [B,H,M,D], v [B,H,M,E], those that the mechanism takes; its parameters and buffers by "
        "name, as `heed list NAME` shows them; grad_out [B,H,N,E], the gradient of the result, if gradients are "
        "wanted; gumbel, if the mechanism draws random numbers: required with mode=train, otherwise optional.\n"
        "OUT  out [B,H,N,E]; with grad_out also grad.q, grad.k, grad.v and grad.NAME of each trainable tensor, in "
        "their shapes; map [B,H,N,M] if the mechanism has one ([B,H,D,D] between channels).\n"
        "B images, H heads, N queries, M keys, D and E channels. Sizes such as a rank are read from the tensors. "
        "--grid HxW says that the N tokens are H x W patches; if N = H W + 1, the first is a class token. --set takes "
        "the mechanism's options, mode=train or eval (default), and, without --grid, cls=true or false for a class "
        "token.\n\n"
        "  heed probe attention --mechanism softmax in.safetensors out.safetensors",
    .run = {probe_attention<float>, probe_attention<double>},
};

const Probe linear_probe{
    .name = "linear",
    .summary = "out and gradients of a linear layer",
    .traces = true,
    .sets = "kind=mul, or kind=adder and its input_grad, weight_grad, weight_scale; repeatable",
    .contract =
        "IN   x [N,I], weight [O,I], bias [O], and grad_out [N,O] for gradients\n"
        "OUT  out [N,O]; with grad_out also grad.x, grad.weight, grad.bias\n"
        "--set kind=mul (default): out = x weight^T + bias. kind=adder: out = bias minus the l1 distances "
        "between rows of x and weight; input_grad=sign|hardtanh, weight_grad=sign|hardtanh|full and "
        "weight_scale=none|adaptive choose its gradients (`heed help experiment`).\n\n"
        "  heed probe linear --set kind=adder in.safetensors out.safetensors",
    .run = {probe_linear<float>, probe_linear<double>},
};

const Probe model_probe{
    .name = "model",
    .summary = "logits, loss and gradients of a model",
    .probed = Probed::model,
    .traces = true,
    .sets = "override a key of the model file, or set batch norm's mode=train or eval; repeatable",
    .contract =
        "IN   images [B,C,H,W], used as given, without normalisation; labels [B] (I64), 0 to classes - 1\n"
        "OUT  logits [B,classes], loss (the mean cross entropy), grad.NAME of each trainable tensor\n"
        "With output = \"tokens\" each of the n patches has a label: labels [B,n], logits [B,n,classes]. A model of "
        "sequences takes tokens [B,T] (I64) in place of images, T up to context, and computes in the weights' number "
        "type. task = \"lm\": targets [B,T], -1 where there is none, and logits [B,T,vocab]. task = \"classify\":\n"
        "labels [B], and lengths [B] where not all are T. task = \"pair\": tokens2 and lengths2 too. --weights holds "
        "the model's tensors by timm's names; --set overrides keys of MODEL.\n\n"
        "  heed probe model models/vit-micro.toml --weights w.safetensors IN OUT",
    .check = [](const ProbeArguments& a) { ProbedModel{a}; },
    .run = {probe_model<float>, probe_model<double>},
};

const Probe decode_probe{
    .name = "decode",
    .summary = "logits of a model that writes sequences, token by token",
    .probed = Probed::model,
    .sets = "override a key of the model file; repeatable",
    .contract =
        "IN   tokens [B,T] (I64), 0 to vocab - 1, T up to context\n"
        "OUT  logits [B,T,vocab], in the number type of the weights: row t follows input t\n"
        "Input t is token t, or, with start = true, the start token and then token t - 1: the last token is not used. "
        "Inputs are processed one at a time, starting from the state after the previous ones, as in `heed "
        "generate`.\n\n"
        "  heed probe decode models/text-micro.toml --weights w.safetensors IN OUT",
    .check = [](const ProbeArguments& a) { language_model(*make_model(load_experiment(a.model, a.sets))); },
    .run = {probe_decode<float>, probe_decode<double>},
};

}  // namespace heed::cli
