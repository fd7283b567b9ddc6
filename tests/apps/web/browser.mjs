// Common code of the page's tests: Chromium, and a user's actions and observations. Requires playwright-core and
// axe-core from npm, in NODE_PATH.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const require = createRequire(import.meta.url);
const { chromium } = require("playwright-core");

/** The page's directory, the program, the native engine (ask.cpp), and the directory for pictures. */
export const [site, heed, ask, pictures] = process.argv.slice(2).map((path) => resolve(path));
/** A directory for files, removed at the end. */
export const work = mkdtempSync(join(tmpdir(), "heed-page-"));
let failed = 0;

function failure(text) {
  ++failed;
  console.log(`FAILED  ${text}`);
}

/** Runs a named test; prints its error and continues with the others. */
export async function test(name, run) {
  const begun = performance.now();
  try {
    await run();
    console.log(`ok      ${name} (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failure(`${name}: ${error.message.split("\n").slice(0, 4).join(" ")}`);
  }
}

export function expect(condition, message) {
  if (!condition) throw new Error(message);
}

export const near = (a, b, tolerance, what) =>
  expect(Math.abs(a - b) <= tolerance, `${what}: ${a} in the page, ${b} by the program`);

export const allNear = (got, expected, tolerance, what) => {
  expect(got.length === expected.length, `${what}: ${got.length} in the page, ${expected.length} by the program`);
  got.forEach((one, i) => near(one, expected[i], tolerance, `${what} ${i + 1}`));
};

// ---- Browser ----

export const desktop = { viewport: { width: 1280, height: 900 } };
export const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** Serves the page, opens Chromium and runs `tests(browser, address)`; ends the process with their result. */
export async function runAll(tests) {
  mkdirSync(pictures, { recursive: true });
  const server = spawn("python3", ["src/apps/web/page/serve.py", site, "0"]);
  const base = await new Promise((resolve) => server.stdout.once("data", (text) => resolve(String(text).trim())));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  try {
    await tests(browser, base);
  } finally {
    await browser.close();
    server.kill();
    rmSync(work, { recursive: true });
  }
  console.log(failed === 0 ? "page: all is well" : `page: ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}

/** Opens the page at an address and waits until it is ready; errors in it count as failures. */
export async function open(browser, address, options = desktop) {
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => failure(`in the page: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && failure(`in the page's console: ${message.text()}`));
  await page.goto(address);
  await ready(page);
  return page;
}

export const ready = (page) => page.waitForSelector("body[data-ready]");

/** Takes a picture of the whole page. */
export const picture = (page, name) => page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });

/** Returns the file that a click downloads. */
export async function downloaded(page, button, name) {
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: button }).click();
  const file = join(work, name);
  await (await saving).saveAs(file);
  return file;
}

/** Returns axe-core's violations on the page: rules and the elements that break them. */
export async function complaints(page) {
  await page.addScriptTag({ path: require.resolve("axe-core") });
  return page.evaluate(async () => {
    const { violations } = await globalThis.axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
  });
}

// ---- Looking ----

/** Waits until no request to the engine is pending, so that the page shows the result of the last action. */
export async function settle(page) {
  await page.waitForFunction(() => document.body.dataset.waiting === "0");
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
}

/** Waits until the page's address contains a text. */
export const addressHas = (page, text) => page.waitForFunction((text) => location.href.includes(text), text);

const answerOf = (page, side) => page.locator(".answer").nth(side);

export const chooseModel = (page, name, side = 0) => answerOf(page, side).locator("select").selectOption(name);

export const tab = (page, name) => page.getByRole("tab", { name }).click();

/** Returns the probabilities of a side, by class. */
export async function shares(page, side = 0) {
  await settle(page);
  expect((await answerOf(page, side).locator(".failed").textContent()) === "", "an error is shown");
  await answerOf(page, side).locator(".bars li.best").waitFor();
  return answerOf(page, side)
    .locator(".bars li")
    .evaluateAll((rows) => rows.map((row) => Number(row.dataset.probability)));
}

/** Returns the texts of the maps of a side: "block 1, head 2: largest weight 0.1234". */
export async function mapLabels(page, side = 0) {
  await settle(page);
  return answerOf(page, side)
    .locator(".maps canvas[role=img]")
    .evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
}

/** Returns the grey bytes of the model's input. */
export const seen = async (page) => {
  await settle(page);
  return page.locator("canvas.seen").evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return Array.from({ length: canvas.width * canvas.height }, (_, i) => data[4 * i]);
  });
};

/** Draws a stroke between positions on the sheet by pointer; positions are fractions of its width and height. */
export async function stroke(page, places) {
  const box = await page.locator("canvas.pad").boundingBox();
  const at = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
  await page.mouse.move(...at(places[0]));
  await page.mouse.down();
  for (const place of places.slice(1)) await page.mouse.move(...at(place), { steps: 8 });
  await page.mouse.up();
}

/** Draws a stroke by touch, which Chromium treats as a scroll unless the page prevents it. */
export async function fingerStroke(page, places) {
  const box = await page.locator("canvas.pad").boundingBox();
  const session = await page.context().newCDPSession(page);
  const touch = (type, touchPoints) => session.send("Input.dispatchTouchEvent", { type, touchPoints });
  const at = ([x, y]) => [{ x: box.x + x * box.width, y: box.y + y * box.height }];
  await touch("touchStart", at(places[0]));
  for (const place of places.slice(1)) await touch("touchMove", at(place));
  await touch("touchEnd", []);
}

/** Returns positions along a polyline. */
export function along(corners, steps = 8) {
  return corners.slice(1).flatMap(([x, y], i) => {
    const [a, b] = corners[i];
    return Array.from({ length: steps + 1 }, (_, k) => [a + ((x - a) * k) / steps, b + ((y - b) * k) / steps]);
  });
}
