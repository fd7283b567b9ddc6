// A line chart as SVG; the pointer or the arrow keys show the values.
import { make, makeSvg, shown } from "./make.js";
import { pathOf, ticks } from "./plot.js";

/** Margins around the lines. */
const margin = { left: 52, right: 20, top: 12, bottom: 34 };

/** A named line: points [x, y] from left to right; a null y interrupts it. `series` selects its colour.
    @typedef {{name: string, series: number, points: (number|null)[][], dashed?: boolean, dots?: boolean}} Line */

export class Chart {
  /** @type {Line[]} */
  #lines = [];
  #at = null;

  /** `x` is the title of the x axis; `format` and `formatX` format a value. */
  constructor({ title, x, format = shown, formatX = shown, range = null }) {
    this.x = x;
    this.format = format;
    this.formatX = formatX;
    /** @type {number[]|null} lowest and highest y; null: the lowest and highest of the values */
    this.range = range;
    this.svg = makeSvg("svg", {
      class: "chart",
      tabindex: 0,
      role: "application",
      "aria-label": `${title}; arrow keys show the values`,
      onpointermove: (event) => this.#point(event),
      onpointerdown: (event) => this.#point(event),
      onpointerleave: () => this.#show(null),
      onblur: () => this.#show(null),
      onkeydown: (event) => this.#key(event),
    });
    this.values = make("p", { class: "values", "aria-live": "polite" });
    this.legend = make("div", { class: "legend" });
    this.element = make("figure", {}, make("h2", {}, title), this.legend, this.svg, this.values);
    new ResizeObserver(() => this.#draw()).observe(this.svg);
  }

  /** @param {Line[]} lines */
  set(lines) {
    this.#lines = lines;
    this.legend.replaceChildren(
      ...lines.map((line) =>
        make(
          "span",
          {},
          makeSvg(
            "svg",
            { width: 22, height: 8, "aria-hidden": "true" },
            makeSvg("line", { x1: 0, x2: 22, y1: 4, y2: 4, ...lineLook(line) }),
          ),
          line.name,
        ),
      ),
    );
    this.#draw();
  }

  #draw() {
    const width = this.svg.clientWidth || 400,
      height = this.svg.clientHeight || 210;
    const points = this.#lines
      .flatMap((line) => line.points)
      .filter((point) => point[1] !== null && Number.isFinite(point[1]));
    const xs = points.map((point) => point[0]),
      ys = points.map((point) => point[1]);
    const span = (values, otherwise) => (values.length > 0 ? [Math.min(...values), Math.max(...values)] : otherwise);
    const [first, end] = span(xs, [0, 1]),
      last = end === first ? first + 1 : end;
    let [low, high] = this.range ?? span(ys, [0, 1]);
    if (low === high) [low, high] = [low - (Math.abs(low) / 20 || 0.5), high + (Math.abs(high) / 20 || 0.5)];
    this.placeX = (a) => margin.left + ((width - margin.left - margin.right) * (a - first)) / (last - first);
    this.placeY = (b) => height - margin.bottom - ((height - margin.top - margin.bottom) * (b - low)) / (high - low);
    const across = ticks(low, high, 4).map((value) => [
      makeSvg("line", {
        class: "grid",
        x1: margin.left,
        x2: width - margin.right,
        y1: this.placeY(value),
        y2: this.placeY(value),
      }),
      makeSvg(
        "text",
        { x: margin.left - 8, y: this.placeY(value) + 4, "text-anchor": "end" },
        this.format(Number(value.toPrecision(6))),
      ),
    ]);
    const marks = ticks(first, last, Math.min(6, width / 70)),
      whole = xs.every(Number.isInteger);
    const below = marks
      .filter((value) => !whole || Number.isInteger(value))
      .map((value) =>
        makeSvg(
          "text",
          { x: this.placeX(value), y: height - margin.bottom + 17, "text-anchor": "middle" },
          this.formatX(Number(value.toPrecision(6))),
        ),
      );
    this.over = makeSvg("g");
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(
      ...across.flat(),
      ...below,
      makeSvg("text", { x: width - margin.right, y: height - 4, "text-anchor": "end" }, this.x),
      ...this.#lines.map((line) =>
        makeSvg("path", { class: "line", d: pathOf(line.points, this.placeX, this.placeY), ...lineLook(line) }),
      ),
      ...this.#lines
        .filter((line) => line.dots || line.points.length === 1)
        .flatMap((line) =>
          line.points
            .filter((point) => point[1] !== null)
            .map(([a, b]) =>
              makeSvg("circle", { cx: this.placeX(a), cy: this.placeY(b), r: 3.5, fill: lineLook(line).stroke }),
            ),
        ),
      this.over,
    );
    this.#show(this.#at);
  }

  #places() {
    return [...new Set(this.#lines.flatMap((line) => line.points.map((point) => point[0])))].sort((a, b) => a - b);
  }

  #point(event) {
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    const near = (best, place) => (Math.abs(this.placeX(place) - x) < Math.abs(this.placeX(best) - x) ? place : best);
    const places = this.#places();
    if (places.length > 0) this.#show(places.reduce(near));
  }

  #key(event) {
    const places = this.#places(),
      i = places.indexOf(this.#at);
    const to = { ArrowLeft: i < 0 ? places.length - 1 : i - 1, ArrowRight: i + 1, Home: 0, End: places.length - 1 }[
      event.key
    ];
    if (event.key === "Escape") this.#show(null);
    if (to === undefined || places.length === 0) return;
    event.preventDefault();
    this.#show(places[Math.min(Math.max(to, 0), places.length - 1)]);
  }

  #show(at) {
    this.#at = at;
    this.over?.replaceChildren();
    this.values.textContent = "";
    if (at === null || !this.over) return;
    const here = this.#lines
      .map((line) => ({ line, value: line.points.find((point) => point[0] === at)?.[1] ?? null }))
      .filter(({ value }) => value !== null);
    this.over.append(
      makeSvg("line", {
        class: "rule",
        x1: this.placeX(at),
        x2: this.placeX(at),
        y1: margin.top,
        y2: this.svg.clientHeight - margin.bottom,
      }),
      ...here.map(({ line, value }) =>
        makeSvg("circle", { cx: this.placeX(at), cy: this.placeY(value), r: 4, fill: lineLook(line).stroke }),
      ),
    );
    this.values.textContent = `${this.x} ${this.formatX(at)}: ${here.map(({ line, value }) => `${line.name} ${this.format(value)}`).join(", ")}`;
  }
}

function lineLook(line) {
  return { stroke: `var(--s${line.series})`, "stroke-dasharray": line.dashed ? "5 4" : "none" };
}
