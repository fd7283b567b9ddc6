// Selection of an image, which is drawn, chosen or opened, and of a patch in it.
import { dataSets, inverted, isBright, paintGrey, pictureOf } from "./images.js";
import { markOf, patchAt, patchByKey } from "./maps.js";
import { make, makeSvg } from "./make.js";
import { Pad } from "./pad.js";

/** Number of gallery images shown at a time. */
const galleryPage = 12;

export class ImageChoice {
  #sets;
  #told;

  /** `told` is called when another image, set or patch is selected; `image` is an index in the gallery. The property
      `picture` is the selected image with its index or file name, or null if the drawing sheet is empty. */
  constructor(sets, { data, image, query, turned, told }) {
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
    this.turn.checked = turned;
    this.#grid();
    this.#showGallery();
    this.original = sets[data].test(image);
    this.picture = this.#named();
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
      onchange: () => {
        if (file.files[0]) this.open(file.files[0]);
        file.value = ""; // allows opening the same file again
      },
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
      make("label", { class: "check" }, this.turn, "invert: dark becomes bright"),
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

  /** Returns the name of the class of image i of the gallery. */
  #called(i) {
    const label = this.#sets[this.data].testLabel(i);
    return this.classes[label] ?? `class ${label}`;
  }

  #more(step) {
    const last = Math.floor((this.#sets[this.data].tested - 1) / galleryPage) * galleryPage;
    this.from = Math.min(Math.max(0, this.from + step * galleryPage), last);
    this.#showGallery();
  }

  /** Selects an image of the gallery. */
  choose(i) {
    this.pad.empty();
    this.#take(this.#sets[this.data].test(i), i);
  }

  /** Opens an image file. */
  async open(file) {
    let picture;
    try {
      picture = await pictureOf(file);
    } catch {
      this.said.textContent = `${file.name} is not an image that this browser can read.`;
      return;
    }
    this.pad.empty();
    this.#take(picture, null, file.name);
  }

  #take(picture, image, file = null) {
    this.original = picture;
    this.image = image;
    this.file = file;
    this.turn.checked = false;
    for (const button of this.gallery.children)
      button.setAttribute("aria-pressed", String(Number(button.dataset.image) === image));
    this.#turned();
  }

  #turned() {
    this.picture = this.#named();
    this.#told();
  }

  /** Returns the image, inverted if requested, with its index or file name; null if there is none. */
  #named() {
    if (this.original === null) return null;
    const picture = this.turn.checked ? inverted(this.original) : this.original;
    return { ...picture, image: this.image, file: this.file };
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

  /** Clears the picture of the models' input and shows the text `why` instead. */
  showNone(why) {
    this.seen.getContext("2d").clearRect(0, 0, this.seen.width, this.seen.height);
    this.seen.setAttribute("aria-label", why);
    this.said.textContent = why;
  }

  /** Shows the models' input, and describes their predictions and the shown kind of attention picture, `name`.
      An answer is {name, picture, model, look}; its `picture`, an image, may no longer be the selected one. */
  show(answers, name) {
    const [{ picture, model, look }] = answers;
    this.classes = model.classes;
    this.#nameGallery();
    if (this.side !== model.grid) {
      this.side = model.grid;
      if (this.query >= this.side ** 2) this.query = -1;
      this.#grid();
    }
    paintGrey(this.seen, look.seen.data);
    const drawn = picture.file ?? "Your drawing";
    const of = picture.image === null ? drawn : `Test image ${picture.image + 1}: ${this.#called(picture.image)}`;
    this.seen.setAttribute("aria-label", `${of}, as the model sees it`);
    const place = `row ${Math.floor(this.query / this.side) + 1}, column ${(this.query % this.side) + 1}`;
    const shown =
      this.query >= 0
        ? `attention of the patch in ${place} to each patch`
        : model.class_token
          ? "attention of the class token to each patch; click a patch to see its attention"
          : "attention to each patch, mean over all patches; click a patch to see its attention";
    const taken = answers.map((answer) => {
      const best = Math.max(...answer.look.probabilities);
      const by = answers.length > 1 ? ` by ${answer.name}` : "";
      return `Classified${by} as ${answer.model.classes[answer.look.probabilities.indexOf(best)]} (${(100 * best).toFixed(1)} %)`;
    });
    const hint = picture.file && isBright(picture) ? " These models expect a dark background: tick 'invert'." : "";
    this.said.textContent = `${of}. ${taken.join(". ")}. Shown: ${name === "map" ? shown : name}.${hint}`;
    this.none.disabled = this.query < 0;
  }
}
