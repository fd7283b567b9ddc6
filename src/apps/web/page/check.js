// Check: hand-written gradients compared with finite differences, for one element or for all.
import { Chart } from "./chart.js";
import { latest } from "./engine.js";
import { make, table } from "./make.js";

export class CheckView {
  #engine;
  #save;
  #cases = [];

  constructor(engine, library, settings, save) {
    this.#engine = engine;
    this.#save = save;
    this.wanted = {
      case: Number(settings.case ?? 1) - 1,
      tensor: settings.tensor,
      element: Number(settings.element ?? 0),
    };
    this.mechanism = make(
      "select",
      { onchange: () => this.#choose() },
      library.about.mechanisms.map(({ name }) => make("option", { value: name }, name)),
    );
    this.mechanism.value = settings.mechanism ?? "softmax";
    if (this.mechanism.selectedIndex < 0) this.mechanism.selectedIndex = 0;
    this.setting = make("select", { onchange: () => this.#chooseCase() });
    this.tensor = make("select", { onchange: () => this.#chooseTensor() });
    this.element_ = make("input", { type: "range", min: 0, value: 0, oninput: () => this.#show() });
    this.which = make("output");
    this.change = make("input", {
      type: "range",
      min: -1,
      max: 1,
      step: 0.01,
      value: settings.change ?? 0,
      oninput: () => this.#show(),
    });
    this.changed = make("output");
    this.failed = make("p", { class: "failed", role: "alert" });
    this.numbers = make("div", { "aria-live": "polite" });
    this.note = make("p", { class: "note" });
    this.chart = new Chart({ title: "Around the element", x: "element" });
    this.all = make("button", { onclick: () => this.checkAll() }, "Check every element");
    this.rows = make("div", { "aria-live": "polite" });
    this.surrogates = new Chart({
      title: "Derivatives of -|w - x| (sign), and the surrogates in adder layers",
      x: "u = w - x",
    });
    this.#show = latest(() => this.#showNow());
    this.element = make(
      "div",
      { class: "check-view" },
      this.#controls(),
      make(
        "div",
        { class: "results" },
        this.chart.element,
        this.numbers,
        this.note,
        make("div", { class: "bar" }, this.all),
        this.rows,
        this.#adder(),
      ),
    );
    this.#choose();
    this.#drawSurrogates();
  }

  #show = () => {};

  #controls() {
    const field = (name, control) => make("label", { class: "field" }, make("span", {}, name), control);
    return make(
      "div",
      { class: "controls" },
      make(
        "p",
        {},
        "Every mechanism has a forward and a backward pass, both written by hand. For one element of an input, the backward pass gives the derivative of a sum of the outputs with random weights. Finite differences of the forward pass must give the same derivative.",
      ),
      field("Mechanism", this.mechanism),
      field("Setting", this.setting),
      field("Tensor", this.tensor),
      make("label", { class: "slider" }, make("span", {}, "element"), this.element_, this.which),
      make("label", { class: "slider" }, make("span", {}, "move it by"), this.change, this.changed),
      this.failed,
    );
  }

  #adder() {
    return make(
      "section",
      { class: "adder", "aria-label": "Surrogate gradients of the adder" },
      this.surrogates.element,
      make(
        "p",
        { class: "note" },
        "An adder layer replaces each product x w by -|w - x|. With the exact derivative, the sign, it hardly learns. Its backward pass therefore uses the clamped difference (hardtanh) for x and the full difference for w. The curves are values of the layer's backward pass.",
      ),
    );
  }

  async #choose() {
    this.rows.replaceChildren();
    const mechanism = this.mechanism.value;
    try {
      const { cases } = await this.#engine.ask("cases", { mechanism });
      if (mechanism !== this.mechanism.value) return;
      this.#cases = cases;
      this.setting.replaceChildren(...this.#cases.map((one, i) => make("option", { value: i }, one.setting)));
      this.setting.value = String(Math.min(this.wanted.case, this.#cases.length - 1));
      this.#chooseCase();
    } catch (error) {
      this.failed.textContent = error.message;
    }
  }

  #chooseCase() {
    this.rows.replaceChildren();
    const before = this.tensor.value || this.wanted.tensor,
      { inputs } = this.#cases[Number(this.setting.value)];
    this.tensor.replaceChildren(
      ...inputs.map(({ name, shape }) => make("option", { value: name }, `${name} [${shape.join(", ")}]`)),
    );
    if (inputs.some(({ name }) => name === before)) this.tensor.value = before;
    this.#chooseTensor();
  }

  #chooseTensor() {
    const count = this.#input().shape.reduce((a, b) => a * b, 1);
    this.element_.max = String(count - 1);
    this.element_.value = String(Math.min(this.wanted.element, count - 1));
    this.wanted = { case: 0, tensor: undefined, element: 0 };
    this.#show();
  }

  #input() {
    return this.#cases[Number(this.setting.value)].inputs[this.tensor.selectedIndex];
  }

  /** Returns the indices of an element in its tensor, such as "head 1, token 3". */
  #place(element) {
    const { shape, axes } = this.#input();
    let rest = element;
    const places = shape.map((size, axis) => {
      const stride = shape.slice(axis + 1).reduce((a, b) => a * b, 1),
        at = Math.floor(rest / stride);
      rest %= stride;
      return size > 1 ? `${axes[axis] ?? "axis"} ${at + 1}` : "";
    });
    return places.filter((place) => place).join(", ");
  }

  async #showNow() {
    const element = Number(this.element_.value),
      change = Number(this.change.value),
      { surrogate } = this.#cases[Number(this.setting.value)];
    this.which.textContent = this.#place(element);
    this.element_.setAttribute("aria-valuetext", this.which.textContent);
    this.changed.textContent = change.toFixed(2);
    this.#save({
      mechanism: this.mechanism.value,
      case: Number(this.setting.value) + 1,
      tensor: this.tensor.value,
      element,
      change: change || null,
    });
    try {
      const found = await this.#engine.ask("element", {
        mechanism: this.mechanism.value,
        case: Number(this.setting.value),
        input: this.tensor.selectedIndex,
        element,
        change,
      });
      this.failed.textContent = "";
      const { x, analytic, numeric } = found,
        centre = (found.values.data.length - 1) / 2,
        value = found.values.data[centre];
      const points = [...found.offsets.data].map((offset, i) => [x + offset, found.values.data[i]]);
      // Returns the points of a line segment with this slope through the element's value.
      const along = (slope) =>
        points.filter((_, i) => Math.abs(i - centre) <= centre / 2).map(([a]) => [a, value + slope * (a - x)]);
      this.chart.set([
        { name: "weighted sum of the outputs", series: 0, points },
        { name: "slope by the backward pass", series: 1, points: along(analytic) },
        { name: "slope by finite differences", series: 2, points: along(numeric), dashed: true },
        { name: "here", series: 3, points: [[x, value]] },
      ]);
      const error = Math.abs(analytic - numeric) / Math.max(Math.abs(numeric), 1e-3);
      this.numbers.replaceChildren(
        table(
          ["", ""],
          [
            ["the element", x.toPrecision(8)],
            ["derivative by the backward pass", analytic.toPrecision(10)],
            ["derivative by finite differences", numeric.toPrecision(10)],
            ["relative difference", error.toExponential(1)],
            ["step of the finite differences", found.step.toExponential(2)],
          ],
          { class: "facts" },
        ),
      );
      this.note.textContent = surrogate
        ? `In this setting the backward pass is not meant to be the derivative: ${surrogate}.`
        : "";
    } catch (error) {
      this.failed.textContent = error.message;
    }
  }

  async checkAll() {
    const asked = { mechanism: this.mechanism.value, case: Number(this.setting.value) };
    const { surrogate } = this.#cases[asked.case];
    this.all.disabled = true;
    try {
      const { rows } = await this.#engine.ask("check", asked);
      if (asked.mechanism !== this.mechanism.value || asked.case !== Number(this.setting.value)) return;
      this.rows.replaceChildren(
        table(
          ["tensor", "elements", "largest relative error", ""],
          rows.map((row) => [
            row.tensor,
            String(row.elements),
            surrogate ? "-" : row.relative.toExponential(1),
            surrogate ? "not a derivative" : row.passed ? "agrees" : "DIFFERS",
          ]),
        ),
      );
    } catch (error) {
      this.failed.textContent = error.message;
    } finally {
      this.all.disabled = false;
    }
  }

  async #drawSurrogates() {
    const found = await this.#engine.ask("surrogates"),
      points = (name) => [...found.u.data].map((u, i) => [u, found[name].data[i]]);
    this.surrogates.set([
      { name: "for x: sign", series: 0, points: points("input_sign") },
      { name: "for x: hardtanh", series: 1, points: points("input_hardtanh") },
      { name: "for w: sign", series: 4, points: points("weight_sign") },
      { name: "for w: full", series: 3, points: points("weight_full") },
      { name: "for w: hardtanh", series: 2, points: points("weight_hardtanh"), dashed: true },
    ]);
  }
}
