// Results of the program, with which the page's tests compare those of the page.
import { heed, ask, site, work } from "./browser.mjs";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** One thread: more threads would compete with the browser, and give the same bits. */
const env = { ...process.env, OMP_NUM_THREADS: "1" };

/** Returns the output of a command of the program. */
export const said = (...words) => execFileSync(heed, words, { encoding: "utf8", stdio: "pipe", cwd: site, env });

/** Returns the run directory of one of the page's trained models. */
export const runOf = (data, arm) => join(site, "trained", data, arm);

/** Returns tensors by name, {dtype, shape, data}, as a safetensors file. */
function safetensors(tensors) {
  const header = {};
  let end = 0;
  for (const [name, { dtype, shape, data }] of Object.entries(tensors))
    header[name] = { dtype, shape, data_offsets: [end, (end += data.byteLength)] };
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...Object.values(tensors).map(({ data }) => Buffer.from(data.buffer))]);
}

/** Returns a tensor of floats from a safetensors file. */
function floats(path, name) {
  const file = readFileSync(path);
  const start = 8 + Number(file.readBigUInt64LE(0));
  const [begin, end] = JSON.parse(file.subarray(8, start).toString())[name].data_offsets;
  return new Float32Array(file.buffer.slice(file.byteOffset + start + begin, file.byteOffset + start + end));
}

/** Returns the program's probabilities for 28 x 28 grey bytes, by class. */
export function predicted(run, bytes) {
  const config = readFileSync(join(run, "config.toml"), "utf8");
  const [mean, std] = ["mean", "std"].map((key) => Number(new RegExp(`^${key} = \\[([\\d.]+)`, "m").exec(config)[1]));
  const [input, output] = [join(work, "in.safetensors"), join(work, "out.safetensors")];
  const images = Float32Array.from(bytes, (byte) => (byte / 255 - mean) / std);
  writeFileSync(
    input,
    safetensors({
      labels: { dtype: "I64", shape: [1], data: new BigInt64Array(1) },
      images: { dtype: "F32", shape: [1, 1, 28, 28], data: images },
    }),
  );
  said("probe", "model", join(run, "config.toml"), input, output, "--weights", join(run, "best.safetensors"));
  const logits = floats(output, "logits");
  const powers = [...logits].map((logit) => Math.exp(logit - Math.max(...logits)));
  return powers.map((power) => power / powers.reduce((a, b) => a + b));
}

let runs = 0;

/** Trains with the command that the page shows; returns the losses of the first steps. */
export function trainedLosses(command, steps) {
  const run = join(work, `run-${++runs}`);
  const more = [`train.max_steps=${steps}`, "train.log_steps=true"].flatMap((set) => ["--set", set]);
  const words = command
    .split(" ")
    .slice(1)
    .map((word) => (word === "my-run" ? run : word));
  said(...words, ...more);
  return losses(join(run, "metrics.csv"));
}

/** Returns the losses of the steps in a table of metrics. */
export function losses(path) {
  const rows = readFileSync(path, "utf8")
    .split("\n")
    .filter((row) => row.startsWith("step,"));
  return rows.map((row) => Number(row.split(",")[3]));
}

// ---- The native engine ----

const child = spawn(ask, { stdio: ["pipe", "pipe", "inherit"] });
child.unref();
const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

async function answer(request) {
  child.stdin.write(`${JSON.stringify(request)}\n`);
  const reply = JSON.parse((await answers.next()).value);
  if (reply.error !== undefined) throw new Error(reply.error);
  return reply;
}

/**
 * Returns the largest weight of each map shown for 28 x 28 grey bytes, by block and head: in the row of patch `query`;
 * for -1, in the row of the class token or, without one, in the mean of the patches' rows. Maps that are not between
 * tokens are considered as a whole.
 */
export async function largestWeights(run, bytes, query) {
  const [config, weights] = ["config.toml", "best.safetensors"].map((name) => join(run, name));
  const opened = (await answer({ ask: "open", config, sets: [], weights })).answer;
  const file = join(work, "bytes");
  writeFileSync(file, Uint8Array.from(bytes));
  const request = { model: opened.model, channels: 1, height: 28, width: 28, file };
  const look = await answer({ ask: "look", ...request });
  await answer({ ask: "close", model: opened.model });
  const first = opened.prefix;
  return look.answer.blocks.flatMap(({ pictures: [map] }) => {
    const [heads, rows, columns] = map.numbers.shape;
    const all = look.arrays[map.numbers.array];
    return Array.from({ length: heads }, (_, head) => {
      const row = (i) => all.slice((head * rows + i) * columns, (head * rows + i + 1) * columns);
      if (map.axes === "matrix") return largest(all.slice(head * rows * columns, (head + 1) * rows * columns));
      if (query >= 0 || opened.class_token) return largest(row(query < 0 ? 0 : query + first).slice(first));
      const patches = Array.from({ length: rows - first }, (_, i) => row(i + first));
      const mean = (key) => patches.reduce((sum, patch) => sum + patch[key], 0) / patches.length;
      return largest(Array.from({ length: columns - first }, (_, key) => mean(key + first)));
    });
  });
}

const largest = (numbers) => Math.max(...numbers.map(Math.abs));
