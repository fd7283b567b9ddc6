// Functions for charts, for this page and `heed report`.

/** Returns about `count` round numbers from low to high. */
export function ticks(low, high, count) {
  const rough = (high - low) / count,
    power = 10 ** Math.floor(Math.log10(rough)),
    share = rough / power;
  const step = power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
  const list = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; ++n) list.push(n * step);
  return list;
}

/** Returns an SVG path such as "M1 2L3 4" through points [x, y], interrupted at null y. A point between gaps is
    drawn as a dash of three pixels. */
export function pathOf(points, x, y) {
  let pen = "M",
    path = "";
  points.forEach(([a, b], i) => {
    const alone = pen === "M" && (points[i + 1]?.[1] ?? null) === null;
    if (b !== null) path += `${pen}${(x(a) - (alone ? 1.5 : 0)).toFixed(1)} ${y(b).toFixed(1)}${alone ? "h3" : ""}`;
    pen = b === null ? "M" : "L";
  });
  return path;
}

/** Returns the colours of a scale as [red, green, blue]. */
export function rgbOf(colours) {
  return colours.map((colour) => [0, 2, 4].map((at) => parseInt(colour.slice(at, at + 2), 16)));
}
