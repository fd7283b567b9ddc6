// Settings of the page, stored in its address: #look?data=mnist&left=sima.

/** Returns the view and the settings in the address. */
export function readAddress() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  return { view, settings: Object.fromEntries(new URLSearchParams(query)) };
}

/** Returns a setting as a whole number from low to high; `otherwise` if its text is not such a number. */
export function whole(text, low, high, otherwise) {
  const number = Number(text ?? NaN);
  return Number.isInteger(number) && number >= low && number <= high ? number : otherwise;
}

/** Stores settings in the address, without adding to the browser's history. Null settings are omitted. */
export function writeAddress(view, settings) {
  const kept = Object.entries(settings).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
  history.replaceState(null, "", `#${view}${query ? `?${query}` : ""}`);
}
