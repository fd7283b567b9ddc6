// An image to look at, drawn, chosen or opened, and a patch of it.
import { dataSets, inverted, paintGrey, pictureOf } from "./images.js";
import { markOf, patchAt, patchByKey } from "./maps.js";
import { make, makeSvg } from "./make.js";
import { Pad } from "./pad.js";

/** Images of the gallery that are shown at a time. */
const galleryPage = 12;

export class ImageChoice {
  #sets;
  #told;

  /** Where somebody takes another image, set or patch, `told` is called. `image` is a number in the gallery. */
  constructor(sets, { data, image, query, told }) {
    this.#sets = sets;
    this.#told = told;
    this.data = data;
    this.image = image;
    this.query = query;
    this.side = 7;
    this.classes = [];
    this.from = Math.floor(image / galleryPage) * galleryPage;
    this.pad = new Pad((picture) => this.#take(picture, null));
    this.element = make("div", { class: "image-side" }, this.#kinds(), this.#sheets(), this.#gallery(), this.#files());
    this.#grid();
    this.#showGallery();
    this.original = this.picture = sets[data].test(image);
  }

  #kinds() {
    this.kinds = Object.entries(dataSets)
      .filter(([name]) => name in this.#sets)
      .map(([name, called]) => make("button", { "data-set": name, onclick: () => this.chooseSet(name) }, called));
    return make("div", { class: "segments", role: "group", "aria-label": "Kind of images" }, this.kinds);
  }

  #sheets() {
    this.seen = make("canvas", { width: 28, height: 28, class: "seen", role: "img" });
    this.marks = makeSvg("g");
    this.patches = makeSvg("svg", {
      tabindex: 0,
      role: "application",
      class: "patches",
      "aria-label": "Patches of the image: arrow keys choose one, Escape none",
      onclick: (event) => this.choosePatch(patchAt(event, this.side)),
      onkeydown: (event) => this.#patchKey(event),
    });
    this.none = make("button", { onclick: () => this.choosePatch(-1) }, "No patch");
    this.said = make("p", { class: "note", "aria-live": "polite" });
    const undo = make("button", { onclick: () => this.pad.undo() }, "Undo");
    const clear = make("button", { onclick: () => this.pad.clear() }, "Clear");
    const drawing = make("figure", {}, make("figcaption", {}, "Draw"), this.pad.element);
    const seeing = make("div", { class: "query" }, this.seen, this.patches);
    const looking = make("figure", {}, make("figcaption", {}, "What the model sees"), seeing);
    return make(
      "div",
      {},
      make("div", { class: "sheets" }, drawing, looking),
      make("div", { class: "bar apart" }, make("span", { class: "bar" }, undo, clear), this.none),
      this.said,
    );
  }

  #gallery() {
    this.gallery = make("div", { class: "thumbs", role: "group", "aria-label": "Bundled images" });
    return this.gallery;
  }

  #files() {
    const file = make("input", {
      type: "file",
      accept: "image/*",
      class: "visually-hidden",
      id: "file",
      onchange: () => file.files[0] && this.open(file.files[0]),
    });
    this.turn = make("input", { type: "checkbox", onchange: () => this.#turned() });
    return make(
      "div",
      {},
      make(
        "div",
        { class: "bar" },
        make("button", { onclick: () => this.#more(-1), "aria-label": "Earlier images" }, "‹"),
        make("button", { onclick: () => this.#more(1), "aria-label": "More images" }, "›"),
        file,
        make("label", { class: "button", for: "file" }, "Open an image…"),
      ),
      make("label", { class: "check" }, this.turn, "turn dark and bright round"),
      make("p", { class: "note" }, "Or drop an image file anywhere. It stays on this machine."),
    );
  }

  chooseSet(name) {
    this.data = name;
    this.from = 0;
    this.#showGallery();
    this.choose(0);
  }

  #showGallery() {
    for (const button of this.kinds) button.setAttribute("aria-pressed", String(button.dataset.set === this.data));
    const set = this.#sets[this.data];
    const buttons = Array.from({ length: Math.min(galleryPage, set.tested - this.from) }, (_, k) => {
      const i = this.from + k;
      const canvas = make("canvas", { width: set.width, height: set.height });
      paintGrey(canvas, set.test(i).bytes);
      return make(
        "button",
        { "data-image": i, "aria-pressed": String(i === this.image), onclick: () => this.choose(i) },
        canvas,
      );
    });
    this.gallery.replaceChildren(...buttons);
    this.#nameGallery();
  }

  #nameGallery() {
    for (const button of this.gallery.children) {
      const i = Number(button.dataset.image);
      button.setAttribute("aria-label", `Image ${i + 1}: ${this.#called(i)}`);
    }
  }

  /** What image i of the gallery shows. */
  #called(i) {
    const label = this.#sets[this.data].testLabel(i);
    return this.classes[label] ?? `class ${label}`;
  }

  #more(step) {
    const last = Math.floor((this.#sets[this.data].tested - 1) / galleryPage) * galleryPage;
    this.from = Math.min(Math.max(0, this.from + step * galleryPage), last);
    this.#showGallery();
  }

  /** Takes an image of the gallery. */
  choose(i) {
    this.pad.empty();
    this.#take(this.#sets[this.data].test(i), i);
  }

  /** Takes an image file. */
  async open(file) {
    try {
      this.#take(await pictureOf(file), null, file.name);
    } catch {
      this.said.textContent = `${file.name} is no image that this browser can read.`;
    }
  }

  #take(picture, image, file = "Your drawing") {
    this.original = picture;
    this.image = image;
    this.file = file;
    for (const button of this.gallery.children)
      button.setAttribute("aria-pressed", String(Number(button.dataset.image) === image));
    this.#turned();
  }

  #turned() {
    this.picture = this.turn.checked ? inverted(this.original) : this.original;
    this.#told();
  }

  choosePatch(query) {
    this.query = query;
    this.marks.replaceChildren(...(query < 0 ? [] : markOf(query, this.side)));
    this.#told();
  }

  #patchKey(event) {
    const to = patchByKey(event.key, this);
    if (to === null) return;
    event.preventDefault();
    if (to !== this.query) this.choosePatch(to);
  }

  #grid() {
    const line = (from) => makeSvg("line", from);
    const lines = Array.from({ length: this.side - 1 }, (_, i) => [
      line({ x1: 0, x2: this.side, y1: i + 1, y2: i + 1 }),
      line({ x1: i + 1, x2: i + 1, y1: 0, y2: this.side }),
    ]);
    this.patches.setAttribute("viewBox", `0 0 ${this.side} ${this.side}`);
    this.patches.replaceChildren(...lines.flat(), this.marks);
    this.marks.replaceChildren(...(this.query < 0 ? [] : markOf(this.query, this.side)));
  }

  /** Shows what a model was given, and says in words what it takes it for, and what the picture of a name shows of it. */
  show(model, { seen, probabilities }, name) {
    this.classes = model.classes;
    this.#nameGallery();
    if (this.side !== model.grid) {
      this.side = model.grid;
      this.#grid();
    }
    paintGrey(this.seen, seen.data);
    const of = this.image === null ? this.file : `Test image ${this.image + 1}: ${this.#called(this.image)}`;
    this.seen.setAttribute("aria-label", `${of}, as the model sees it`);
    const place = `row ${Math.floor(this.query / this.side) + 1}, column ${(this.query % this.side) + 1}`;
    const shown =
      this.query >= 0
        ? `what the patch in ${place} takes from each`
        : model.class_token
          ? "what the class token takes from each patch; click a patch to see what that takes"
          : "what all patches take from each, on average; click a patch to see what that takes";
    const best = Math.max(...probabilities);
    const taken = `Taken for ${model.classes[probabilities.indexOf(best)]} (${(100 * best).toFixed(1)} %)`;
    this.said.textContent = `${of}. ${taken}. Shown: ${name === "map" ? shown : name}.`;
    this.none.disabled = this.query < 0;
  }
}
