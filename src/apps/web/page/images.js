// The bundled images, and images of one's own.
import { asset } from "./assets.js";

/** The names of the data sets, and what the page calls them. */
export const dataSets = { mnist: "digits", "fashion-mnist": "clothes" };

/** An image: bytes [channels, height, width]. @typedef {{channels: number, height: number, width: number, bytes: Uint8Array}} Picture */

/** Whether more of an image is bright than dark. @param {Picture} picture */
export const isBright = ({ bytes }) => bytes.reduce((sum, byte) => sum + byte, 0) > 127.5 * bytes.length;

/** The elements behind the header of an IDX file, and the sizes in it. */
function idx(bytes) {
  const header = new DataView(bytes.buffer, bytes.byteOffset),
    axes = header.getUint8(3);
  const sizes = Array.from({ length: axes }, (_, axis) => header.getUint32(4 + 4 * axis));
  return { sizes, elements: bytes.subarray(4 + 4 * axes) };
}

/** The bundled part of a data set: images to train on, then images to test with. */
export class ImageSet {
  constructor(name, train, trainLabels, test, testLabels) {
    this.name = name;
    this.trained = train.sizes[0];
    this.tested = test.sizes[0];
    this.height = train.sizes[1];
    this.width = train.sizes[2];
    this.pixels = new Uint8Array(train.elements.length + test.elements.length);
    this.pixels.set(train.elements);
    this.pixels.set(test.elements, train.elements.length);
    this.labels = new Uint8Array([...trainLabels.elements, ...testLabels.elements]);
  }

  static async load(name) {
    const of = async (file) => idx(await asset(`images/${name}/${file}.gz`));
    return new ImageSet(
      name,
      ...(await Promise.all(
        ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"].map(
          of,
        ),
      )),
    );
  }

  /** Image i of those to test with. @returns {Picture} */
  test(i) {
    const size = this.height * this.width,
      at = (this.trained + i) * size;
    return { channels: 1, height: this.height, width: this.width, bytes: this.pixels.slice(at, at + size) };
  }

  testLabel(i) {
    return this.labels[this.trained + i];
  }

  /** All pixels, then all labels, as the engine's request "begin" takes them. */
  get bytes() {
    const all = new Uint8Array(this.pixels.length + this.labels.length);
    all.set(this.pixels);
    all.set(this.labels, this.pixels.length);
    return all;
  }
}

/** No side of an image of one's own is longer: larger ones are made smaller first. */
const longest = 2048;

/** An image file, what is transparent shown over black, as the training images' background is. @returns {Promise<Picture>} */
export async function pictureOf(file) {
  const bitmap = await createImageBitmap(file),
    share = Math.min(1, longest / Math.max(bitmap.width, bitmap.height));
  const width = Math.max(1, Math.round(bitmap.width * share)),
    height = Math.max(1, Math.round(bitmap.height * share));
  const canvas = new OffscreenCanvas(width, height),
    context = canvas.getContext("2d");
  context.fillStyle = "black";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  const bytes = new Uint8Array(3 * width * height);
  for (let channel = 0; channel < 3; ++channel)
    for (let i = 0; i < width * height; ++i) bytes[channel * width * height + i] = data[4 * i + channel];
  return { channels: 3, height, width, bytes };
}

/** Dark and bright turned round. */
export function inverted(picture) {
  return { ...picture, bytes: picture.bytes.map((byte) => 255 - byte) };
}

/** Draws grey bytes, row by row, into a canvas of as many pixels. */
export function paintGrey(canvas, bytes) {
  const context = canvas.getContext("2d"),
    image = context.createImageData(canvas.width, canvas.height);
  for (let i = 0; i < bytes.length; ++i) image.data.set([bytes[i], bytes[i], bytes[i], 255], 4 * i);
  context.putImageData(image, 0, 0);
}
