// Times a model in ONNX Runtime: the peer of `heed bench MODEL --mode infer`. Prints its version, then, for each number
// of seconds read from stdin, the median examples per second of its calls in that time.
//
//     node experiments/peers/onnxruntime.mjs MODEL.onnx BATCH CHANNELS SIDE THREADS
//
// experiments/peers/ratios runs it. Needs onnxruntime-node, in $PEERS_DIR/npm or $HOME/.cache/heed-peers/npm:
// npm install --ignore-scripts onnxruntime-node
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const peers = process.env.PEERS_DIR ?? `${process.env.HOME}/.cache/heed-peers`;
const runtime = createRequire(`${peers}/npm/`)("onnxruntime-node");
const [file, ...sizes] = process.argv.slice(2);
const [batch, channels, side, threads] = sizes.map(Number);
const session = await runtime.InferenceSession.create(file, {
  executionProviders: ["cpu"],
  intraOpNumThreads: threads,
  interOpNumThreads: 1,
  graphOptimizationLevel: "all",
  executionMode: "sequential",
});
const numbers = new Float32Array(batch * channels * side * side).map(() => Math.random() - 0.5);
const feed = { x: new runtime.Tensor("float32", numbers, [batch, channels, side, side]) };
for (let i = 0; i < 3; i++) await session.run(feed);
const version = createRequire(`${peers}/npm/`)("onnxruntime-node/package.json").version;
console.log(JSON.stringify({ peer: `ONNX Runtime ${version}`, setting: "" }));
for await (const line of createInterface({ input: process.stdin })) {
  const times = [];
  for (const end = performance.now() + 1000 * Number(line); performance.now() < end || times.length < 3; ) {
    const start = performance.now();
    await session.run(feed);
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  console.log(JSON.stringify({ rate: (1000 * batch) / times[times.length >> 1] }));
}
