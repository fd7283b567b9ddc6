// Train: a small Vision Transformer is trained on the bundled images, step by step.
import { Chart } from "./chart.js";
import { CostTable } from "./cost.js";
import { latest } from "./engine.js";
import { dataSets } from "./images.js";
import { Keeping } from "./keeping.js";
import { MapsView } from "./maps.js";
import { make } from "./make.js";
import { Session } from "./session.js";

/** The controls, with the index of their initial value. */
const sliders = [
  { key: "dim", name: "width", values: [16, 32, 48, 64, 96], start: 1 },
  { key: "depth", name: "depth", values: [1, 2, 3, 4], start: 1 },
  { key: "heads", name: "heads", values: [1, 2, 4, 8], start: 2 },
  { key: "rate", name: "learning rate", values: [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2], start: 3 },
  { key: "batch", name: "batch", values: [8, 16, 32, 64], start: 2 },
];

/** Target duration of a request for several steps, in milliseconds, and its maximum number of steps: bounds of the
    display's delay. */
const patience = 120;
const mostSteps = 25;
/** Index of the test image whose maps are shown. */
const shownImage = 0;

const percent = (share) => `${Number((100 * share).toFixed(1))} %`;

export class TrainView {
  #engine;
  #library;
  #sets;
  #save;
  /** Promise of the session; null before training begins. @type {Promise<Session>|null} */
  #beginning = null;
  /** @type {Session|null} */
  #session = null;
  /** Identifies the current run; null if none is running. @type {object|null} */
  #running = null;
  #query = -1;

  /** `kept()` is called when the saved models change. */
  constructor(engine, library, sets, settings, save, kept) {
    this.#engine = engine;
    this.#library = library;
    this.#sets = sets;
    this.#save = save;
    this.chosen = Object.fromEntries(
      sliders.map(({ key, values, start }) => [
        key,
        values.includes(Number(settings[key])) ? Number(settings[key]) : values[start],
      ]),
    );
    this.seed = Number(settings.seed ?? 1);
    this.cost = new CostTable(engine);
    this.keeping = new Keeping(library, kept);
    this.loss = new Chart({ title: "Loss", x: "step" });
    this.accuracy = new Chart({ title: "Right answers", x: "step", format: percent, range: [0, 1] });
    this.maps = new MapsView(library.about, (query) => {
      this.#query = query === this.#query ? -1 : query;
      this.#look();
    });
    this.#look = latest(() => this.#lookNow());
    this.element = make("div", { class: "train" }, this.#controls(settings), this.#results(), this.#more());
    this.#changed();
  }

  #look = () => {};

  #controls(settings) {
    const names = Object.entries(dataSets).filter(([name]) => name in this.#sets);
    const options = names.map(([name, called]) => make("option", { value: name }, called));
    this.data = make("select", { onchange: () => this.#offer(this.mechanism.value) }, options);
    this.data.value = Object.hasOwn(this.#sets, settings.data) ? settings.data : names[0][0];
    this.mechanism = make("select", { onchange: () => this.#changed() });
    this.#options(settings.mechanism ?? "softmax");
    this.run = make("button", { class: "main", onclick: () => (this.#running ? this.pause() : this.start()) }, "Train");
    this.one = make("button", { onclick: () => this.step(1) }, "One step");
    this.again = make("button", { onclick: () => this.reset() }, "Reset");
    this.state = make("p", { class: "note state", "aria-live": "polite" });
    this.failed = make("p", { class: "failed", role: "alert" });
    return make(
      "div",
      { class: "controls" },
      make("label", { class: "field" }, make("span", {}, "Images"), this.data),
      make("label", { class: "field" }, make("span", {}, "Mechanism"), this.mechanism),
      ...sliders.map((one) => this.#slider(one)),
      make("div", { class: "bar" }, this.run, this.one, this.again),
      this.state,
      this.failed,
    );
  }

  /** Creates the parts below the controls, or below the curves on a phone. */
  #more() {
    this.command = make("code", { class: "command" });
    const details = make("details", {}, make("summary", {}, "As a command"), this.command);
    return make("div", { class: "more" }, this.cost.element, this.keeping.element, details);
  }

  #slider({ key, name, values }) {
    const output = make("output", {}, String(this.chosen[key]));
    const text = () => `${name} ${this.chosen[key]}`;
    const input = make("input", {
      type: "range",
      min: 0,
      max: values.length - 1,
      step: 1,
      value: values.indexOf(this.chosen[key]),
      name: key,
      "aria-valuetext": text(),
      oninput: () => {
        this.chosen[key] = values[Number(input.value)];
        output.textContent = String(this.chosen[key]);
        input.setAttribute("aria-valuetext", text());
        this.#changed();
      },
    });
    return make("label", { class: "slider" }, make("span", {}, name), input, output);
  }

  #results() {
    return make(
      "div",
      { class: "results" },
      make("div", { class: "charts" }, this.loss.element, this.accuracy.element),
      make(
        "section",
        { "aria-label": "Maps while it learns" },
        make("h2", {}, "Where it looks while it learns"),
        make(
          "p",
          { class: "note" },
          "Maps of the first test image. An untrained model attends to all patches alike; after a few hundred steps it does not. Click a patch of a map, or use the arrow keys, to see its attention to each patch.",
        ),
        this.maps.element,
      ),
    );
  }

  #options(name) {
    this.mechanism.replaceChildren(...this.#library.options(this.data.value, { own: false, accuracy: false }));
    this.mechanism.value = name;
    if (this.mechanism.selectedIndex < 0) this.mechanism.selectedIndex = 0;
  }

  #offer(name) {
    this.#options(name);
    this.#changed();
  }

  /** Returns the plan {config, sets}, as for `heed train`. */
  plan() {
    const { config, sets } = this.#library.plan(this.data.value, this.mechanism.value);
    const { dim, depth, heads, rate, batch } = this.chosen;
    const model = [`model.dim=${dim}`, `model.hidden=${2 * dim}`, `model.depth=${depth}`, `model.heads=${heads}`];
    const optim = [`optim.lr=${rate}`, "optim.schedule=constant", "optim.warmup_steps=10"];
    const train = [`train.batch=${batch}`, "train.microbatch=8", "train.epochs=100000", `train.seed=${this.seed}`];
    return { config, sets: [...sets, ...model, ...optim, ...train, "data.validation=0", "data.limit=0"] };
  }

  /** Handles a new selection: shows its cost, and discards the session, whose model is a different one. */
  #changed() {
    this.reset();
    const plan = this.plan();
    this.cost.show(plan);
    const data = `data.path=images/${this.data.value}`;
    const words = [
      "heed train",
      plan.config.slice(1),
      "--run my-run",
      ...[...plan.sets, data].map((set) => `--set ${set}`),
    ];
    this.command.textContent = words.join(" ");
    const seed = this.seed === 1 ? null : this.seed;
    this.#save({ data: this.data.value, mechanism: this.mechanism.value, ...this.chosen, seed });
  }

  reset() {
    this.pause();
    this.#beginning?.then(
      (session) => session.close(),
      () => {},
    );
    this.#beginning = this.#session = null;
    this.keeping.of(null);
    this.#draw();
    this.maps.clear();
    this.state.textContent = "Not started.";
    this.failed.textContent = "";
  }

  /** Called before the view is replaced, when the address changes. */
  leave() {
    this.reset();
  }

  pause() {
    this.#running = null;
    this.#buttons();
  }

  #buttons() {
    this.run.textContent = this.#running ? "Pause" : "Train";
    this.one.disabled = this.#running !== null;
  }

  /** Trains until paused, then evaluates on the test images. A request has as many steps as fit into `patience`. */
  async start() {
    const running = (this.#running = {});
    this.#buttons();
    let count = 1;
    while (this.#running === running) {
      const before = performance.now();
      await this.step(count);
      const share = Math.min(2, patience / Math.max(1, performance.now() - before));
      count = Math.max(1, Math.min(mostSteps, Math.round(count * share)));
    }
    if (this.#session) await this.#go((session) => session.test());
  }

  step(count) {
    return this.#go((session) => session.step(count, this.chosen.batch));
  }

  /** Calls `use` with the session, started if necessary, and shows the results, unless another
      session has been started meanwhile. @param {(session: Session) => Promise<void>} use */
  async #go(use) {
    this.#beginning ??= Session.begin(this.#engine, this.plan(), this.#sets[this.data.value]);
    const beginning = this.#beginning;
    const gone = () => beginning !== this.#beginning;
    try {
      const session = await beginning;
      if (gone()) return;
      this.keeping.of((this.#session = session));
      await use(session);
      if (gone()) return;
      this.#draw();
      this.#look();
    } catch (error) {
      if (gone()) return;
      this.pause();
      this.failed.textContent = error.message;
    }
  }

  #draw() {
    const { steps, tests, rate } = this.#session ?? { steps: [], tests: [], rate: 0 };
    const draw = (chart, key) =>
      chart.set([
        { name: "training, smoothed", series: 0, points: thinned(smoothed(steps.map((step) => step[key]))) },
        { name: "test", series: 1, points: tests.map((test) => [test.step, test[key]]), dots: true },
      ]);
    draw(this.loss, "loss");
    draw(this.accuracy, "accuracy");
    const last = steps.at(-1);
    const test = tests.at(-1);
    if (!last) return;
    const answers = `${percent(test.accuracy)} of ${test.images} test images correct after step ${test.step}`;
    const speed = `${Math.round(rate).toLocaleString("en")} images/s in this browser`;
    this.state.textContent = `Step ${last.step}, epoch ${last.epoch}: loss ${last.loss.toFixed(3)}; ${answers}. ${speed}.`;
  }

  async #lookNow() {
    const session = this.#session;
    if (!session) return;
    try {
      const look = await session.look(shownImage);
      const view = { name: "map", query: this.#query, identity: true };
      if (session === this.#session) this.maps.show(session.model, look, view);
    } catch (error) {
      if (session === this.#session) this.failed.textContent = error.message;
    }
  }
}

/** Returns [step, mean] for each step: running means m = 0.9 m + 0.1 x, corrected for the initial m = 0. */
function smoothed(values) {
  let mean = 0;
  return values.map((value, i) => {
    mean = 0.9 * mean + 0.1 * value;
    return [i + 1, mean / (1 - 0.9 ** (i + 1))];
  });
}

/** Returns at most 400 of the points, including the last; more could not be distinguished. */
function thinned(points) {
  const every = Math.ceil(points.length / 400);
  return points.filter((_, i) => (points.length - 1 - i) % every === 0);
}
