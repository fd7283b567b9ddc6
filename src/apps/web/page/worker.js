// The engine's worker: a script without modules, so that the single-file page can also create it.
"use strict";

let engine;

async function start({ threads, wasm }) {
  const name = threads > 1 ? "heed-threads" : "heed";
  if (typeof heedEngine === "undefined") importScripts(`${name}.js`);
  engine = await heedEngine({ threads, wasmBinary: wasm, mainScriptUrlOrBlob: `${name}.js` });
  engine._heed_threads(threads);
}

/** Replaces each {"array": number, "shape"} in an answer by {shape, data}; adds the buffers of `data` to `handed`. */
function withArrays(value, handed) {
  if (Array.isArray(value)) return value.map((one) => withArrays(one, handed));
  if (value === null || typeof value !== "object") return value;
  if (!("array" in value))
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withArrays(one, handed)]));
  const at = engine._heed_array(value.array) >>> 2,
    count = value.shape.reduce((a, b) => a * b, 1);
  const data = new Float32Array(count);
  data.set(engine.HEAPF32.subarray(at, at + count));
  handed.push(data.buffer);
  return { shape: value.shape, data };
}

function answer(request, bytes, handed) {
  const at = engine._heed_bytes(bytes ? bytes.length : 0);
  if (bytes) engine.HEAPU8.set(bytes, at);
  const result = JSON.parse(engine.ccall("heed_ask", "string", ["string"], [JSON.stringify(request)]));
  if (result.error !== undefined) throw new Error(result.error);
  return withArrays(result.answer, handed);
}

function written(path, bytes) {
  engine.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")) || "/");
  engine.FS.writeFile(path, bytes);
}

async function respond(message, handed) {
  if (message.start) return start(message.start);
  if (message.write) return written(message.write, message.bytes);
  if (message.read) return engine.FS.readFile(message.read);
  return answer(message.ask, message.bytes, handed);
}

// Requests are answered one by one, since the memory of an answer is valid only until the next request.
let before = Promise.resolve();
onmessage = ({ data: message }) => {
  before = before.then(async () => {
    const handed = [];
    try {
      const result = await respond(message, handed);
      postMessage({ id: message.id, answer: result }, handed);
    } catch (error) {
      postMessage({ id: message.id, error: error.message ?? String(error) });
    }
  });
};
