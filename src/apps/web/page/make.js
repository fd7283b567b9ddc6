// Functions that create elements and format numbers, for this page and `heed report`.

export function fill(element, attributes, content) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...content.flat().filter((one) => one !== null && one !== undefined));
  return element;
}

/** Creates an element: make("td", {class: "text"}, "content"). Omits null attributes; "onclick" adds a listener. */
export function make(tag, attributes = {}, ...content) {
  return fill(document.createElement(tag), attributes, content);
}

export function makeSvg(tag, attributes = {}, ...content) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, content);
}

/** Creates a table in a scrolling box; cells are texts or elements, the first of a row is its header. */
export function table(head, rows, attributes = {}) {
  return make(
    "div",
    { class: "wide" },
    make(
      "table",
      attributes,
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          head.map((cell) => make("th", { scope: "col" }, cell)),
        ),
      ),
      make(
        "tbody",
        {},
        rows.map((cells) =>
          make(
            "tr",
            {},
            cells.map((cell, i) => (i === 0 ? make("th", { scope: "row" }, cell) : make("td", {}, cell))),
          ),
        ),
      ),
    ),
  );
}

/** Formats a number: "98.47 %" for a fraction, the given decimals or four digits otherwise; "-" for null. */
export function shown(value, share = false, decimals = null) {
  if (value === null || value === undefined) return "-";
  if (share) return `${(100 * value).toFixed(decimals ?? 2)} %`;
  if (decimals !== null)
    return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

/** Formats a number with three digits, an SI prefix and the unit, if any: "1.25 G", "64 B". */
export function si(value, unit = "") {
  const prefixes = ["", "k", "M", "G", "T", "P", "E"];
  let power = 0;
  while (value >= 999.5 && power < prefixes.length - 1) ((value /= 1000), ++power);
  return `${power === 0 ? Number(value.toPrecision(3)) : value.toPrecision(3)} ${prefixes[power]}${unit}`.trim();
}

/** Formats an energy given in picojoules. */
export function joules(pj) {
  const units = ["pJ", "nJ", "µJ", "mJ", "J"];
  let power = 0;
  while (pj >= 999.5 && power < units.length - 1) ((pj /= 1000), ++power);
  return `${pj === 0 ? "0" : pj.toPrecision(3)} ${units[power]}`;
}
