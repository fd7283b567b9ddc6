// One model's results for an image: probabilities, and pictures of its attention.
import { latest } from "./engine.js";
import { MapsView } from "./maps.js";
import { make } from "./make.js";

export class Answer {
  #engine;
  #library;
  #data = "";

  /** `changed(name)` is called when another model is selected, `choose(query)` when a patch is selected, and
      `looked()` after each result. */
  constructor(engine, library, { title, changed, choose, looked }) {
    this.#engine = engine;
    this.#library = library;
    this.looked = looked;
    /** The current content: {name, picture, model, look}, or null. */
    this.answered = null;
    this.select = make("select", {
      onchange: () => {
        this.missing.textContent = "";
        changed(this.select.value);
      },
      "aria-label": title,
    });
    this.summary = make("p", { class: "note summary" });
    this.missing = make("p", { class: "note", role: "status" });
    this.bars = make("ol", { class: "bars", "aria-label": `${title}: probabilities` });
    this.maps = new MapsView(library.about, choose);
    this.failed = make("p", { class: "failed", role: "alert" });
    this.element = make(
      "section",
      { class: "answer", "aria-label": title },
      make("label", { class: "field" }, make("span", {}, title), this.select),
      this.missing,
      this.summary,
      this.failed,
      this.bars,
      this.maps.element,
    );
    this.show = latest((picture, view) => this.#show(picture, view));
  }

  /** Lists the models of a data set and selects the model `name`; if there is none, selects the first, with a note. */
  offer(data, name) {
    this.#data = data;
    this.select.replaceChildren(...this.#library.options(data));
    this.select.value = name;
    const missing = this.select.selectedIndex < 0;
    if (missing) this.select.selectedIndex = 0;
    this.missing.textContent = missing
      ? `There is no model “${name}” here; ${this.select.value} is shown instead.`
      : "";
  }

  async #show(picture, view) {
    this.failed.textContent = "";
    if (picture === null) return this.#nothing();
    try {
      const name = this.select.value;
      const model = await this.#library.model(this.#data, name);
      const look = await this.#engine.ask(
        "look",
        { model: model.model, channels: picture.channels, height: picture.height, width: picture.width },
        picture.bytes,
      );
      this.answered = { name, picture, model, look };
      const [mechanism] = model.mechanism;
      this.summary.textContent = `${this.#library.summary(mechanism)}; ${model.parameters.toLocaleString("en")} weights`;
      this.#probabilities(model.classes, look.probabilities);
      this.draw(view);
      this.looked();
    } catch (error) {
      this.failed.textContent = error.message;
      this.#nothing();
    }
  }

  #nothing() {
    this.answered = null;
    this.bars.replaceChildren();
    this.maps.clear();
    this.looked();
  }

  /** Redraws the pictures, after a change of the query or the kind of pictures. */
  draw(view) {
    if (this.answered) this.maps.show(this.answered.model, this.answered.look, view);
  }

  #probabilities(classes, shares) {
    const best = shares.indexOf(Math.max(...shares));
    if (this.bars.childElementCount !== classes.length)
      this.bars.replaceChildren(
        ...classes.map(() =>
          make("li", {}, make("span", { class: "class" }), make("span", { class: "bar" }, make("i")), make("b")),
        ),
      );
    classes.forEach((name, i) => {
      const row = this.bars.children[i];
      row.classList.toggle("best", i === best);
      row.querySelector(".class").textContent = name;
      row.querySelector("i").style.width = `${100 * shares[i]}%`;
      row.querySelector("b").textContent = `${(100 * shares[i]).toFixed(1)} %`;
      row.dataset.probability = String(shares[i]);
    });
  }
}
