// The engine in WebAssembly, under node, compared with the native build: make web-test. Arguments: the directory of the
// page and the native program (tests/apps/web/ask.cpp).
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { gunzipSync } from "node:zlib";

const [site, program] = process.argv.slice(2);
const work = mkdtempSync(join(tmpdir(), "heed-engine-"));
let checks = 0;
let failed = 0;

function expect(condition, message) {
  ++checks;
  if (condition) return;
  ++failed;
  console.log(`FAILED  ${message}`);
}

// ---- Two engines with the same interface ----

const engine = await createRequire(import.meta.url)(resolve(site, "heed.js"))({});
engine.FS.mkdirTree(work);

function wasm(request, bytes) {
  const at = engine._heed_bytes(bytes?.length ?? 0);
  if (bytes) engine.HEAPU8.set(bytes, at);
  const result = JSON.parse(engine.ccall("heed_ask", "string", ["string"], [JSON.stringify(request)]));
  if (result.error) return result;
  const arrays = [];
  const gather = (value) => {
    if (value === null || typeof value !== "object") return;
    if ("array" in value) {
      const from = engine._heed_array(value.array) >>> 2;
      arrays[value.array] = [...engine.HEAPF32.subarray(from, from + value.shape.reduce((a, b) => a * b, 1))];
    } else Object.values(value).forEach(gather);
  };
  gather(result.answer);
  return { ...result, arrays };
}

const child = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

async function native(request, bytes) {
  if (bytes) writeFileSync(join(work, "bytes"), bytes);
  child.stdin.write(`${JSON.stringify(bytes ? { ...request, file: join(work, "bytes") } : request)}\n`);
  return JSON.parse((await answers.next()).value);
}

/** Returns the largest difference between numbers at equal positions; infinite if anything else differs. */
function difference(a, b) {
  if (typeof a === "number" && typeof b === "number") return Math.abs(a - b);
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b ? 0 : Infinity;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  let most = 0;
  for (const key of keys) most = Math.max(most, key in a && key in b ? difference(a[key], b[key]) : Infinity);
  return most;
}

async function same(name, request, bytes, tolerance, part = (result) => result) {
  const mine = wasm(request, bytes),
    theirs = await native(request, bytes);
  expect(!mine.error, `${name}: ${mine.error}`);
  const found = difference(part(mine), part(theirs));
  expect(found <= tolerance, `${name}: differs by ${found}, ${tolerance} are allowed`);
  return mine.answer;
}

/** Creates a file that both engines can read, under the same path. */
function file(name, bytes) {
  const path = join(work, name);
  writeFileSync(path, bytes);
  engine.FS.writeFile(path, bytes);
  return path;
}

// ---- Comparisons ----

const elements = (name, axes) => gunzipSync(readFileSync(join(site, name))).subarray(4 + 4 * axes);
const pixels = (data) => ["train", "t10k"].map((part) => elements(`images/${data}/${part}-images-idx3-ubyte.gz`, 3));
const labels = (data) => ["train", "t10k"].map((part) => elements(`images/${data}/${part}-labels-idx1-ubyte.gz`, 1));

async function compareArm(data, arm) {
  const folder = join(site, "trained", data, arm);
  const config = file("config.toml", readFileSync(join(folder, "config.toml")));
  const weights = file("weights.safetensors", readFileSync(join(folder, "best.safetensors")));
  const { model } = await same(`${data} ${arm}: opened`, { ask: "open", config, sets: [], weights }, null, 0);
  for (const i of [0, 7])
    await same(
      `${data} ${arm}: image ${i}`,
      { ask: "look", model, channels: 1, height: 28, width: 28 },
      pixels(data)[1].subarray(784 * i, 784 * (i + 1)),
      1e-4,
    );
  await same(`${data} ${arm}: cost`, { ask: "cost", config, sets: [], pass: "step" }, null, 0);
  const sets = [
    "model.depth=1",
    "train.batch=16",
    "train.epochs=1000",
    "data.validation=0",
    "data.limit=0",
    "optim.lr=1e-3",
    "optim.warmup_steps=5",
  ];
  const all = [...pixels(data), ...labels(data)];
  const begun = await same(
    `${data} ${arm}: begun`,
    { ask: "begin", config, sets, train: 800, test: 200 },
    Buffer.concat(all),
    0,
  );
  await same(`${data} ${arm}: 20 steps`, { ask: "step", model: begun.model, steps: 20 }, null, 1e-4, (result) =>
    result.answer.steps.map((step) => step.loss),
  );
  for (const number of [model, begun.model]) await same("closed", { ask: "close", model: number }, null, 0);
}

const about = wasm({ ask: "mechanisms" }).answer;
const index = JSON.parse(readFileSync(join(site, "trained/index.json"), "utf8"));
for (const [data, arms] of Object.entries(index)) for (const arm of arms) await compareArm(data, arm.name);
for (const { name } of about.mechanisms) {
  const { cases } = await same(`${name}: cases`, { ask: "cases", mechanism: name }, null, 0);
  for (const number of cases.keys()) {
    const { rows } = wasm({ ask: "check", mechanism: name, case: number }).answer;
    expect(
      rows.every((row) => row.passed),
      `${name}, case ${number}: a gradient differs`,
    );
  }
  await same(
    `${name}: an element`,
    { ask: "element", mechanism: name, case: 0, input: 0, element: 1, change: 0.1 },
    null,
    1e-6,
  );
}
await same("surrogates", { ask: "surrogates" }, null, 0);
expect(
  difference(wasm({ ask: "mechanisms" }).answer, about) === 0,
  "the list of mechanisms has changed: something wrote where it should not",
);
child.stdin.end();
rmSync(work, { recursive: true });
console.log(
  failed === 0 ? `engine: ${checks} comparisons with the native build agree` : `engine: ${failed} of ${checks} failed`,
);
process.exit(failed === 0 ? 0 : 1);
