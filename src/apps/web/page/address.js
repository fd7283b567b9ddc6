// The settings of the page, which its address holds: #look?data=mnist&left=sima.

/** Which view the address names, and its settings. */
export function readAddress() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  return { view, settings: Object.fromEntries(new URLSearchParams(query)) };
}

/** A setting that is a whole number from low to high; of any other the number that stands for none. */
export function whole(text, low, high, otherwise) {
  const number = Number(text ?? NaN);
  return Number.isInteger(number) && number >= low && number <= high ? number : otherwise;
}

/** Puts them there, without a step in the browser's history for each. Settings that are null are left out. */
export function writeAddress(view, settings) {
  const kept = Object.entries(settings).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
  history.replaceState(null, "", `#${view}${query ? `?${query}` : ""}`);
}
