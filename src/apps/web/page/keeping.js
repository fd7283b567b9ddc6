// Controls to save trained models.
import { dataSets } from "./images.js";
import { download, drop, keep, tar } from "./keep.js";
import { make } from "./make.js";

export class Keeping {
  #library;
  #changed;
  #session = null;

  /** `changed()` is called when the saved models change. */
  constructor(library, changed) {
    this.#library = library;
    this.#changed = changed;
    this.name = make("input", { type: "text", value: "my model", maxlength: 60, "aria-label": "Name of the model" });
    this.said = make("p", { class: "note", "aria-live": "polite" });
    this.mine = make("ul", { class: "mine" });
    const button = (name, act) =>
      make("button", { onclick: () => act().catch((error) => (this.said.textContent = error.message)) }, name);
    this.buttons = make(
      "fieldset",
      {},
      make("legend", {}, "Keep it"),
      make(
        "div",
        { class: "bar" },
        this.name,
        button("Keep in this browser", () => this.keep()),
      ),
      make(
        "div",
        { class: "bar" },
        button("Save .safetensors", () => this.saveWeights()),
        button("Save run (.tar)", () => this.saveRun()),
        button("Save curves (.csv)", () => this.saveCurves()),
      ),
      make(
        "p",
        { class: "note" },
        "Models kept in this browser are listed under Look, even after a reload. ",
        make("code", {}, "heed eval DIRECTORY"),
        " evaluates the unpacked run, ",
        make("code", {}, "heed eval RUN --weights FILE"),
        " the saved weights in the model of another run.",
      ),
    );
    this.element = make("div", {}, this.buttons, this.said, this.mine);
    this.of(null);
    this.#list();
  }

  /** Sets the session whose model can be saved; null: none. */
  of(session) {
    this.#session = session;
    this.buttons.disabled = session === null;
  }

  async saveWeights() {
    download("heed.safetensors", await this.#session.weights());
  }

  async saveCurves() {
    download("metrics.csv", this.#session.metrics(), "text/csv");
  }

  /** Downloads a run directory for `heed eval`. */
  async saveRun() {
    const { model } = this.#session;
    const directory = `heed-${model.mechanism[0]}`;
    const files = [
      [`${directory}/config.toml`, new TextEncoder().encode(model.config)],
      [`${directory}/best.safetensors`, await this.#session.weights()],
    ];
    download(`${directory}.tar`, tar(files), "application/x-tar");
  }

  async keep() {
    const name = this.name.value.trim() || "my model";
    const { data, model, steps } = this.#session;
    const id = `${data}/${name}`;
    const kept = { id, name, data, config: model.config, weights: await this.#session.weights(), steps: steps.length };
    const stored = await keep(kept);
    await this.#library.forget(data, name);
    this.#library.own = [...this.#library.own.filter((one) => one.id !== id), kept];
    this.said.textContent = stored
      ? `“${name}” is kept in this browser.`
      : `“${name}” is kept until the page is closed: this browser cannot store it.`;
    this.#list();
    this.#changed();
  }

  #list() {
    this.mine.replaceChildren(
      ...this.#library.own.map((one) =>
        make(
          "li",
          {},
          `${one.name} (${dataSets[one.data]}, ${one.steps} steps) `,
          make("button", { "aria-label": `Remove ${one.name}`, onclick: () => this.#remove(one) }, "Remove"),
        ),
      ),
    );
  }

  async #remove(one) {
    await drop(one.id);
    await this.#library.forget(one.data, one.name);
    this.#library.own = this.#library.own.filter((other) => other !== one);
    this.#list();
    this.#changed();
  }
}
