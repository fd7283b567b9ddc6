// Train: curves, costs, and saved models.
import {
  allNear,
  chooseModel,
  downloaded,
  expect,
  open,
  picture,
  ready,
  seen,
  settle,
  shares,
  site,
  tab,
  test,
  work,
} from "./browser.mjs";
import { losses, predicted, runOf, said, trainedLosses } from "./program.mjs";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const button = (page, name) => page.getByRole("button", { name, exact: true });
const state = (page) => page.locator(".state").textContent();
const stepOf = async (page) => Number(/^Step (\d+)/.exec(await state(page))?.[1] ?? 0);
const command = (page) => page.locator(".command").textContent();
const trainingMaps = (page) =>
  page
    .locator(".train .maps canvas[role=img]")
    .evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")).join());

/** Trains until the step count is at least `step`, then pauses. */
async function trainTo(page, step) {
  await button(page, "Train").click();
  await page.waitForFunction(
    (step) => Number(/^Step (\d+)/.exec(document.querySelector(".state").textContent)?.[1]) >= step,
    step,
  );
  await button(page, "Pause").click();
  await settle(page);
}

async function oneStep(page) {
  const next = (await stepOf(page)) + 1;
  await button(page, "One step").click();
  await page.waitForFunction((step) => document.querySelector(".state").textContent.startsWith(`Step ${step},`), next);
}

async function program(page, base) {
  // Gradients of adder and SimA jump where a number changes sign: in deep models and at high rates, the different
  // rounding in WebAssembly has growing effects.
  for (const [mechanism, settings] of [
    ["softmax", ""],
    ["aft-full", ""],
    ["sima", "&depth=1&rate=0.001"],
    ["adder", "&rate=0.001"],
  ])
    await test(`${mechanism}: the first 20 steps have the program's losses`, async () => {
      await page.goto(`${base}#train?data=mnist&mechanism=${mechanism}${settings}`);
      await settle(page);
      for (let i = 0; i < 20; ++i) await oneStep(page);
      const file = await downloaded(page, "Save curves (.csv)", "curves.csv");
      allNear(losses(file), trainedLosses(await command(page), 20), 1e-4, "loss of step");
    });
}

/** Returns the top-1 accuracy, in percent, that `heed eval` prints for a run directory and the page's test images. */
function evaluated(run, ...more) {
  const text = said("eval", run, "--path", join(site, "images/mnist"), ...more);
  return Number(/top-1 accuracy ([\d.]+) %/.exec(text)[1]);
}

async function keeping(page) {
  await test("training goes on, the maps change, it pauses", async () => {
    await page.locator(".train .controls select").nth(1).selectOption("softmax");
    await oneStep(page);
    await settle(page);
    const before = await trainingMaps(page);
    await trainTo(page, 60);
    expect((await trainingMaps(page)) !== before, "the maps are the same");
    const step = await stepOf(page);
    await page.waitForTimeout(500);
    expect((await stepOf(page)) === step, "it goes on");
    await page.locator(".train .maps .map").first().click();
    await settle(page);
    const asked = await trainingMaps(page);
    await page.locator(".train .maps .map").first().click();
    await settle(page);
    expect((await trainingMaps(page)) !== asked, "a patch makes no difference");
    await page.locator(".train [role=group]").press("ArrowDown");
    await settle(page);
    expect((await page.locator(".train .maps rect.mark").count()) > 0, "keys choose no patch");
    await page.locator(".train [role=group]").press("Escape");
    await settle(page);
    expect((await page.locator(".train .maps rect.mark").count()) === 0, "Escape leaves a patch");
    await picture(page, "train");
  });

  await test("heed eval takes the run and the weights, and is right as often as the page says", async () => {
    const said = Number(/; ([\d.]+) % of 200 test images correct after step \d+/.exec(await state(page))[1]);
    const [run, weights] = [
      await downloaded(page, "Save run (.tar)", "run.tar"),
      await downloaded(page, "Save .safetensors", "own.safetensors"),
    ];
    execFileSync("tar", ["xf", run, "-C", work]);
    const directory = join(work, "heed-softmax");
    expect(evaluated(directory) === said, `${evaluated(directory)} % by the program, ${said} % in the page`);
    expect(evaluated(directory, "--weights", weights) === said, "the weights alone are others");
    expect(
      readFileSync(join(directory, "best.safetensors")).equals(readFileSync(weights)),
      "the run has other weights",
    );
  });

  await test("what is kept survives a reload, and can be removed", async () => {
    await page.getByLabel("Name of the model").fill("my first");
    await button(page, "Keep in this browser").click();
    await page.getByText("is kept in this browser").waitFor();
    await page.reload();
    await ready(page);
    await tab(page, "Look");
    await chooseModel(page, "my first");
    await page.locator(".thumbs button").nth(2).click();
    allNear(await shares(page), predicted(join(work, "heed-softmax"), await seen(page)), 1e-4, "probability");
    expect(page.url().includes("left=own%2Fmy+first"), page.url());
    await page.reload();
    await ready(page);
    allNear(await shares(page), predicted(join(work, "heed-softmax"), await seen(page)), 1e-4, "probability");
    await tab(page, "Train");
    await button(page, "Remove my first").click();
    await page.getByText("my first (").waitFor({ state: "detached" });
    await tab(page, "Look");
    await settle(page);
    expect((await page.locator(".answer option", { hasText: "my first" }).count()) === 0, "it is still on offer");
    await tab(page, "Train");
  });

  await test("a model of one's own takes no other's name", async () => {
    await oneStep(page);
    for (const name of ["softmax", "模", "型"]) {
      await page.getByLabel("Name of the model").fill(name);
      await button(page, "Keep in this browser").click();
      await page.getByText(`“${name}” is kept in this browser`).waitFor();
    }
    await page.reload();
    await ready(page);
    expect((await page.locator(".mine li").count()) === 3, await page.locator(".mine").textContent());
    await tab(page, "Look");
    await chooseModel(page, { value: "softmax" });
    await page.locator(".thumbs button").nth(2).click();
    allNear(await shares(page), predicted(runOf("mnist", "softmax"), await seen(page)), 1e-4, "probability");
    await tab(page, "Train");
    for (const name of ["softmax", "模", "型"]) await button(page, `Remove ${name}`).click();
    await page.waitForFunction(() => document.querySelectorAll(".mine li").length === 0);
  });

  await test("an address typed while it trains ends that training", async () => {
    await button(page, "Train").click();
    await page.waitForFunction(() => document.querySelector(".state").textContent.startsWith("Step"));
    await page.evaluate(() => (location.hash = "#train?mechanism=sima&data=toString"));
    await page.getByText("Not started.").waitFor();
    await settle(page);
    expect((await state(page)) === "Not started.", "it goes on");
  });

  await test("reset, while it trains too", async () => {
    await button(page, "Train").click();
    await page.waitForFunction(() => document.querySelector(".state").textContent.startsWith("Step"));
    await button(page, "Reset").click();
    await page.getByText("Not started.").waitFor();
    await settle(page);
    expect((await state(page)) === "Not started.", "it goes on");
    expect(await button(page, "Keep in this browser").isDisabled(), "there is something to keep");
    expect((await page.locator(".train .failed").allTextContents()).join("") === "", "an error is shown");
  });
}

async function costs(page, base) {
  /** The rows of the table: [name, number]. */
  const rows = () =>
    page
      .locator(".cost .facts tr")
      .evaluateAll((all) => all.map((row) => [row.children[0].textContent, row.children[1].textContent]));
  const row = async (name) => (await rows()).find(([called]) => called === name)?.[1];

  await test("every slider and choice changes the cost, or the command", async () => {
    await page.goto(`${base}#train?data=mnist`);
    await page.locator("input[name=dim]").waitFor();
    for (const [name, priced] of [
      ["dim", true],
      ["depth", true],
      ["heads", true],
      ["rate", false],
      ["batch", false],
    ]) {
      await settle(page);
      const [before, words] = [(await rows()).join(), await command(page)];
      const slider = page.locator(`input[name=${name}]`);
      await slider.press("ArrowRight");
      await settle(page);
      expect(((await rows()).join() !== before) === priced, `${name}: the cost ${priced ? "is the same" : "changes"}`);
      expect((await command(page)) !== words, `${name}: the command is the same`);
      expect(
        page
          .url()
          .includes(
            `${name}=${await page.evaluate((name) => document.querySelector(`input[name=${name}]`).closest("label").querySelector("output").textContent, name)}`,
          ),
        page.url(),
      );
    }
    const softmax = await row("exponentials in attention, forward");
    await page.locator(".train .controls select").nth(1).selectOption("adder");
    await settle(page);
    expect((await row("multiplications")) !== undefined, "no multiplications");
    const [adder, forward] = [await row("energy"), await row("multiplications")];
    await page.locator(".cost select").selectOption("step");
    await settle(page);
    expect((await row("multiplications")) !== forward, "a step costs as much as an answer");
    expect(softmax !== "0" && adder !== undefined, "there are no exponentials in softmax");
    await page.locator(".cost details").click();
    expect((await page.locator(".cost details tbody tr").count()) > 5, "no rows by layer");
  });

  await test("the cost is that of heed cost", async () => {
    await page.locator(".cost select").selectOption("forward");
    await settle(page);
    const words = (await command(page))
      .split(" ")
      .filter((word) => !["heed", "train", "--run", "my-run"].includes(word));
    const cost = JSON.parse(said("cost", ...words, "--convention", "all", "--json"));
    const powers = { k: 1e3, M: 1e6, G: 1e9 };
    for (const [name, key] of [
      ["multiplications", "mul"],
      ["additions", "add"],
      ["exponentials", "exp"],
    ]) {
      const shown = await row(name);
      const number = parseFloat(shown) * (powers[shown.at(-1)] ?? 1);
      expect(
        Math.abs(number / cost.total[key] - 1) < 0.006,
        `${name}: ${shown} in the page, ${cost.total[key]} by the program`,
      );
    }
    expect((await row("weights")) === cost.params.toLocaleString("en"), `${await row("weights")} weights`);
  });

  await test("the address holds what is chosen", async () => {
    const again = await open(page.context().browser(), page.url());
    await settle(again);
    expect((await command(again)) === (await command(page)), await command(again));
    await again.context().close();
  });
}

export async function train(browser, base) {
  const page = await open(browser, `${base}#train`);
  await program(page, base);
  await keeping(page);
  await costs(page, base);
  await page.context().close();
}
