// Times vit-micro in WebAssembly under node. Inference of single images is compared with onnxruntime-web's WASM backend
// with SIMD, one thread each. Training is compared with the native program on one thread: training in WebAssembly with
// one thread, as in a page without cross-origin isolation, and with one thread per core, as in a page served with the
// headers of `make web-run`. The script writes heed's model as an ONNX file, so that both compute the same model, and
// first checks that their probabilities agree. `make web-speed` installs the requirements and runs it.
//
//     NODE_PATH=build-web/tools/node_modules node --no-experimental-fetch experiments/peers/onnxruntime-web.mjs build-web build/heed
//
// Prints JSON: images per second, best and median over alternating rounds, and the ratios, whose median is over the
// ratios of single rounds.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";

const require = createRequire(import.meta.url);
const [site, program] = [process.argv[2] ?? "build-web", process.argv[3] ?? "build/heed"].map((path) => resolve(path));
const rounds = 15;

// ---- ONNX: the required parts of its protocol buffers ----

const varint = (number) => {
  const bytes = [];
  for (let rest = BigInt.asUintN(64, BigInt(number)); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
};
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const part = (field, bytes) => Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
const text = (field, value) => part(field, Buffer.from(value));
const real = (field, value) => Buffer.concat([varint((field << 3) | 5), Buffer.from(new Float32Array([value]).buffer)]);

function attribute(name, value) {
  if (Array.isArray(value)) return Buffer.concat([text(1, name), ...value.map((one) => number(8, one)), number(20, 7)]);
  if (Number.isInteger(value)) return Buffer.concat([text(1, name), number(3, value), number(20, 2)]);
  return Buffer.concat([text(1, name), real(2, value), number(20, 1)]);
}

class Graph {
  nodes = [];
  initial = [];
  count = 0;

  /** Adds a constant tensor of floats or integers; returns its name. */
  tensor(shape, data, name = `c${++this.count}`) {
    const type = data instanceof Float32Array ? 1 : 7;
    const dims = shape.map((size) => number(1, size));
    this.initial.push(part(5, Buffer.concat([...dims, number(2, type), text(8, name), part(9, Buffer.from(data.buffer))])));
    return name;
  }

  integers(...list) {
    return this.tensor([list.length], new BigInt64Array(list.map(BigInt)));
  }

  /** Adds an operation; returns the name of its output, or a list of names if it has several. */
  node(type, inputs, attributes = {}, outputs = 1) {
    const names = Array.from({ length: outputs }, () => `x${++this.count}`);
    const fields = Object.entries(attributes).map(([name, value]) => part(5, attribute(name, value)));
    this.nodes.push(part(1, Buffer.concat([...inputs.map((one) => text(1, one)), ...names.map((one) => text(2, one)), text(4, type), ...fields])));
    return outputs === 1 ? names[0] : names;
  }

  model(input, inputShape, output, outputShape) {
    const value = (name, shape) => {
      const dims = shape.map((size) => part(1, number(1, size)));
      return Buffer.concat([text(1, name), part(2, part(1, Buffer.concat([number(1, 1), part(2, Buffer.concat(dims))])))]);
    };
    const graph = [...this.nodes, text(2, "vit"), ...this.initial, part(11, value(input, inputShape)), part(12, value(output, outputShape))];
    return Buffer.concat([number(1, 9), part(7, Buffer.concat(graph)), part(8, Buffer.concat([text(1, ""), number(2, 20)]))]);
  }
}

/** Returns the ONNX file of the Vision Transformer with these weights, for one image at a time. */
function vit(weights, { image, patch, dim, depth, heads, classes }) {
  const graph = new Graph();
  const weight = (name) => graph.tensor(weights[name].shape, weights[name].data, name);
  const transposed = (name) => {
    const { shape: [rows, columns], data } = weights[name];
    const turned = new Float32Array(data.length);
    for (let r = 0; r < rows; ++r) for (let c = 0; c < columns; ++c) turned[c * rows + r] = data[r * columns + c];
    return graph.tensor([columns, rows], turned);
  };
  const linear = (x, name) => graph.node("Add", [graph.node("MatMul", [x, transposed(`${name}.weight`)]), weight(`${name}.bias`)]);
  const norm = (x, name) => graph.node("LayerNormalization", [x, weight(`${name}.weight`), weight(`${name}.bias`)], { axis: -1, epsilon: 1e-6 });
  const tokens = (image / patch) ** 2 + 1;
  let x = graph.node("Conv", ["image", weight("patch_embed.proj.weight"), weight("patch_embed.proj.bias")], { kernel_shape: [patch, patch], strides: [patch, patch] });
  x = graph.node("Transpose", [graph.node("Reshape", [x, graph.integers(1, dim, tokens - 1)])], { perm: [0, 2, 1] });
  x = graph.node("Add", [graph.node("Concat", [weight("cls_token"), x], { axis: 1 }), weight("pos_embed")]);
  for (let i = 0; i < depth; ++i) {
    const block = `blocks.${i}`;
    const qkv = graph.node("Reshape", [linear(norm(x, `${block}.norm1`), `${block}.attn.qkv`), graph.integers(1, tokens, 3, heads, dim / heads)]);
    const split = graph.node("Split", [graph.node("Transpose", [qkv], { perm: [2, 0, 3, 1, 4] })], { axis: 0, num_outputs: 3 }, 3);
    const [q, k, v] = split.map((one) => graph.node("Squeeze", [one, graph.integers(0)]));
    const scores = graph.node("MatMul", [graph.node("Mul", [q, graph.tensor([], new Float32Array([(dim / heads) ** -0.5]))]), graph.node("Transpose", [k], { perm: [0, 1, 3, 2] })]);
    const mixed = graph.node("MatMul", [graph.node("Softmax", [scores], { axis: -1 }), v]);
    const joined = graph.node("Reshape", [graph.node("Transpose", [mixed], { perm: [0, 2, 1, 3] }), graph.integers(1, tokens, dim)]);
    x = graph.node("Add", [x, linear(joined, `${block}.attn.proj`)]);
    const hidden = graph.node("Gelu", [linear(norm(x, `${block}.norm2`), `${block}.mlp.fc1`)]);
    x = graph.node("Add", [x, linear(hidden, `${block}.mlp.fc2`)]);
  }
  const first = graph.node("Gather", [norm(x, "norm"), graph.tensor([], new BigInt64Array([0n]))], { axis: 1 });
  return graph.model("image", [1, 1, image, image], linear(first, "head"), [1, classes]);
}

// ---- heed ----

const root = resolve(import.meta.dirname, "../..");

/** Starts an engine as the page's worker does. Returns functions that send it requests and read its files. */
async function started(threads) {
  const engine = await require(join(site, threads > 1 ? "heed-threads.js" : "heed.js"))({ threads });
  engine._heed_threads(threads);
  for (const folder of ["models", "experiments"]) engine.FS.mkdir(`/${folder}`);
  for (const name of ["models/vit-micro.toml", "experiments/mnist.toml"]) engine.FS.writeFile(`/${name}`, readFileSync(join(root, name)));
  engine.FS.chdir("/");
  const ask = (request, bytes) => {
    const at = engine._heed_bytes(bytes?.length ?? 0);
    if (bytes) engine.HEAPU8.set(bytes, at);
    const result = JSON.parse(engine.ccall("heed_ask", "string", ["string"], [JSON.stringify(request)]));
    if (result.error) throw new Error(result.error);
    return result.answer;
  };
  return { ask, read: (path) => engine.FS.readFile(path) };
}

const { ask, read } = await started(1);

function weightsOf(model) {
  ask({ ask: "save", model, path: "/weights.safetensors" });
  const file = Buffer.from(read("/weights.safetensors"));
  const start = 8 + Number(file.readBigUInt64LE(0));
  const found = {};
  for (const [name, info] of Object.entries(JSON.parse(file.subarray(8, start).toString()))) {
    if (name === "__metadata__") continue;
    const [begin, end] = info.data_offsets.map((at) => file.byteOffset + start + at);
    found[name] = { shape: info.shape, data: new Float32Array(file.buffer.slice(begin, end)) };
  }
  return found;
}

// ---- Comparison ----

const pixels = Uint8Array.from({ length: 784 }, (_, i) => (i * 37) % 256);
const { model } = ask({ ask: "open", config: "/experiments/mnist.toml", sets: [] });
const predict = () => ask({ ask: "predict", model, channels: 1, height: 28, width: 28 }, pixels).probabilities;

const ort = require("onnxruntime-web");
ort.env.wasm.numThreads = 1;
const file = vit(weightsOf(model), { image: 28, patch: 4, dim: 64, depth: 4, heads: 4, classes: 10 });
const session = await ort.InferenceSession.create(file, { executionProviders: ["wasm"], graphOptimizationLevel: "all" });
const input = new ort.Tensor("float32", Float32Array.from(pixels, (byte) => (byte / 255 - 0.1307) / 0.3081), [1, 1, 28, 28]);
const run = async () => Object.values(await session.run({ image: input }))[0].data;

const logits = [...(await run())];
const powers = logits.map((one) => Math.exp(one - Math.max(...logits)));
const sum = powers.reduce((a, b) => a + b);
const apart = Math.max(...predict().map((share, i) => Math.abs(share - powers[i] / sum)));
if (apart > 1e-4) throw new Error(`the models differ: probabilities by ${apart}`);

/** Returns the calls per second, measured for about `milliseconds`. */
async function rate(call, milliseconds = 300) {
  const start = performance.now();
  let calls = 0;
  for (; performance.now() - start < milliseconds; ++calls) await call();
  return (1000 * calls) / (performance.now() - start);
}

const trained = 256, batch = 128;
const images = new Uint8Array(785 * (trained + 8)).map((_, i) => (i < 784 * (trained + 8) ? (i * 31) % 256 : i % 10));
const sets = [`train.batch=${batch}`, "data.validation=0", "train.epochs=100000"];
const steps = ({ ask }) => {
  const model = ask({ ask: "begin", config: "/experiments/mnist.toml", sets, train: trained, test: 8 }, images).model;
  return () => ask({ ask: "step", model, steps: 1 });
};
const cores = availableParallelism();
const step = steps({ ask });
const stepOfAll = steps(await started(cores));
const bench = ["bench", join(root, "models/vit-micro.toml"), "--batch", String(batch), "--threads", "1", "--seconds", "0.4", "--json"];
const native = () => JSON.parse(execFileSync(program, bench, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })).img_s;

const rates = { inference: [], "onnxruntime-web": [], training: [], [`training, ${cores} threads`]: [], "training, native": [] };
for (let round = 0; round < rounds; ++round) {
  rates.inference.push(await rate(predict));
  rates["onnxruntime-web"].push(await rate(run));
  rates.training.push(batch * (await rate(step, 500)));
  rates[`training, ${cores} threads`].push(batch * (await rate(stepOfAll, 500)));
  rates["training, native"].push(native());
}
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const best = (list) => Math.max(...list);
const ratio = (a, b) => ({ best: +(best(a) / best(b)).toFixed(3), median: +median(a.map((one, i) => one / b[i])).toFixed(3) });
console.log(JSON.stringify({
  images_per_s: Object.fromEntries(Object.entries(rates).map(([name, list]) => [name, { best: Math.round(best(list)), median: Math.round(median(list)) }])),
  inference_to_onnxruntime_web: ratio(rates.inference, rates["onnxruntime-web"]),
  training_to_native: ratio(rates.training, rates["training, native"]),
  [`training_${cores}_threads_to_native`]: ratio(rates[`training, ${cores} threads`], rates["training, native"]),
  probabilities_apart: apart,
}, null, 1));
process.exit(0);
