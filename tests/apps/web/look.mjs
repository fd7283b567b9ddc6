// Look: drawing, images, models and their maps.
import {
  addressHas,
  allNear,
  along,
  chooseModel,
  desktop,
  expect,
  fingerStroke,
  mapLabels,
  open,
  phone,
  picture,
  seen,
  settle,
  shares,
  site,
  stroke,
  tab,
  test,
} from "./browser.mjs";
import { largestWeights, predicted, runOf, said } from "./program.mjs";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const seven = [
  [0.3, 0.25],
  [0.72, 0.25],
  [0.45, 0.8],
];
const index = JSON.parse(readFileSync(join(site, "trained/index.json"), "utf8"));
const sneaker = resolve("experiments/pictures/sneaker.png");
const button = (page, name) => page.getByRole("button", { name, exact: true });
const show = (page) => page.locator(".model-side > .bar select");
const isBlank = (bytes) => bytes.every((byte) => byte === 0);

/** Drops a file on the page, like a file manager. */
async function dropFile(page, path, type) {
  const text = readFileSync(path).toString("base64");
  await page.evaluate(
    ([base64, name, type]) => {
      const files = new DataTransfer();
      files.items.add(new File([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], name, { type }));
      for (const event of ["dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(event, { dataTransfer: files, bubbles: true, cancelable: true }));
    },
    [text, path.split("/").at(-1), type],
  );
}

async function chooseImage(page, number) {
  await page.locator(".thumbs button").nth(number).click();
  await settle(page);
}

async function program(page, base) {
  await test("what is drawn has the program's probabilities", async () => {
    await page.goto(`${base}#look?left=softmax`);
    await stroke(page, seven);
    allNear(await shares(page), predicted(runOf("mnist", "softmax"), await seen(page)), 1e-4, "probability");
    await picture(page, "drawn");
  });

  for (const [data, arms] of Object.entries(index))
    for (const { name } of arms)
      await test(`${data}, ${name}: probabilities and maps are the program's`, async () => {
        await button(page, data === "mnist" ? "digits" : "clothes").click();
        await chooseModel(page, name);
        await chooseImage(page, 3);
        const bytes = await seen(page);
        allNear(await shares(page), predicted(runOf(data, name), bytes), 1e-4, "probability");
        for (const query of [-1, 24]) {
          if (query >= 0) await page.locator("svg.patches").click();
          else await page.locator("svg.patches").press("Escape");
          const labels = await mapLabels(page);
          const weights = labels.map((label) => Number(/largest weight ([\d.e+-]+)/.exec(label)[1]));
          const expected = await largestWeights(runOf(data, name), bytes, query);
          allNear(weights, expected, 1e-4 + 1e-3 * Math.max(...expected), `largest weight, query ${query}, of map`);
        }
      });

  await test("every mechanism of the engine is on offer", async () => {
    await button(page, "digits").click();
    const listed = said("list")
      .split("\n")
      .map((line) => /^([a-z]\w*) /.exec(line)?.[1])
      .filter(Boolean);
    const groups = page.locator(".answer").first().locator("optgroup");
    const offered = await groups.evaluateAll((all) => all.map((group) => group.label));
    expect(offered.join() === listed.join(), `on offer: ${offered}; listed: ${listed}`);
  });
}

async function images(page) {
  await test("undo and clear", async () => {
    await stroke(page, seven.slice(0, 2));
    const one = await seen(page);
    await stroke(page, seven.slice(1));
    expect((await seen(page)).join() !== one.join(), "the second stroke is not seen");
    await button(page, "Undo").click();
    expect((await seen(page)).join() === one.join(), "the second stroke is still seen");
    await button(page, "Clear").click();
    expect(isBlank(await seen(page)), "not cleared");
  });

  await test("an empty sheet is no question", async () => {
    await settle(page);
    expect((await page.locator(".bars li").count()) === 0, "an empty sheet has probabilities");
    await page.getByText("Draw something, or choose an image.").waitFor();
    await chooseImage(page, 0);
    await button(page, "Undo").click();
    await button(page, "Clear").click();
    expect(!isBlank(await seen(page)), "nothing was to be undone");
  });

  await test("a click draws a dot", async () => {
    await page.locator("canvas.pad").click();
    expect(
      (await seen(page)).some((byte) => byte > 200),
      "nothing was drawn",
    );
    await button(page, "Clear").click();
  });

  await test("the keyboard draws", async () => {
    await page.locator("canvas.pad").focus();
    await page.keyboard.press("Space");
    for (let i = 0; i < 8; ++i) await page.keyboard.press("ArrowDown");
    expect(
      (await seen(page)).some((byte) => byte > 200),
      "nothing was drawn",
    );
    await page.keyboard.press("Delete");
    await page.keyboard.press("ArrowDown");
    expect(isBlank(await seen(page)), "not cleared, or the pen still down");
  });

  await test("a patch is chosen by pointer and by keys, and the address holds it", async () => {
    await chooseModel(page, "softmax");
    await chooseImage(page, 0);
    const patches = page.locator("svg.patches");
    await patches.click({ position: { x: 5, y: 5 } });
    await addressHas(page, "patch=1");
    const before = await mapLabels(page);
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"])
      await patches.press(key);
    await addressHas(page, "patch=25");
    expect((await mapLabels(page)).join() !== before.join(), "the maps are the same");
    await patches.press("Escape");
    expect(!page.url().includes("patch="), page.url());
    await page.locator(".maps .map").first().click();
    await addressHas(page, "patch=25");
    await button(page, "No patch").click();
    expect(!page.url().includes("patch="), page.url());
  });

  await test("more images, and an inverted one", async () => {
    const first = () => page.locator(".thumbs button").first().getAttribute("aria-label");
    await page.getByLabel("More images").click();
    expect((await first()).startsWith("Image 13:"), await first());
    await chooseImage(page, 1);
    await addressHas(page, "image=14");
    const bytes = await seen(page);
    await page.getByLabel("invert: dark becomes bright").check();
    const turned = await seen(page);
    expect(
      bytes.every((byte, i) => turned[i] === 255 - byte),
      "not turned round",
    );
    await addressHas(page, "inverted=yes");
    await page.getByLabel("invert: dark becomes bright").uncheck();
    await page.getByLabel("Earlier images").click();
    expect((await first()).startsWith("Image 1:"), await first());
  });

  await test("an image file of one's own, chosen and dropped", async () => {
    const data = "fashion-mnist" in index ? "fashion-mnist" : "mnist";
    await button(page, data === "mnist" ? "digits" : "clothes").click();
    await chooseModel(page, "softmax");
    const find = page.getByText("sneaker.png", { exact: false }).first();
    await page.locator("#file").setInputFiles(sneaker);
    await find.waitFor();
    const [bytes, got] = [await seen(page), await shares(page)];
    expect(!isBlank(bytes), "the image is not seen");
    allNear(got, predicted(runOf(data, "softmax"), bytes), 1e-4, "probability");
    const percent = Number(/([\d.]+) %/.exec(said("predict", runOf(data, "softmax"), sneaker))[1]);
    expect(Math.abs(percent / 100 - Math.max(...got)) < 1e-3, `${Math.max(...got)}; heed predict: ${percent} %`);
    const [best, name] = [
      page.locator(".answer").first().locator("li.best .class"),
      data === "mnist" ? /^\d$/ : /^Sneaker$/,
    ];
    expect(name.test(await best.textContent()), `taken for ${await best.textContent()}`);
    await picture(page, "own-image");
    await chooseImage(page, 0);
    await tab(page, "Check");
    await dropFile(page, sneaker, "image/png");
    await find.waitFor();
    expect((await seen(page)).join() === bytes.join(), "another image is seen when it is dropped");
    await dropFile(page, resolve("LICENSE"), "text/plain");
    await page.getByText("LICENSE is not an image that this browser can read.").waitFor();
    await button(page, "digits").click();
  });
}

async function mechanisms(page) {
  await test("two mechanisms side by side, adder's map with the identity and without", async () => {
    await button(page, "digits").click();
    await chooseModel(page, "softmax");
    await chooseImage(page, 2);
    await page.getByLabel("compare two mechanisms").check();
    await chooseModel(page, "adder", 1);
    await page.locator("svg.patches").click({ position: { x: 60, y: 60 } });
    allNear(await shares(page, 1), predicted(runOf("mnist", "adder"), await seen(page)), 1e-4, "probability");
    const before = await mapLabels(page, 1),
      left = await mapLabels(page);
    await page.getByLabel("with the identity").uncheck();
    expect((await mapLabels(page, 1)).join() !== before.join(), "the identity makes no difference");
    expect((await mapLabels(page)).join() === left.join(), "softmax has no identity");
    await picture(page, "compared");
    await page.getByLabel("with the identity").check();
    await page.getByLabel("compare two mechanisms").uncheck();
    await button(page, "No patch").click();
  });

  const pictures = {
    "aft-full": ["weights", "keys", "biases"],
    "aft-conv": ["weights", "keys", "biases"],
    "aft-local": ["biases"],
    "aft-simple": ["keys"],
    soft: ["landmarks"],
    sima: ["queries", "keys"],
  };
  const there = index.mnist.map(({ name }) => name).filter((name) => name in pictures);
  for (const arm of there)
    await test(`${arm} has more to show: ${pictures[arm].join(", ")}`, async () => {
      await chooseModel(page, arm);
      await settle(page);
      const shown = new Set([(await mapLabels(page)).join()]);
      for (const name of pictures[arm]) {
        await show(page).selectOption(name);
        const labels = await mapLabels(page);
        expect(labels.length > 1, `${name}: ${labels.length} pictures`);
        shown.add(`${name} ${labels.join()}`);
        await addressHas(page, `picture=${name}`);
        if (["aft-full", "aft-conv", "soft"].includes(arm)) await picture(page, `${arm}-${name}`);
      }
      expect(shown.size === 1 + pictures[arm].length, "pictures are alike");
      await show(page).selectOption("map");
    });
}

async function otherWays(browser, base) {
  await test("the address holds all settings", async () => {
    const page = await open(browser, `${base}#look?left=softmax`);
    if ("fashion-mnist" in index) await button(page, "clothes").click();
    await chooseModel(page, "adder");
    await chooseImage(page, 4);
    await page.getByLabel("compare two mechanisms").check();
    await chooseModel(page, "softmax", 1);
    await settle(page);
    await page.getByLabel("with the identity").uncheck();
    await page.locator("svg.patches").click({ position: { x: 40, y: 90 } });
    await settle(page);
    const state = async (at) => [
      ...(await mapLabels(at)),
      ...(await mapLabels(at, 1)),
      ...(await shares(at)),
      ...(await seen(at)),
      await at.getByLabel("with the identity").isChecked(),
      await at.locator(".segments [aria-pressed=true]").textContent(),
    ];
    const again = await open(browser, page.url());
    expect((await state(page)).join() === (await state(again)).join(), "the other page shows something else");
    expect(page.url() === again.url(), `${page.url()} became ${again.url()}`);
    for (const one of [page, again]) await one.context().close();
  });

  await test("fingers draw, choose and point", async () => {
    const page = await open(browser, `${base}#look?left=softmax`, { ...phone });
    await settle(page);
    await fingerStroke(page, along(seven));
    allNear(await shares(page), predicted(runOf("mnist", "softmax"), await seen(page)), 1e-4, "probability");
    expect((await page.evaluate(() => scrollY)) === 0, "the page was scrolled");
    await picture(page, "phone-drawn");
    await page.waitForTimeout(500); // Chromium may drop the click of a tap immediately after another touch
    await page.locator("svg.patches").tap({ position: { x: 5, y: 5 } });
    await addressHas(page, "patch=1");
    await page.locator(".thumbs button").nth(5).tap();
    await addressHas(page, "image=6");
    await page.getByRole("tab", { name: "Check" }).tap();
    await page.locator(".check-view .facts").waitFor();
    await page.context().close();
  });
}

export async function look(browser, base) {
  const page = await open(browser, `${base}#look?left=softmax`, desktop);
  await settle(page);
  await picture(page, "look");
  await program(page, base);
  await images(page);
  await mechanisms(page);
  await otherWays(browser, base);
  await page.context().close();
}
