// Curves over epochs, drawn as SVG; the pointer or the arrow keys show the values.

/** Returns the attributes of an arm's line. */
function lineStyle(arm) {
  const {colour, dashes} = report.styles[arm];
  return {stroke: `var(--s${colour})`, "stroke-dasharray": dashes};
}

/** Creates an arm's marker, which distinguishes the arm even without colour. */
function markerAt(arm, x, y) {
  const {stroke} = lineStyle(arm);
  return makeSvg("path", {class: "marker", transform: `translate(${x} ${y})`, d: report.styles[arm].marker, stroke,
    style: `fill: ${stroke}; stroke-width: 1.5`});
}

/** Returns the points of a curve from a list with a value for each epoch. */
const byEpoch = (values) => values.map((value, i) => [i + 1, value]);

/** Returns the lines of a curve: each arm's mean, and thin lines for its runs, if several, and for logged steps. */
function linesOf(curve, hidden) {
  const lines = [];
  curve.arms.forEach((arm, i) => {
    if (hidden.has(i)) return;
    report.runs.filter((run) => run.arm === i && run.steps && run.steps[curve.key]).forEach((run) =>
      lines.push({arm: i, thin: true, points: run.steps.epoch.map((at, j) => [at, run.steps[curve.key][j]])}));
    if (arm.runs.length > 1) arm.runs.forEach((run) => lines.push({arm: i, thin: true, points: byEpoch(run)}));
    lines.push({arm: i, thin: false, points: byEpoch(arm.mean)});
  });
  return lines;
}

class Chart {
  constructor(curve) {
    this.curve = curve;
    this.hidden = new Set();
    this.epochs = Math.max(...curve.arms.map((arm) => arm.mean.length));
    this.svg = makeSvg("svg", {class: "chart", tabindex: 0, role: "application",
      "aria-label": `${curve.title} by epoch; arrow keys show the values`,
      onpointermove: (event) => this.point(event), onpointerdown: (event) => this.point(event),
      onpointerleave: () => this.show(null), onblur: () => this.show(null), onkeydown: (event) => this.key(event)});
    this.tip = make("div", {class: "tip", hidden: "", "aria-live": "polite"});
    this.element = make("figure", {"data-key": curve.key}, make("h3", {}, curve.title), this.svg, this.tip, this.values());
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  /** Creates the table of all epochs' means, filled when it is opened. */
  values() {
    const details = make("details", {}, make("summary", {}, "Values"));
    details.addEventListener("toggle", () => {
      if (details.childElementCount > 1) return;
      const epochs = Array.from({length: this.epochs}, (_, i) => i);
      details.append(table(["epoch", ...report.arms.map((one) => one.arm)], epochs.map((epoch) =>
        [String(epoch + 1), ...this.curve.arms.map((arm) => shown(arm.mean[epoch], this.curve.share))])));
    });
    return details;
  }

  draw() {
    const width = this.svg.clientWidth || 420, height = this.svg.clientHeight || 250;
    const [left, right, top, bottom] = [68, 20, 12, 36];
    const lines = linesOf(this.curve, this.hidden);
    const ys = lines.flatMap((line) => line.points.map((point) => point[1])).filter((y) => y !== null);
    let low = Math.min(...ys), high = Math.max(...ys);
    if (ys.length === 0) low = 0, high = 1;
    if (low === high) low -= Math.abs(low) / 20 || 0.5, high += Math.abs(high) / 20 || 0.5;
    const xs = lines.flatMap((line) => line.points.map((point) => point[0]));
    const first = Math.min(1, ...xs), last = Math.max(this.epochs, first + 1, ...xs);  // includes the steps of an unfinished epoch
    this.x = (a) => left + (width - left - right) * (a - first) / (last - first);
    this.y = (b) => height - bottom - (height - top - bottom) * (b - low) / (high - low);
    const grid = ticks(low, high, 4).map((value) => [
      makeSvg("line", {class: "grid", x1: left, x2: width - right, y1: this.y(value), y2: this.y(value)}),
      makeSvg("text", {x: left - 8, y: this.y(value) + 4, "text-anchor": "end"},
        this.curve.share ? `${Number((100 * value).toPrecision(4))} %` : shown(value))]);
    const epochs = ticks(first, last, Math.min(8, width / 60)).filter((value) => Number.isInteger(value));
    const below = epochs.map((value) =>
      makeSvg("text", {x: this.x(value), y: height - bottom + 18, "text-anchor": "middle"}, String(value)));
    this.over = makeSvg("g");
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(...grid.flat(), ...below,
      makeSvg("text", {x: width - right, y: height - 4, "text-anchor": "end"}, "epoch"),
      ...lines.map((line) =>
        makeSvg("path", {class: line.thin ? "thin" : "mean", d: pathOf(line.points, this.x, this.y), ...lineStyle(line.arm)})),
      ...lines.filter((line) => !line.thin).flatMap((line) => {
        const step = Math.ceil(line.points.length / 8);
        return line.points.filter((point, i) => point[1] !== null && i % step === Math.floor(step / 2))
          .map(([a, b]) => markerAt(line.arm, this.x(a), this.y(b)));
      }),
      this.over);
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    let best = 1;
    for (let epoch = 2; epoch <= this.epochs; ++epoch)
      if (Math.abs(box.left + this.x(epoch) - event.clientX) < Math.abs(box.left + this.x(best) - event.clientX)) best = epoch;
    this.show(best);
  }

  key(event) {
    const to = {ArrowLeft: (this.epoch ?? 2) - 1, ArrowRight: (this.epoch ?? 0) + 1, Home: 1, End: this.epochs}[event.key];
    if (event.key === "Escape") this.show(null);
    if (to === undefined) return;
    event.preventDefault();
    this.show(Math.min(Math.max(to, 1), this.epochs));
  }

  /** Shows the values of an epoch; null: hides them. */
  show(epoch) {
    this.epoch = epoch;
    this.tip.hidden = epoch === null;
    this.over.replaceChildren();
    if (epoch === null) return;
    const most = 14, x = this.x(epoch);
    const arms = this.curve.arms.map((arm, i) => ({...arm, i})).filter((arm) =>
      !this.hidden.has(arm.i) && (arm.mean[epoch - 1] ?? null) !== null);
    this.over.append(makeSvg("line", {class: "rule", x1: x, x2: x, y1: 12, y2: this.svg.clientHeight - 36}),
      ...arms.map((arm) => makeSvg("circle", {cx: x, cy: this.y(arm.mean[epoch - 1]), r: 4, fill: lineStyle(arm.i).stroke})));
    const spread = (arm) => (arm.sd[epoch - 1] === null ? "" :
      ` ± ${this.curve.share ? (100 * arm.sd[epoch - 1]).toFixed(2) : shown(arm.sd[epoch - 1])}`);
    this.tip.replaceChildren(make("strong", {}, `Epoch ${epoch}`),
      ...arms.slice(0, most).map((arm) => make("div", {}, swatch(arm.i),
        make("span", {}, report.arms[arm.i].arm), make("b", {}, shown(arm.mean[epoch - 1], this.curve.share) + spread(arm)))),
      arms.length > most ? `and ${arms.length - most} more` : "");
    const room = this.svg.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, x + 14 < room ? x + 14 : x - 14 - this.tip.offsetWidth)}px`;
    this.tip.style.top = `${this.svg.getBoundingClientRect().top - this.element.getBoundingClientRect().top + 8}px`;
  }
}
