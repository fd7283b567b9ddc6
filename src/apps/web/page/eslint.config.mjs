// Rules of `make web-check` for the page's JavaScript.
import js from "@eslint/js";

const browser = [
  "document",
  "navigator",
  "location",
  "history",
  "fetch",
  "Worker",
  "Blob",
  "URL",
  "URLSearchParams",
  "Response",
  "OffscreenCanvas",
  "DecompressionStream",
  "TextDecoder",
  "TextEncoder",
  "createImageBitmap",
  "ResizeObserver",
  "indexedDB",
  "performance",
  "setTimeout",
  "addEventListener",
  "atob",
];
const worker = ["importScripts", "heedEngine", "postMessage"];
const all = (names) => Object.fromEntries(names.map((name) => [name, "readonly"]));

export default [
  js.configs.recommended,
  { rules: { "prefer-const": "error", "no-var": "error", eqeqeq: "error" } },
  { files: ["*.js"], languageOptions: { globals: all(browser) } },
  {
    files: ["worker.js"],
    languageOptions: { sourceType: "script", globals: { ...all(worker), onmessage: "writable" } },
  },
];
