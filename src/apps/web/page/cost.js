// Cost of a model: operation counts as in `heed cost`, and energies by the built-in energy table.
import { latest } from "./engine.js";
import { joules, make, si, table } from "./make.js";

/** Kinds of operations, by the engine's names. */
const kinds = {
  mul: "multiplications",
  add: "additions",
  exp: "exponentials",
  div: "divisions",
  sqrt: "square roots",
  erf: "error functions",
  cmp: "comparisons",
};

export class CostTable {
  #engine;

  constructor(engine) {
    this.#engine = engine;
    this.pass = make(
      "select",
      { onchange: () => this.show(this.last) },
      make("option", { value: "forward" }, "inference, per image"),
      make("option", { value: "step" }, "training, per image"),
    );
    this.place = make("div");
    this.failed = make("p", { class: "failed", role: "alert" });
    this.element = make(
      "section",
      { class: "cost", "aria-label": "Cost" },
      make("h2", {}, "What it costs"),
      make("label", { class: "field" }, make("span", {}, "Counted"), this.pass),
      this.failed,
      this.place,
      make(
        "p",
        { class: "note" },
        "Counts follow the textbook algorithm, and tests compare each with an instrumented run. Energies are for arithmetic alone, from a published table for 45 nm; they are not measured.",
      ),
    );
    this.show = latest((plan) => this.#show(plan));
  }

  /** `plan` is the argument of the engine's request: {config, sets}. */
  async #show(plan) {
    this.last = plan;
    this.failed.textContent = "";
    try {
      const cost = await this.#engine.ask("cost", { ...plan, convention: "all", pass: this.pass.value });
      const { total } = cost;
      const rows = Object.entries(total)
        .filter(([kind, count]) => count > 0 && !["energy_pj", "bytes", "params", "memory_pj"].includes(kind))
        .map(([kind, count]) => [kinds[kind] ?? kind, si(count)]);
      const order = Object.values(kinds);
      rows.sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
      this.place.replaceChildren(
        table(
          ["", "per image"],
          [
            ["weights", cost.params.toLocaleString("en")],
            ...rows,
            ["exponentials in attention, forward", si(cost.attention_exp)],
            ["energy", joules(total.energy_pj)],
          ],
          { class: "facts" },
        ),
        make(
          "details",
          {},
          make("summary", {}, "By layer"),
          table(
            ["layer", "mul", "add", "exp", "energy"],
            cost.layers.map((layer) => [
              layer.name,
              si(layer.mul),
              si(layer.add),
              si(layer.exp),
              joules(layer.energy_pj),
            ]),
          ),
        ),
      );
      this.cost = cost;
    } catch (error) {
      this.failed.textContent = error.message;
    }
  }
}
