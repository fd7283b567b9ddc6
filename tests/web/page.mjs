// The page in headless Chromium, held against the program: make web-test. Takes the directory of the page, the program,
// and a directory for pictures. It needs playwright-core from npm, found by NODE_PATH.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const { chromium } = createRequire(import.meta.url)("playwright-core");
const [site, heed, pictures] = process.argv.slice(2).map((path) => resolve(path));
const work = mkdtempSync(join(tmpdir(), "heed-page-"));
mkdirSync(pictures, { recursive: true });
let failed = 0;

/** A test by name; what it throws is shown, and the others go on. */
async function test(name, run) {
  try {
    await run();
    console.log(`ok      ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAILED  ${name}: ${error.message.split("\n").slice(0, 4).join(" ")}`);
  }
}

function expect(condition, message) {
  if (!condition) throw new Error(message);
}

const near = (a, b, tolerance, what) =>
  expect(Math.abs(a - b) <= tolerance, `${what}: ${a} in the page, ${b} by the program`);

// ---- Browser ----

const desktop = { viewport: { width: 1280, height: 900 } };
const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, colorScheme: "dark" };

/** The page at an address, ready; what goes wrong in it counts as a failure. */
async function open(browser, address, options = desktop) {
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("pageerror", (error) => {
    ++failed;
    console.log(`FAILED  in the page: ${error.message}`);
  });
  await page.goto(address);
  await page.waitForSelector("body[data-ready]");
  return page;
}

const answered = (page) => page.waitForSelector(".answer:not([hidden]) .bars li.best");
const settle = (page) => page.waitForTimeout(300);

/** Probabilities that a side shows, by class. */
async function shares(page, side = 0) {
  await answered(page);
  await settle(page);
  return page
    .locator(".answer")
    .nth(side)
    .locator(".bars li")
    .evaluateAll((rows) => rows.map((row) => Number(row.dataset.probability)));
}

/** A stroke from one place of the sheet to the next, by pointer. */
async function stroke(page, places) {
  const box = await page.locator("canvas.pad").boundingBox();
  const at = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
  await page.mouse.move(...at(places[0]));
  await page.mouse.down();
  for (const place of places.slice(1)) await page.mouse.move(...at(place), { steps: 8 });
  await page.mouse.up();
}

/** The grey bytes that the model sees. */
const seen = (page) =>
  page.locator("canvas.seen").evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return Array.from({ length: canvas.width * canvas.height }, (_, i) => data[4 * i]);
  });

// ---- The program ----

/** A run directory of a trained model of the page. */
function runOf(data, arm) {
  return join(site, "trained", data, arm);
}

/** Tensors by name, {dtype, shape, data}, as a safetensors file. */
function safetensors(tensors) {
  const header = {};
  let end = 0;
  for (const [name, { dtype, shape, data }] of Object.entries(tensors))
    header[name] = { dtype, shape, data_offsets: [end, (end += data.byteLength)] };
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...Object.values(tensors).map(({ data }) => Buffer.from(data.buffer))]);
}

/** A tensor of floats in such a file. */
function floats(path, name) {
  const file = readFileSync(path);
  const start = 8 + Number(file.readBigUInt64LE(0));
  const [begin, end] = JSON.parse(file.subarray(8, start).toString())[name].data_offsets;
  return new Float32Array(file.buffer.slice(file.byteOffset + start + begin, file.byteOffset + start + end));
}

/** Probabilities of the program for 28 x 28 grey bytes, by class. */
function predicted(run, bytes) {
  const config = readFileSync(join(run, "config.toml"), "utf8");
  const [mean, std] = ["mean", "std"].map((key) => Number(new RegExp(`^${key} = \\[([\\d.]+)`, "m").exec(config)[1]));
  const [input, output] = [join(work, "in.safetensors"), join(work, "out.safetensors")];
  const images = Float32Array.from(bytes, (byte) => (byte / 255 - mean) / std);
  writeFileSync(
    input,
    safetensors({
      labels: { dtype: "I64", shape: [1], data: new BigInt64Array(1) },
      images: { dtype: "F32", shape: [1, 1, 28, 28], data: images },
    }),
  );
  execFileSync(
    heed,
    ["probe", "model", join(run, "config.toml"), input, output, "--weights", join(run, "best.safetensors")],
    { stdio: "pipe" },
  );
  const logits = floats(output, "logits");
  const powers = [...logits].map((logit) => Math.exp(logit - Math.max(...logits)));
  return powers.map((power) => power / powers.reduce((a, b) => a + b));
}

/** The losses of the first steps by the command that the page shows. */
function trainedLosses(command, steps) {
  const run = join(work, "run");
  const more = [`train.max_steps=${steps}`, "train.log_steps=true"].flatMap((set) => ["--set", set]);
  const words = command
    .split(" ")
    .slice(1)
    .map((word) => (word === "my-run" ? run : word));
  execFileSync(heed, [...words, ...more], { stdio: "pipe", cwd: site });
  return losses(join(run, "metrics.csv"));
}

/** The losses of the steps in a table of metrics. */
function losses(path) {
  const rows = readFileSync(path, "utf8")
    .split("\n")
    .filter((row) => row.startsWith("step,"));
  return rows.map((row) => Number(row.split(",")[3]));
}

// ---- Tests ----

async function all(browser, base) {
  const index = JSON.parse(readFileSync(join(site, "trained/index.json"), "utf8"));
  const arms = index.mnist.map((arm) => arm.name);
  const page = await open(browser, `${base}#look?left=softmax`);
  await answered(page);
  await page.screenshot({ path: join(pictures, "look.png"), fullPage: true });

  await test("the page is there fast", async () => {
    const fresh = await open(browser, base);
    await answered(fresh);
    const times = await fresh.evaluate(() => ({
      paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
      now: performance.now(),
    }));
    console.log(`        first paint ${Math.round(times.paint)} ms, first answer before ${Math.round(times.now)} ms`);
    await fresh.context().close();
    expect(times.paint < 1000, `first paint after ${times.paint} ms`);
    expect(times.now < 3000, `first answer after ${times.now} ms`);
  });

  await test("every mechanism of the engine is on offer", async () => {
    const listed = execFileSync(heed, ["list"], { encoding: "utf8" })
      .split("\n")
      .map((line) => /^([a-z]\w*) /.exec(line)?.[1])
      .filter(Boolean);
    const offered = await page
      .locator(".answer")
      .first()
      .locator("optgroup")
      .evaluateAll((groups) => groups.map((group) => group.label));
    expect(offered.join() === listed.join(), `on offer: ${offered}; listed: ${listed}`);
  });

  await test("what is drawn has the program's probabilities", async () => {
    await stroke(page, [
      [0.3, 0.25],
      [0.72, 0.25],
      [0.45, 0.8],
    ]);
    await settle(page);
    const [got, bytes] = [await shares(page), await seen(page)];
    const expected = predicted(runOf("mnist", "softmax"), bytes);
    got.forEach((share, c) => near(share, expected[c], 1e-4, `probability of ${c}`));
    await page.screenshot({ path: join(pictures, "drawn.png"), fullPage: true });
  });

  for (const arm of arms)
    await test(`${arm}: maps are shown and probabilities are the program's`, async () => {
      await page.locator(".answer select").first().selectOption(arm);
      await page.locator(".thumbs button").nth(3).click();
      await settle(page);
      const got = await shares(page),
        expected = predicted(runOf("mnist", arm), await seen(page));
      got.forEach((share, c) => near(share, expected[c], 1e-4, `probability of ${c}`));
      expect((await page.locator(".answer").first().locator(".failed").textContent()) === "", "an error is shown");
    });

  await test("a patch is chosen by pointer and by keys, and the address holds it", async () => {
    await page.locator(".answer select").first().selectOption("softmax");
    await answered(page);
    const patches = page.locator("svg.patches");
    await patches.click({ position: { x: 5, y: 5 } });
    await settle(page);
    expect(page.url().includes("patch=1"), page.url());
    const label = () => page.locator(".maps canvas[role=img]").first().getAttribute("aria-label");
    const before = await label();
    await patches.focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"])
      await page.keyboard.press(key);
    await settle(page);
    expect(page.url().includes("patch=25"), page.url());
    expect((await label()) !== before, "the maps are the same");
    await page.keyboard.press("Escape");
    expect(!page.url().includes("patch="), page.url());
  });

  await test("two mechanisms side by side", async () => {
    await page.getByLabel("compare two mechanisms").check();
    await page.locator(".answer:nth-of-type(2) .bars li.best").waitFor();
    await page.locator(".answer select").nth(1).selectOption("adder");
    await settle(page);
    const identity = page.getByLabel("with the identity"),
      label = () => page.locator(".answer").nth(1).locator(".maps canvas[role=img]").first().getAttribute("aria-label");
    await page.locator("svg.patches").click({ position: { x: 60, y: 60 } });
    await settle(page);
    const before = await label();
    await identity.uncheck();
    await settle(page);
    expect((await label()) !== before, "the identity makes no difference");
    await page.screenshot({ path: join(pictures, "compared.png"), fullPage: true });
    await page.getByLabel("compare two mechanisms").uncheck();
  });

  await test("the keyboard draws", async () => {
    await page.locator("canvas.pad").focus();
    await page.keyboard.press("Space");
    for (let i = 0; i < 8; ++i) await page.keyboard.press("ArrowDown");
    await settle(page);
    expect(
      (await seen(page)).some((byte) => byte > 200),
      "nothing was drawn",
    );
    await page.keyboard.press("Delete");
    await settle(page);
    expect(
      (await seen(page)).every((byte) => byte === 0),
      "not cleared",
    );
  });

  await test("an image file of one's own", async () => {
    await page.locator("#file").setInputFiles("experiments/pictures/sneaker.png");
    await settle(page);
    expect(
      (await seen(page)).some((byte) => byte > 100),
      "the image is not seen",
    );
    if (!("fashion-mnist" in index)) return console.log("        there are no models of clothes");
    await page.getByRole("button", { name: "clothes" }).click();
    await answered(page);
    await page.screenshot({ path: join(pictures, "clothes.png"), fullPage: true });
    await page.getByRole("button", { name: "digits" }).click();
  });

  await test("the first 20 steps have the program's losses", async () => {
    await page.getByRole("tab", { name: "Train" }).click();
    const command = await page.locator(".command").textContent();
    for (let i = 0; i < 20; ++i) {
      await page.getByRole("button", { name: "One step" }).click();
      await page.waitForFunction(
        (step) => document.querySelector(".state").textContent.startsWith(`Step ${step},`),
        i + 1,
      );
    }
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save curves (.csv)" }).click();
    const file = join(work, "curves.csv");
    await (await saving).saveAs(file);
    const [got, expected] = [losses(file), trainedLosses(command, 20)];
    expect(
      got.length === 20 && expected.length === 20,
      `${got.length} steps in the page, ${expected.length} by the program`,
    );
    got.forEach((loss, i) => near(loss, expected[i], 1e-4, `loss of step ${i + 1}`));
  });

  await test("training goes on, pauses, is kept, saved and reset", async () => {
    await page.getByRole("button", { name: "Train", exact: true }).click();
    await page.waitForFunction(
      () => Number(/^Step (\d+)/.exec(document.querySelector(".state").textContent)?.[1]) >= 40,
    );
    await page.getByRole("button", { name: "Pause" }).click();
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(pictures, "train.png"), fullPage: true });
    await page.getByRole("button", { name: "Keep in this browser" }).click();
    await page.getByText("is kept in this browser").waitFor();
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save run (.tar)" }).click();
    const file = join(work, "run.tar");
    await (await saving).saveAs(file);
    execFileSync("tar", ["xf", file, "-C", work]);
    const text = execFileSync(heed, ["eval", join(work, "heed-softmax"), "--path", join(site, "images/mnist")], {
      encoding: "utf8",
    });
    const right = /top-1 accuracy ([\d.]+) %/.exec(text)[1];
    const said = await page.locator(".state").textContent();
    console.log(`        heed eval: ${right} %; in the page: ${said}`);
    await page.reload();
    await page.waitForSelector("body[data-ready]");
    await page.getByRole("tab", { name: "Look" }).click();
    await page.locator(".answer select").first().selectOption("my model");
    await shares(page);
    await page.getByRole("tab", { name: "Train" }).click();
    await page.getByRole("button", { name: "Remove my model" }).click();
    await page.getByRole("button", { name: "Reset" }).click();
    await page.getByText("Not begun.").waitFor();
  });

  await test("cost follows every slider, and is that of heed cost", async () => {
    const mul = () => page.locator(".cost tr", { hasText: "multiplications" }).locator("td").textContent();
    for (const name of ["dim", "depth"]) {
      const before = await mul();
      await page.locator(`input[name=${name}]`).focus();
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction(
        (text) => document.querySelector(".cost tr:nth-child(2) td").textContent !== text,
        before,
      );
    }
    const words = (await page.locator(".command").textContent())
      .split(" ")
      .filter((word) => !["heed", "train", "--run", "my-run"].includes(word));
    const cost = JSON.parse(
      execFileSync(heed, ["cost", ...words, "--convention", "all", "--json"], { encoding: "utf8", cwd: site }),
    );
    const shown = await mul();
    expect(
      Math.abs((parseFloat(shown) * { k: 1e3, M: 1e6, G: 1e9 }[shown.at(-1)]) / cost.total.mul - 1) < 0.01,
      `${shown} in the page, ${cost.total.mul} by the program`,
    );
  });

  await test("a gradient is checked, an element is moved", async () => {
    await page.getByRole("tab", { name: "Check" }).click();
    const value = (name) => page.locator(".check-view .facts tr", { hasText: name }).locator("td").textContent();
    await page.locator(".check-view .facts").waitFor();
    const before = await value("backward pass");
    await page.getByLabel("move it by").focus();
    for (let i = 0; i < 30; ++i) await page.keyboard.press("ArrowRight");
    await page.waitForTimeout(800);
    const [analytic, numeric] = [Number(await value("backward pass")), Number(await value("by differences"))];
    expect((await value("backward pass")) !== before, "the derivative is the same");
    expect(Math.abs(analytic - numeric) < 1e-7, `${analytic} and ${numeric}`);
    await page.getByRole("button", { name: "Check every element" }).click();
    await page.getByText("agrees").first().waitFor();
    expect((await page.getByText("DIFFERS").count()) === 0, "a gradient differs");
    await page.screenshot({ path: join(pictures, "check.png"), fullPage: true });
  });

  await test("on a phone nothing is wider than the page", async () => {
    for (const view of ["look", "train", "check"]) {
      const small = await open(browser, `${base}#${view}`, phone);
      await small.waitForTimeout(1500);
      const [page_, screen] = await small.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      await small.screenshot({ path: join(pictures, `phone-${view}.png`), fullPage: true });
      await small.context().close();
      expect(page_ <= screen, `${view}: ${page_} of ${screen} pixels`);
    }
  });

  await test("controls have names", async () => {
    for (const view of ["Look", "Train", "Check"]) {
      await page.getByRole("tab", { name: view }).click();
      await page.waitForTimeout(300);
      const nameless = await page
        .locator("main button, main select, main input, main canvas[role], main svg[role]")
        .evaluateAll((all) =>
          all
            .filter(
              (one) =>
                one.offsetParent !== null &&
                !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length),
            )
            .map((one) => one.outerHTML.slice(0, 80)),
        );
      expect(nameless.length === 0, nameless.join("; "));
    }
  });

  await test("the page in one file, from disk", async () => {
    const single = await open(browser, `${pathToFileURL(join(site, "heed.html"))}#look?left=softmax&image=4`);
    const got = await shares(single);
    await page.goto(`${base}#look?left=softmax&image=4`);
    await page.reload();
    const expected = await shares(page);
    got.forEach((share, c) =>
      expect(Math.abs(share - expected[c]) < 1e-6, `probability of ${c}: ${share}, served ${expected[c]}`),
    );
    await single.context().close();
  });
}

const server = spawn("python3", ["src/web/serve.py", site, "0"]);
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
  await all(browser, base);
} finally {
  await browser.close();
  server.kill();
  rmSync(work, { recursive: true });
}
console.log(failed === 0 ? "page: all is well" : `page: ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
