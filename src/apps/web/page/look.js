// Look: an image, a model's prediction, and its attention.
import { whole } from "./address.js";
import { Answer } from "./answer.js";
import { ImageChoice } from "./choice.js";
import { make } from "./make.js";

export class LookView {
  #engine;
  #library;
  #save;
  #pictures = "";

  /** `settings` are those of the address; `save(settings)` stores them there. */
  constructor(engine, library, sets, settings, save) {
    this.#engine = engine;
    this.#library = library;
    this.#save = save;
    const data = Object.hasOwn(sets, settings.data) ? settings.data : Object.keys(sets)[0];
    this.view = { name: settings.picture ?? "map", identity: settings.identity !== "no" };
    this.choice = new ImageChoice(sets, {
      data,
      image: whole(settings.image, 1, sets[data].tested, 1) - 1,
      query: whole(settings.patch, 1, 49, 0) - 1,
      turned: settings.inverted === "yes",
      told: () => this.#told(),
    });
    this.left = this.#answer("Model");
    this.right = this.#answer("Compared with");
    this.#offer(settings.left ?? "softmax", settings.right ?? "sima");
    this.element = make("div", { class: "look" }, this.choice.element, this.#modelSide(settings.right !== undefined));
    this.#ask();
  }

  #answer(title) {
    return new Answer(this.#engine, this.#library, {
      title,
      changed: () => this.#ask(),
      choose: (query) => this.choice.choosePatch(query),
      looked: () => this.#looked(),
    });
  }

  #modelSide(comparing) {
    this.picture = make("select", { onchange: () => this.#changeView({ name: this.picture.value }) });
    this.identity = make("input", {
      type: "checkbox",
      onchange: () => this.#changeView({ identity: this.identity.checked }),
    });
    this.identity.checked = this.view.identity;
    this.withIdentity = make("label", { class: "check" }, this.identity, "with the identity");
    this.compare = make("input", { type: "checkbox", onchange: () => this.#compare() });
    this.compare.checked = comparing;
    this.right.element.hidden = !comparing;
    return make(
      "div",
      { class: "model-side" },
      make(
        "div",
        { class: "bar wider" },
        make("label", { class: "field" }, make("span", {}, "Show"), this.picture),
        make("label", { class: "check" }, this.compare, "compare two mechanisms"),
        this.withIdentity,
      ),
      make("div", { class: "answers" }, this.left.element, this.right.element),
    );
  }

  get #sides() {
    return this.compare.checked ? [this.left, this.right] : [this.left];
  }

  #offer(left, right) {
    this.left.offer(this.choice.data, left);
    this.right.offer(this.choice.data, right);
    this.offered = this.choice.data;
  }

  /** Updates the lists of models and the results of the selected ones. */
  renew() {
    this.#offer(this.left.select.value, this.right.select.value);
    this.#ask();
  }

  /** Opens an image file. */
  open(file) {
    this.choice.open(file);
  }

  /** Handles a new image or patch: only a new image is sent to the models. */
  #told() {
    if (!this.element) return;
    if (this.offered !== this.choice.data) this.#offer(this.left.select.value, this.right.select.value);
    if (this.asked === this.choice.picture) return this.#draw();
    this.#ask();
  }

  #ask() {
    this.asked = this.choice.picture;
    for (const side of this.#sides) side.show(this.asked, this.#seen);
    this.#saved();
  }

  /** Returns the selected view and patch. */
  get #seen() {
    return { ...this.view, query: this.choice.query };
  }

  #draw() {
    for (const side of this.#sides) side.draw(this.#seen);
    const [first, ...others] = this.#sides.map((side) => side.answered).filter((one) => one);
    const same = others.filter((one) => one.picture === first.picture);
    if (first) this.choice.show([first, ...same], this.view.name);
    else if (!this.choice.picture) this.choice.showNone("Draw something, or choose an image.");
    else if (this.left.failed.textContent) this.choice.showNone("No answer.");
    this.#saved();
  }

  #compare() {
    this.right.element.hidden = !this.compare.checked;
    this.#ask();
  }

  #changeView(changes) {
    Object.assign(this.view, changes);
    this.#draw();
  }

  /** Lists the kinds of pictures that the models have for the image, and redraws. */
  #looked() {
    const pictures = this.#sides.flatMap((side) => side.answered?.look.blocks.flatMap((block) => block.pictures) ?? []);
    const names = [...new Set(["map", ...pictures.map((picture) => picture.name)])];
    if (names.join() !== this.#pictures) {
      this.picture.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
      this.#pictures = names.join();
    }
    if (!names.includes(this.view.name)) this.#changeView({ name: "map" });
    this.picture.value = this.view.name;
    this.withIdentity.hidden = !pictures.some((picture) => picture.identity);
    this.#draw();
  }

  #saved() {
    const { data, image, query } = this.choice;
    this.#save({
      data,
      left: this.left.select.value,
      right: this.compare.checked ? this.right.select.value : null,
      image: image === null ? null : image + 1,
      patch: query < 0 ? null : query + 1,
      inverted: image !== null && this.choice.turn.checked ? "yes" : null,
      picture: this.view.name === "map" ? null : this.view.name,
      identity: this.view.identity ? null : "no",
    });
  }
}
