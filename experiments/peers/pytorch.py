#!/usr/bin/env python3
"""PyTorch's side of `ratios`, in a separate process.

    pytorch.py --row '{"model": "vit-micro", "mode": "train", "batch": 128, "kind": "vit"}' --threads 2
    pytorch.py --export vit-micro FILE.onnx

For a row, tries all settings and prints one line of JSON: the fastest setting and the model's parameters. Then, for each
number of seconds read from stdin, prints the rate of this setting in that time. Inputs are random.

Requires PyTorch (1.13 or later), unlike heed.
"""
import argparse
import functools
import importlib.util
import json
import statistics
import sys
import time

import torch

import dino
import families
import mechanisms
import sequences
import vit


def compilers():
    """Settings that compile a model, by name."""
    return [("torch.compile", torch.compile)] if hasattr(torch, "compile") else []


def as_it_is(model):
    return model


def vit_settings(row):
    name, adder, bfloat16 = row["model"].split()[0], "adder" in row["model"], "bf16" in row["model"]
    inputs = vit.images(name, row["batch"])

    def traced(model):
        return torch.jit.freeze(torch.jit.trace(model.eval(), inputs))

    infers = row["mode"] == "infer"
    makers = {form: functools.partial(vit.make, name, adder, fused) for form, fused in families.attentions().items()}
    if adder:
        makers = {"": makers[""]}
    elif importlib.util.find_spec("timm"):
        makers["timm"] = functools.partial(vit.make_of_timm, name)
    steps = {}
    for form, make in makers.items():
        for setting, prepare in [("plain", as_it_is), *([("traced", traced)] if infers else []), *compilers()]:
            model = make()
            prepared = prepare(model)
            steps[", ".join(filter(None, (form, setting)))] = (
                vit.inference_step(model, inputs, prepared) if infers
                else vit.training_step(model, inputs, bfloat16, prepared))
    return model, steps, row["batch"]


def families_settings(row):
    steps = {}
    for order, layout in (("channels last", torch.channels_last), ("channels first", torch.contiguous_format)):
        for setting, prepare in [("plain", as_it_is), *compilers()]:
            model = families.MODELS[row["model"]]().to(memory_format=layout)
            inputs = torch.randn(row["batch"], 1, 28, 28).to(memory_format=layout)
            steps[f"{order}, {setting}"] = vit.training_step(model, inputs, call=prepare(model))
    return model, steps, row["batch"]


def sequences_settings(row, threads):
    def make(fused=False):
        model = sequences.MODELS[row["model"]]()
        for module in model.modules():
            if isinstance(module, families.SoftmaxAttention):
                module.fused = fused
        return model

    model = make()
    length = model.position.shape[1]
    if row["mode"] == "train":
        steps = {form or "plain": sequences.training_step(make(fused), row["batch"])
                 for form, fused in families.attentions().items()}
        return model, steps, row["batch"] * length

    def writer(count):
        def write():
            torch.set_num_threads(count)
            sequences.write(model)
        return write

    return model, {f"{n} thread{'s' if n > 1 else ''}": writer(n) for n in sorted({1, threads})}, length


def dino_settings(row):
    student = dino.Dino()
    return student, {"plain": dino.training_step(student, row["batch"])}, row["batch"]


def alone_settings(row):
    return None, {"plain": mechanisms.step(row["model"], row["batch"], row["mode"] == "backward")}, 1


def settings_of(row, threads):
    """Returns the model (None for a mechanism), {setting: function for one run}, and the examples or tokens per run."""
    if row["kind"] == "sequences":
        return sequences_settings(row, threads)
    of_kind = {"vit": vit_settings, "families": families_settings, "dino": dino_settings, "alone": alone_settings}
    return of_kind[row["kind"]](row)


def median_seconds(step, seconds):
    """Returns the median time of a call over `seconds`, but at least two calls."""
    times, start = [], time.perf_counter()
    while len(times) < 2 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def serve(row, threads):
    model, steps, examples = settings_of(row, threads)
    trials = {}
    for setting, step in steps.items():
        step()
        trials[setting] = median_seconds(step, 0.5)
    fastest = min(trials, key=trials.get)
    about = {"peer": f"PyTorch {torch.__version__}", "setting": fastest}
    if model:
        about["parameters"] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        print(json.dumps({"rate": examples / median_seconds(steps[fastest], float(line))}), flush=True)


def export(name, path):
    torch.onnx.export(vit.make(name).eval(), vit.images(name, 2), path, input_names=["x"], output_names=["y"],
                      opset_version=14, do_constant_folding=True, dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--row", type=json.loads, help="row to measure, as JSON")
    what.add_argument("--export", nargs=2, metavar=("NAME", "FILE"), help="write a Vision Transformer as ONNX")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    if arguments.export:
        export(*arguments.export)
    else:
        serve(arguments.row, arguments.threads)


if __name__ == "__main__":
    main()
