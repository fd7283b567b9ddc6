// Bundled images and the user's own.
import { asset } from "./assets.js";

/** Names of the data sets, and their titles on the page. */
export const dataSets = { mnist: "digits", "fashion-mnist": "clothes" };

/** An image: bytes [channels, height, width]. @typedef {{channels: number, height: number, width: number, bytes: Uint8Array}} Picture */

/** Returns true if the mean brightness of an image exceeds half of the maximum. @param {Picture} picture */
export const isBright = ({ bytes }) => bytes.reduce((sum, byte) => sum + byte, 0) > 127.5 * bytes.length;

/** Returns the elements after the header of an IDX file, and the sizes in the header. */
function idx(bytes) {
  const header = new DataView(bytes.buffer, bytes.byteOffset),
    axes = header.getUint8(3);
  const sizes = Array.from({ length: axes }, (_, axis) => header.getUint32(4 + 4 * axis));
  return { sizes, elements: bytes.subarray(4 + 4 * axes) };
}

/** The bundled part of a data set: training images, followed by test images. */
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

  /** Returns test image i. @returns {Picture} */
  test(i) {
    const size = this.height * this.width,
      at = (this.trained + i) * size;
    return { channels: 1, height: this.height, width: this.width, bytes: this.pixels.slice(at, at + size) };
  }

  testLabel(i) {
    return this.labels[this.trained + i];
  }

  /** Returns all pixels, then all labels, in the form of the engine's request "begin". */
  get bytes() {
    const all = new Uint8Array(this.pixels.length + this.labels.length);
    all.set(this.pixels);
    all.set(this.labels, this.pixels.length);
    return all;
  }
}

/** Maximum side of a user's image; larger images are scaled down to it. */
const longest = 2048;

/** Reads an image file; transparent pixels become black, the bundled images' background. @returns {Promise<Picture>} */
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

/** Returns a picture with inverted brightness. */
export function inverted(picture) {
  return { ...picture, bytes: picture.bytes.map((byte) => 255 - byte) };
}

/** Draws grey bytes, row by row, into a canvas with a pixel for each byte. */
export function paintGrey(canvas, bytes) {
  const context = canvas.getContext("2d"),
    image = context.createImageData(canvas.width, canvas.height);
  for (let i = 0; i < bytes.length; ++i) image.data.set([bytes[i], bytes[i], bytes[i], 255], 4 * i);
  context.putImageData(image, 0, 0);
}
