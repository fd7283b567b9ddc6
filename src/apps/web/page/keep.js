// Saving of trained models: in the browser's store, and as files.

const store = "models";

/** Opens the browser's store; null if there is none, as for some pages opened from disk. */
function database() {
  return new Promise((resolve) => {
    try {
      const request = indexedDB.open("heed", 1);
      request.onupgradeneeded = () => request.result.createObjectStore(store, { keyPath: "id" });
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
}

/** Returns the result of `use` on the store; null if the store is missing, damaged or full. */
async function inStore(mode, use) {
  const base = await database();
  return new Promise((resolve) => {
    try {
      const transaction = base.transaction(store, mode);
      const request = use(transaction.objectStore(store));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
}

/** A saved model. @typedef {{id: string, name: string, data: string, config: string,
    weights: Uint8Array, steps: number}} Kept */

/** Returns the saved models without malformed entries, which other pages may have stored. @returns {Promise<Kept[]>} */
export async function keptModels() {
  const whole = ({ id, name, data, config, steps, weights }) =>
    [id, name, data, config].every((text) => typeof text === "string") &&
    Number.isInteger(steps) &&
    weights instanceof Uint8Array;
  return ((await inStore("readonly", (models) => models.getAll())) ?? []).filter(whole);
}

/** Saves a model and returns whether the browser has stored it. @param {Kept} model */
export async function keep(model) {
  return (await inStore("readwrite", (models) => models.put(model))) !== null;
}

export function drop(id) {
  return inStore("readwrite", (models) => models.delete(id));
}

/** Downloads bytes as a file. */
export function download(name, bytes, type = "application/octet-stream") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Returns a tar archive of files, [name, bytes]: blocks of 512 bytes, a header before each file, and two empty blocks
    at the end. */
export function tar(files) {
  const block = 512,
    padded = (length) => Math.ceil(length / block) * block;
  const archive = new Uint8Array(files.reduce((sum, [, bytes]) => sum + block + padded(bytes.length), 2 * block));
  const text = new TextEncoder(),
    octal = (number, digits) => `${number.toString(8).padStart(digits, "0")}\0`;
  let at = 0;
  for (const [name, bytes] of files) {
    const header = archive.subarray(at, at + block),
      put = (place, field) => header.set(text.encode(field), place);
    put(0, name);
    put(100, octal(0o644, 7));
    put(108, octal(0, 7));
    put(116, octal(0, 7));
    put(124, octal(bytes.length, 11));
    put(136, octal(0, 11));
    put(148, " ".repeat(8));
    put(156, "0");
    put(257, "ustar\u000000");
    put(
      148,
      `${octal(
        header.reduce((sum, byte) => sum + byte, 0),
        6,
      )} `,
    );
    archive.set(bytes, at + block);
    at += block + padded(bytes.length);
  }
  return archive;
}
