// Attention maps of a model: an image with a selected patch, and that patch's attention weights in each block and head.

function bytesOf(base64) {
  const text = atob(base64), bytes = new Int8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const sequential = rgbOf(report.colours), diverging = rgbOf(report.diverging_colours);

class Looking {
  constructor(model) {
    this.model = model;
    this.thumbs = make("div", {class: "thumbs", role: "group", "aria-label": "Images"}, model.maps.map((image, i) =>
      make("button", {"aria-pressed": "false", title: `test image ${image.index}`, onclick: () => this.choose(i)},
        make("img", {src: image.image, alt: `Test image ${image.index}, ${model.classes[image.label]}`}))));
    this.place = make("div");
    this.element = make("div", {}, this.thumbs, this.place);
    this.choose(0);
  }

  /** Shows another image. */
  choose(i) {
    const image = this.model.maps[i], {maps} = image;
    [...this.thumbs.children].forEach((button, j) => button.setAttribute("aria-pressed", String(i === j)));
    [this.rows, this.columns] = maps.grid;
    this.blocks = maps.blocks.map((block) => (block.weights ? {...block, bytes: bytesOf(block.weights)} : block));
    this.signed = this.blocks.some((block) => block.bytes && block.bytes.some((byte) => byte < 0));
    this.choosable = this.blocks.some((block) => block.bytes && !block.channels);
    this.whole = maps.class_token ? "class token" : "mean over all patches";
    this.image = image.image;
    this.said = make("p", {class: "note", "aria-live": "polite"});
    this.picture = this.queryPicture();
    this.back = make("button", {onclick: () => this.look(-1)}, `Show the ${this.whole}`);
    this.grid = make("div", {class: "wide"});
    const {classes} = this.model;
    this.place.replaceChildren(make("div", {class: "looking"},
      make("div", {}, this.picture,
        make("p", {class: "note"}, `Test image ${image.index}, ${classes[image.label]}; classified as ${classes[image.answer]} (${shown(image.share, true, 1)}).`),
        this.back, this.said, this.scale()),
      this.grid));
    this.cells = [];
    this.grid.replaceChildren(this.mapsTable());
    this.look(-1);
  }

  /** Creates the image with a grid of patches, one of which is selected by pointer or arrow keys. */
  queryPicture() {
    const lines = [];
    for (let r = 1; r < this.rows; ++r) lines.push(makeSvg("line", {x1: 0, x2: this.columns, y1: r, y2: r}));
    for (let c = 1; c < this.columns; ++c) lines.push(makeSvg("line", {x1: c, x2: c, y1: 0, y2: this.rows}));
    this.marks = makeSvg("g");
    const svg = makeSvg("svg", {viewBox: `0 0 ${this.columns} ${this.rows}`, preserveAspectRatio: "none", tabindex: 0, role: "application",
      "aria-label": "Patches of the image; arrow keys choose one, Escape none",
      onclick: (event) => this.click(event), onkeydown: (event) => this.key(event)}, lines, this.marks);
    return make("div", {class: "query"}, make("img", {src: this.image, alt: ""}), this.choosable ? svg : null);
  }

  click(event) {
    const box = event.currentTarget.getBoundingClientRect();
    const at = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    this.look(at((event.clientY - box.top) / box.height, this.rows) * this.columns +
      at((event.clientX - box.left) / box.width, this.columns));
  }

  key(event) {
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    if (event.key === "Escape") this.look(-1);
    if (!step) return;
    event.preventDefault();
    if (this.query < 0) return this.look(0);
    const row = Math.floor(this.query / this.columns) + step[0], column = this.query % this.columns + step[1];
    if (row >= 0 && row < this.rows && column >= 0 && column < this.columns) this.look(row * this.columns + column);
  }

  /** Creates a row for each block, with a cell for each head. */
  mapsTable() {
    const heads = Math.max(1, ...this.blocks.map((block) => block.heads ?? 0));
    const rows = this.blocks.map((block, i) => {
      const name = make("th", {scope: "row"}, `block ${i + 1}`, make("small", {}, block.mechanism), block.channels ? make("small", {}, "channels") : null);
      if (!block.bytes) return make("tr", {}, name, make("td", {colspan: heads, class: "pale"}, "no map"));
      return make("tr", {}, name, Array.from({length: block.heads}, (_, head) => this.mapCell(block, i, head)));
    });
    return make("table", {class: "maps"}, make("thead", {}, make("tr", {}, make("td"), Array.from({length: heads}, (_, head) =>
      make("th", {scope: "col"}, `head ${head + 1}`)))), make("tbody", {}, rows));
  }

  mapCell(block, i, head) {
    const canvas = make("canvas", {width: block.columns, height: block.rows, role: "img"});
    const largest = make("small"), marks = makeSvg("svg", {viewBox: `0 0 ${this.columns} ${this.rows}`, preserveAspectRatio: "none"});
    this.cells.push({block, i, head, canvas, largest, marks});
    const box = make("div", {class: block.channels ? "map bare" : "map", onclick: block.channels ? null : (event) => this.click(event)},
      block.channels ? null : make("img", {src: this.image, alt: ""}), canvas, block.channels ? null : marks);
    if (!block.channels) box.style.cursor = "crosshair";
    return make("td", {}, box, largest);
  }

  /** Shows the weights of the query patch with this index, row by row; -1: of the class token, or the mean over all patches. */
  look(query) {
    this.query = query;
    const row = Math.floor(query / this.columns), column = query % this.columns;
    const marks = () => (query < 0 ? [] : ["mark under", "mark"].map((name) =>
      makeSvg("rect", {class: name, x: column, y: row, width: 1, height: 1})));
    this.marks.replaceChildren(...marks());
    this.said.textContent = !this.choosable ? "These maps are between channels: there is no patch to choose."
      : query < 0 ? `Shown: the ${this.whole}. Click a patch to see where it looks.`
      : `Shown: the patch in row ${row + 1}, column ${column + 1}.`;
    this.back.hidden = query < 0;
    for (const {block, i, head, canvas, largest, marks: over} of this.cells) {
      const map = (block.channels ? 0 : query + 1) * block.heads + head;
      this.paint(canvas, block, map);
      const text = shown(block.largest[map]);
      largest.textContent = `max ${text}`;
      canvas.setAttribute("aria-label", `block ${i + 1}, head ${head + 1}: largest weight ${text}`);
      over.replaceChildren(...marks());
    }
  }

  paint(canvas, block, map) {
    const context = canvas.getContext("2d"), keys = block.rows * block.columns;
    const picture = context.createImageData(block.columns, block.rows);
    const colours = this.signed ? diverging : sequential;
    for (let k = 0; k < keys; ++k) {
      const share = block.bytes[map * keys + k] / 127;
      const [red, green, blue] = colours[Math.round((this.signed ? (share + 1) / 2 : share) * (colours.length - 1))];
      picture.data.set([red, green, blue, 255], 4 * k);
    }
    context.putImageData(picture, 0, 0);
  }

  scale() {
    const colours = this.signed ? report.diverging_colours : report.colours;
    return make("div", {}, make("div", {class: "scale", style: `background: linear-gradient(to right, ${colours.map((c) => `#${c}`).join(", ")})`}),
      make("div", {class: "ends"}, make("span", {}, this.signed ? "-max" : "0"), make("span", {}, "max of the map")));
  }
}

function mapsSection(looking) {
  return section("Where it looks", make("p", {}, !looking.choosable ? "How much each channel contributes to every other, in each block (rows) and head (columns)."
    : ["How much each patch contributes to the selected patch, or without a selection to the class token (or to the mean over all patches), in each block (rows) and head (columns). Each map has a separate scale.",
      " To select a patch, click it in the image or in a map, or use the arrow keys."]), looking.element);
}
