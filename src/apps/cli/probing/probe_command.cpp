// heed probe: runs one mechanism, layer or model on given tensors, to compare heed with other implementations. Outputs
// and gradients are computed by the code used in training.
#include "probe.h"

#include "src/apps/cli/shared/output_file.h"

namespace heed::cli {

namespace {

constexpr const char* probe_contract =
    "IN and OUT are safetensors files. F64 tensors are computed in double, F32 tensors by the float code of training.\n"
    "If a listed tensor is missing from IN, is not finite or has the wrong shape, or if IN has an unlisted tensor, an "
    "error names it and OUT is not written.\n"
    "`heed probe attention --help`, `linear --help` and so on list tensors, shapes and options.\n\n"
    "--trace FILE writes every operation's result, NAME.out, and gradient, NAME.grad, in the order of computation, for "
    "`heed diff`. If the operation is the whole layer, NAME is the layer's, as in the weights' names and in PyTorch: "
    "blocks.0.norm1. Otherwise it is layer/operation: blocks.0.attn/softmax, and blocks.0.attn.proj/linear with the "
    "residual. For F64 tensors, the steps of mechanisms are written, too: blocks.0.attn/S. The gradients of inputs and "
    "weights come last.";

/// Returns true if the probe computes in double: if the tensors of IN are F64, or if IN has only integers and the
/// weights are F64.
bool in_double(const ProbeArguments& a, const GivenTensors& in) {
  const bool by_weights = !a.weights.empty() && !in.has_numbers();
  return by_weights ? GivenTensors(a.weights).in_double() : in.in_double();
}

template <class T>
void run(ProbeFunction<T> probe, const ProbeArguments& a, GivenTensors& in) {
  ProbeOutput<T> results(!a.trace.empty());
  probe(a, in, results);
  results.write(a);
}

/// Throws Error if OUT or the trace would overwrite another file of the command.
void require_own_files(const ProbeArguments& a) {
  const CommandFile out{"OUT", a.out}, trace{"--trace", a.trace};
  require_own_file(trace, {out});
  for (const CommandFile& file : {trace, out})
    require_own_file(file, {{"IN", a.in}, {"--weights", a.weights}, {"MODEL", a.model}});
}

int run(const Probe& probe, const ProbeArguments& a) {
  if (probe.check) probe.check(a);
  require_own_files(a);
  use_threads(a.trace.empty() ? a.threads : 1);  // a trace collects steps on one thread, in order
  GivenTensors in(a.in);
  if (in_double(a, in))
    run(probe.run.second, a, in);
  else
    run(probe.run.first, a, in);
  return ok;
}

void add(Command program, const Probe& probe, ProbeArguments& a) {
  Command command = program.command(probe.name, probe.summary);
  if (probe.probed == Probed::mechanism)
    command.option("--mechanism", &a.mechanism, "name of the mechanism, as in `heed list`",
                   {.value = "NAME", .required = true, .offered = mechanism_names()});
  if (probe.probed == Probed::model) {
    command.option("MODEL", &a.model, "model or experiment file (TOML)", {.required = true});
    command.option("--weights", &a.weights, "the model's tensors (safetensors)", {.value = "FILE", .required = true});
  }
  if (probe.sets) add_sets(command, a.sets, probe.sets);
  if (probe.probed == Probed::mechanism) command.option("--grid", &a.grid, "the tokens' image grid", {.value = "HxW"});
  command.option("IN", &a.in, "safetensors file with the inputs, F32 or F64", {.required = true});
  command.option("OUT", &a.out, "safetensors file to write the results to", {.required = true});
  if (probe.traces)
    command.option("--trace", &a.trace, "also write the result and gradient of every operation", {.value = "FILE"});
  add_threads(command, a.threads);
  command.footer(probe.contract);
  command.action([&probe, &a] { return run(probe, a); });
}

}  // namespace

void add_probe(Command program) {
  static ProbeArguments a;
  Command command = program.command("probe", "Run a mechanism, a layer or a model on given tensors");
  command.footer(probe_contract);
  for (const Probe* const probe : {&attention_probe, &linear_probe, &model_probe, &decode_probe, &knn_probe,
                                   &ridge_probe, &dino_probe, &dino_head_probe})
    add(command, *probe, a);
}

}  // namespace heed::cli
