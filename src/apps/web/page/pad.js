// A sheet to draw on.
import { make } from "./make.js";

/** Pixels per side of the sheet, of its image, and of the digit in the image. As in MNIST, a digit fits into 20 x 20 of
    28 x 28 pixels, and its centre of mass is in the middle. */
const side = 280,
  imageSide = 28,
  digitSide = 20;

export class Pad {
  #strokes = [];
  #changed;

  /** `changed` is called after every change by the user: with the image, or with null if the sheet is empty. */
  constructor(changed) {
    this.#changed = changed;
    this.canvas = make("canvas", {
      class: "pad",
      width: side,
      height: side,
      tabindex: 0,
      role: "img",
      "aria-label":
        "Drawing sheet: draw with pointer or finger. With the keyboard: arrow keys move a pen, space puts it down or lifts it, Delete clears.",
      onpointerdown: (event) => this.#down(event),
      onpointermove: (event) => this.#move(event),
      onpointerup: (event) => this.#up(event),
      onpointercancel: (event) => this.#up(event),
      onkeydown: (event) => this.#key(event),
      onblur: () => this.#hidePen(),
    });
    this.element = make(
      "div",
      { class: "sheet" },
      this.canvas,
      make("span", { class: "hint", "aria-hidden": "true" }, "draw here"),
    );
    this.pen = null;
    /** Id of the drawing pointer; with two fingers, the first finger's. Null: no pointer draws. @type {number|null} */
    this.drawing = null;
    this.#paint();
  }

  /** Clears the sheet without calling `changed`. */
  empty() {
    this.#strokes = [];
    this.#lift();
    this.#paint();
  }

  clear() {
    if (this.#strokes.length === 0) return;
    this.empty();
    this.#draw();
  }

  undo() {
    if (this.#strokes.length === 0) return;
    this.#strokes.pop();
    this.#lift();
    this.#draw();
  }

  #lift() {
    this.drawing = null;
    if (this.pen) this.pen.down = false;
  }

  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * side, ((event.clientY - box.top) / box.height) * side];
  }

  #down(event) {
    event.preventDefault();
    if (event.button !== 0 || this.drawing !== null) return;
    this.canvas.focus();
    this.canvas.setPointerCapture(event.pointerId);
    this.drawing = event.pointerId;
    this.pen = null;
    this.#strokes.push([this.#place(event)]);
    this.#draw();
  }

  #move(event) {
    if (event.pointerId !== this.drawing) return;
    for (const one of event.getCoalescedEvents?.() ?? [event]) this.#strokes.at(-1).push(this.#place(one));
    this.#draw();
  }

  #up(event) {
    if (event.pointerId === this.drawing) this.drawing = null;
  }

  #key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] },
      step = steps[event.key];
    if (event.key === "Delete" || event.key === "Backspace") this.clear();
    else if (event.key === " ") {
      this.pen ??= { x: side / 2, y: side / 2, down: false };
      this.pen.down = !this.pen.down;
      if (this.pen.down) this.#strokes.push([[this.pen.x, this.pen.y]]);
      this.#draw();
    } else if (step) {
      this.pen ??= { x: side / 2, y: side / 2, down: false };
      this.pen.x = Math.min(side - 10, Math.max(10, this.pen.x + 10 * step[0]));
      this.pen.y = Math.min(side - 10, Math.max(10, this.pen.y + 10 * step[1]));
      if (this.pen.down) this.#strokes.at(-1).push([this.pen.x, this.pen.y]);
      this.#draw();
    } else return;
    event.preventDefault();
  }

  #hidePen() {
    this.pen = null;
    this.#paint();
  }

  #draw() {
    this.#paint();
    this.#changed(this.#strokes.length > 0 ? this.image() : null);
  }

  #trace(context) {
    Object.assign(context, { lineWidth: 22, lineCap: "round", lineJoin: "round", strokeStyle: "white" });
    for (const stroke of this.#strokes) {
      context.beginPath();
      const [[x, y]] = stroke;
      context.moveTo(x, y);
      // A stroke that ends where it begins is a dot. Canvas does not draw lines of zero length.
      context.lineTo(x + 0.01, y);
      for (const point of stroke) context.lineTo(...point);
      context.stroke();
    }
  }

  #paint() {
    const context = this.canvas.getContext("2d");
    context.fillStyle = "black";
    context.fillRect(0, 0, side, side);
    this.#trace(context);
    this.element.classList.toggle("empty", this.#strokes.length === 0 && !this.pen);
    if (!this.pen) return;
    context.fillStyle = this.pen.down ? "#ff8a3d" : "#56b4e9";
    context.beginPath();
    context.arc(this.pen.x, this.pen.y, 7, 0, 2 * Math.PI);
    context.fill();
  }

  /** Returns the drawing as an image with the size and position of MNIST's digits. @returns {import("./images.js").Picture} */
  image() {
    const bytes = new Uint8Array(imageSide * imageSide),
      points = this.#strokes.flat();
    if (points.length > 0) {
      const half = 11,
        low = (k) => Math.min(...points.map((point) => point[k])) - half;
      const high = (k) => Math.max(...points.map((point) => point[k])) + half;
      const [left, top] = [low(0), low(1)],
        scale = digitSide / Math.max(high(0) - left, high(1) - top);
      const first = this.#scaled(
        scale,
        imageSide / 2 / scale - (left + high(0)) / 2,
        imageSide / 2 / scale - (top + high(1)) / 2,
      );
      const [x, y] = centre(first);
      const shift = (at) => Math.round((imageSide - 1) / 2 - at);
      const [right, down] = [shift(x), shift(y)];
      for (let row = 0; row < imageSide; ++row)
        for (let column = 0; column < imageSide; ++column) {
          const inside = row - down >= 0 && row - down < imageSide && column - right >= 0 && column - right < imageSide;
          bytes[row * imageSide + column] = inside ? first[(row - down) * imageSide + column - right] : 0;
        }
    }
    return { channels: 1, height: imageSide, width: imageSide, bytes };
  }

  /** Returns the strokes, moved and scaled, as bytes: each pixel is the mean of 4 x 4 smaller pixels. */
  #scaled(scale, x, y) {
    const fine = 4,
      canvas = new OffscreenCanvas(fine * imageSide, fine * imageSide);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.scale(fine * scale, fine * scale);
    context.translate(x, y);
    this.#trace(context);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height),
      bytes = new Uint8Array(imageSide * imageSide);
    for (let row = 0; row < imageSide; ++row)
      for (let column = 0; column < imageSide; ++column) {
        let sum = 0;
        for (let i = 0; i < fine * fine; ++i)
          sum += data[4 * ((row * fine + Math.floor(i / fine)) * canvas.width + column * fine + (i % fine)) + 3];
        bytes[row * imageSide + column] = Math.round(sum / (fine * fine));
      }
    return bytes;
  }
}

/** Returns the centre of mass, column and row. */
function centre(bytes) {
  let mass = 0,
    x = 0,
    y = 0;
  bytes.forEach((byte, i) => {
    mass += byte;
    x += byte * (i % imageSide);
    y += byte * Math.floor(i / imageSide);
  });
  return mass > 0 ? [x / mass, y / mass] : [(imageSide - 1) / 2, (imageSide - 1) / 2];
}
