// The engine, which runs in a worker.
import { asset, inlined, textAsset } from "./assets.js";

/** An array of the engine. @typedef {{shape: number[], data: Float32Array}} Numbers */

export class Engine {
  #worker;
  #waiting = new Map();
  #last = 0;
  #told;

  /** Connects to a started worker; `told` is called with the number of pending requests.
      @param {Worker} worker @param {(count: number) => void} told */
  constructor(worker, told) {
    this.#worker = worker;
    this.#told = told;
    worker.onmessage = ({ data }) => {
      const { resolve, reject } = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      told(this.#waiting.size);
      if (data.error === undefined) resolve(data.answer);
      else reject(new Error(data.error));
    };
    worker.onerror = (event) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(event.message || "the engine has ended"));
      this.#waiting.clear();
      told(0);
    };
  }

  /** Starts the engine: with several threads if the server isolates the page from others, otherwise with one. */
  static async start(told = () => {}) {
    const single = inlined("heed.wasm") !== null;
    const threads = !single && globalThis.crossOriginIsolated ? Math.min(navigator.hardwareConcurrency || 1, 16) : 1;
    let script = "worker.js";
    if (single) {
      const parts = [await textAsset("heed.js"), await textAsset("worker.js")];
      script = URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
    }
    const engine = new Engine(new Worker(script), told);
    const wasm = single ? await asset("heed.wasm") : undefined;
    await engine.#send({ start: { threads, wasm } });
    return engine;
  }

  #send(message) {
    return new Promise((resolve, reject) => {
      this.#waiting.set(++this.#last, { resolve, reject });
      this.#worker.postMessage({ id: this.#last, ...message });
      this.#told(this.#waiting.size);
    });
  }

  /** Returns the answer to a request (listed in service.h), with arrays as {shape, data}. Throws the engine's errors. */
  ask(name, request = {}, bytes = undefined) {
    return this.#send({ ask: { ask: name, ...request }, bytes });
  }

  /** Writes a file, which requests can then name by its path. */
  write(path, bytes) {
    return this.#send({ write: path, bytes });
  }

  /** Returns the bytes of a file stored by write() or by a request. */
  read(path) {
    return this.#send({ read: path });
  }
}

/** Returns a function that runs `call`, one run at a time: of the calls made during a run, only the last is run.
    @template {unknown[]} Given @param {(...given: Given) => Promise<void>} call @returns {(...given: Given) => Promise<void>} */
export function latest(call) {
  let running = false;
  /** @type {Given|null} */
  let next = null;
  return async (...given) => {
    next = given;
    if (running) return;
    running = true;
    try {
      while (next) {
        const now = next;
        next = null;
        await call(...now);
      }
    } finally {
      running = false;
    }
  };
}
