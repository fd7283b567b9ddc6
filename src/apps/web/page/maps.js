// Pictures of attention over an image: a row for each block, a column for each head.
import { paintGrey } from "./images.js";
import { make, makeSvg, shown } from "./make.js";
import { rgbOf } from "./plot.js";

/**
 * Returns the grids of numbers of a picture, one for each head or group of channels. Pictures of token pairs show the
 * query's weight for each patch: `query` is the index of a patch, or -1 for the class token or, without one, the mean
 * over the patches. Keys before the patches are omitted. Without `identity`, the identity matrix is subtracted from
 * maps that include it. A matrix with a column for each token becomes tiles, one for each row.
 */
export function gridsOf(picture, model, query, identity) {
  const { shape, data } = picture.numbers,
    parts = shape[0],
    patches = model.grid * model.grid,
    first = model.prefix;
  const grid = (numbers) => ({ rows: model.grid, columns: model.grid, numbers, overImage: true, tiles: null });
  return Array.from({ length: parts }, (_, part) => {
    if (picture.axes === "tokens") return grid(data.slice(part * shape[1] + first, (part + 1) * shape[1]));
    const [, rows, columns] = shape,
      at = (row, column) => data[(part * rows + row) * columns + column];
    if (picture.axes === "matrix") {
      if (columns - first === patches)
        return tiled(rows, (row) => Array.from({ length: patches }, (_, i) => at(row, i + first)), model.grid);
      return {
        rows,
        columns,
        numbers: data.slice(part * rows * columns, (part + 1) * rows * columns),
        overImage: false,
        tiles: null,
      };
    }
    const weight = (row, column) => at(row, column) - (!identity && picture.identity && row === column ? 1 : 0);
    const taken = (key) => {
      if (query >= 0 || model.class_token) return weight(query >= 0 ? query + first : 0, key);
      let sum = 0;
      for (let row = first; row < rows; ++row) sum += weight(row, key);
      return sum / (rows - first);
    };
    return grid(Float32Array.from({ length: patches }, (_, i) => taken(i + first)));
  });
}

/** Joins grids side by side, separated by cells without a number. */
function tiled(count, gridOf, side) {
  const across = Math.ceil(Math.sqrt(count)),
    down = Math.ceil(count / across);
  const rows = down * (side + 1) - 1,
    columns = across * (side + 1) - 1,
    numbers = new Float32Array(rows * columns).fill(NaN);
  for (let tile = 0; tile < count; ++tile)
    gridOf(tile).forEach((number, i) => {
      const row = Math.floor(tile / across) * (side + 1) + Math.floor(i / side),
        column = (tile % across) * (side + 1) + (i % side);
      numbers[row * columns + column] = number;
    });
  return { rows, columns, numbers, overImage: false, tiles: count };
}

const finite = (numbers) => numbers.filter((number) => !Number.isNaN(number));

export class MapsView {
  #colours;
  #choose;
  #cells = [];
  #kept = "";
  #table;
  #scale;
  #meaning;
  #names;
  #place = { query: -1, side: 1 };

  /** `colours` are the engine's colour scales; `choose(query)` is called when a patch is selected. */
  constructor(colours, choose) {
    this.#colours = { sequential: rgbOf(colours.colours), diverging: rgbOf(colours.diverging_colours) };
    this.#choose = choose;
    this.#table = make("div", {
      class: "wide",
      role: "group",
      "aria-label": "Maps: arrow keys choose a patch, Escape none",
      onkeydown: (event) => this.#key(event),
    });
    this.#scale = make("div", { class: "scale-of" }, make("div", { class: "scale" }), make("div", { class: "ends" }));
    this.#meaning = make("p", { class: "note" });
    this.#names = colours;
    this.element = make("div", {}, this.#meaning, this.#table, this.#scale);
  }

  /** Shows the pictures of this name in `look`; for "map", a block without a map shows its first picture. */
  show(model, look, { name, query, identity }) {
    const blocks = look.blocks.map((block) => {
      const picture =
        block.pictures.find((one) => one.name === name) ?? (name === "map" ? block.pictures[0] : undefined);
      return { mechanism: block.mechanism, picture, grids: picture ? gridsOf(picture, model, query, identity) : [] };
    });
    // Rebuilds the table only if its rows or columns change, to preserve the focus and the scroll position.
    const form = JSON.stringify(
      blocks.map((block) => [
        block.mechanism,
        block.picture?.name,
        block.grids.map((grid) => [grid.rows, grid.columns]),
      ]),
    );
    if (form !== this.#kept) this.#build(model, blocks);
    this.#kept = form;
    const signed = blocks.some((block) => block.grids.some((grid) => grid.numbers.some((number) => number < 0)));
    this.#showScale(signed);
    this.#place = { query, side: model.grid };
    this.#table.tabIndex = 0;
    this.#meaning.textContent = blocks.find((block) => block.picture)?.picture.meaning ?? "";
    let cell = 0;
    blocks.forEach((block, i) =>
      block.grids.forEach((grid, part) =>
        this.#paint(
          this.#cells[cell++],
          grid,
          signed,
          `block ${i + 1}, ${block.picture.part} ${part + 1}`,
          look.seen,
          query,
          model,
        ),
      ),
    );
  }

  /** Clears the table. */
  clear() {
    this.#kept = "";
    this.#table.replaceChildren();
    this.#table.removeAttribute("tabindex");
    this.#meaning.textContent = "";
    this.#scale.hidden = true;
  }

  #key(event) {
    const to = patchByKey(event.key, this.#place);
    if (to === null) return;
    event.preventDefault();
    if (to !== this.#place.query) this.#choose(to);
  }

  #showScale(signed) {
    const colours = (signed ? this.#names.diverging_colours : this.#names.colours).map((colour) => `#${colour}`);
    this.#scale.hidden = this.#cells.length === 0;
    this.#scale.firstChild.style.background = `linear-gradient(to right, ${colours.join(", ")})`;
    const ends = signed ? ["-max", "0", "max of the map"] : ["0", "max of the map"];
    this.#scale.lastChild.replaceChildren(...ends.map((end) => make("span", {}, end)));
  }

  #build(model, blocks) {
    this.#cells = [];
    const most = Math.max(1, ...blocks.map((block) => block.grids.length));
    const part = blocks.find((block) => block.picture)?.picture.part ?? "head";
    const rows = blocks.map((block, i) => {
      const name = make(
        "th",
        { scope: "row" },
        `block ${i + 1}`,
        block.picture ? make("small", {}, block.picture.name) : null,
      );
      if (!block.picture)
        return make("tr", {}, name, make("td", { colspan: most, class: "pale" }, "no picture of this kind"));
      return make(
        "tr",
        {},
        name,
        block.grids.map((grid) => this.#cell(model, grid)),
      );
    });
    const head = Array.from({ length: most }, (_, i) => make("th", { scope: "col" }, `${part} ${i + 1}`));
    this.#table.replaceChildren(
      make(
        "table",
        {
          class: blocks.some((block) => block.grids.some((grid) => grid.tiles)) ? "maps tiles" : "maps",
          style: `--columns: ${most}`,
        },
        make("thead", {}, make("tr", {}, make("td"), head)),
        make("tbody", {}, rows),
      ),
    );
  }

  #cell(model, grid) {
    const canvas = make("canvas", { width: grid.columns, height: grid.rows, role: "img" });
    const image = grid.overImage
      ? make("canvas", { class: "under", width: model.image, height: model.image, "aria-hidden": "true" })
      : null;
    const marks = makeSvg("svg", { viewBox: `0 0 ${model.grid} ${model.grid}`, "aria-hidden": "true" });
    const largest = make("small");
    const point = (event) => this.#choose(patchAt(event, model.grid));
    const box = make(
      "div",
      { class: grid.overImage ? "map" : "map bare", onclick: grid.overImage ? point : null },
      image,
      canvas,
      grid.overImage ? marks : null,
    );
    this.#cells.push({ canvas, image, marks, largest });
    return make("td", {}, box, largest);
  }

  #paint({ canvas, image, marks, largest }, grid, signed, name, seen, query, model) {
    const context = canvas.getContext("2d"),
      picture = context.createImageData(grid.columns, grid.rows);
    const most = finite(grid.numbers).reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    const colours = signed ? this.#colours.diverging : this.#colours.sequential;
    grid.numbers.forEach((number, i) => {
      if (Number.isNaN(number)) return;
      const share = most > 0 ? number / most : 0;
      const [red, green, blue] = colours[Math.round((signed ? (share + 1) / 2 : share) * (colours.length - 1))];
      picture.data.set([red, green, blue, 255], 4 * i);
    });
    context.putImageData(picture, 0, 0);
    if (image) paintGrey(image, seen.data);
    marks.replaceChildren(...(query < 0 ? [] : markOf(query, model.grid)));
    largest.replaceChildren(make("span", {}, signed ? "± " : "max "), shown(Number(most.toPrecision(2))));
    canvas.setAttribute("aria-label", `${name}: largest weight ${shown(most)}${signed ? ", ignoring signs" : ""}`);
  }
}

/** Returns the index of the patch at an event's position. */
export function patchAt(event, side) {
  const box = event.currentTarget.getBoundingClientRect();
  const at = (share) => Math.min(side - 1, Math.max(0, Math.floor(share * side)));
  return at((event.clientY - box.top) / box.height) * side + at((event.clientX - box.left) / box.width);
}

/** Returns the patch that an arrow key selects from patch `query`; -1, no patch, for Escape; null for other keys. */
export function patchByKey(key, { query, side }) {
  if (key === "Escape") return -1;
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  if (!step) return null;
  if (query < 0) return 0;
  const [column, row] = [(query % side) + step[0], Math.floor(query / side) + step[1]];
  return Math.min(column, row) >= 0 && Math.max(column, row) < side ? row * side + column : query;
}

/** Returns the rectangles that mark a patch. */
export function markOf(query, side) {
  const place = { x: query % side, y: Math.floor(query / side), width: 1, height: 1 };
  return ["mark under", "mark"].map((name) => makeSvg("rect", { class: name, ...place }));
}
