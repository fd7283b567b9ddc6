// Files of the page: beside it or, in the single-file page, inlined.

/** Returns the element that holds the inlined file of this path, or null. */
export function inlined(path) {
  return document.getElementById(`asset:${path}`);
}

/** Returns the decompressed bytes of a gzip file. */
async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Returns the bytes of a file, decompressed if its name ends in .gz. */
export async function asset(path) {
  const element = inlined(path);
  let bytes;
  if (element) {
    bytes = Uint8Array.from(atob(element.textContent.trim()), (letter) => letter.charCodeAt(0));
    if ("packed" in element.dataset) bytes = await unpacked(bytes);
  } else {
    const response = await fetch(path);
    if (!response.ok) throw new Error(`${path}: the server answers ${response.status}`);
    bytes = new Uint8Array(await response.arrayBuffer());
  }
  // A server may already have decompressed the file.
  return path.endsWith(".gz") && bytes[0] === 0x1f && bytes[1] === 0x8b ? unpacked(bytes) : bytes;
}

/** Returns a text file. */
export async function textAsset(path) {
  return new TextDecoder().decode(await asset(path));
}
