// The page in headless Chromium, compared with the program: make web-test. Arguments: the directory of the page, the
// program, the native engine (ask.cpp), and a directory for pictures.
import { check } from "./check.mjs";
import {
  complaints,
  desktop,
  expect,
  open,
  phone,
  picture,
  ready,
  runAll,
  seen,
  settle,
  shares,
  site,
  tab,
  test,
} from "./browser.mjs";
import { look } from "./look.mjs";
import { train } from "./train.mjs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const views = ["look", "train", "check"];

async function speed(browser, base) {
  await test("the page is there fast", async () => {
    const times = [];
    for (let i = 0; i < 5; ++i) {
      const page = await open(browser, base);
      await shares(page);
      const { paint, now } = await page.evaluate(() => ({
        paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
        now: performance.now(),
      }));
      times.push([paint, now].map(Math.round));
      await page.context().close();
    }
    const [paint, now] = [0, 1].map((i) => times.map((one) => one[i]).sort((a, b) => a - b)[2]);
    console.log(`        medians of 5: first paint ${paint} ms, first answer before ${now} ms`);
    expect(paint < 1000, `first paint after ${paint} ms`);
    expect(now < 3000, `first answer after ${now} ms`);
  });
}

/** Opens a view and waits until it has content. */
async function filled(browser, base, view, options) {
  const page = await open(browser, `${base}#${view}${view === "look" ? "?left=softmax&right=sima" : ""}`, options);
  if (view === "train")
    for (let i = 0; i < 3; ++i) {
      await page.getByRole("button", { name: "One step" }).click();
      await settle(page);
    }
  if (view === "check") await page.locator(".check-view .facts").waitFor();
  await settle(page);
  return page;
}

async function looks(browser, base) {
  for (const colorScheme of ["light", "dark"])
    for (const [size, options] of Object.entries({ desktop, phone }))
      for (const view of views)
        await test(`${view}, ${size}, ${colorScheme}: fits, and axe-core has no complaints`, async () => {
          const page = await filled(browser, base, view, { ...options, colorScheme });
          await picture(page, `${size}-${colorScheme}-${view}`);
          const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          expect(wide <= screen, `${wide} of ${screen} pixels`);
          const found = await complaints(page);
          expect(found.length === 0, found.join("; "));
          await page.context().close();
        });
}

async function ways(browser, base) {
  await test("tabs by keys, and by an address typed in", async () => {
    const page = await open(browser, base);
    await settle(page);
    await page.getByRole("tab", { name: "Look" }).press("ArrowRight");
    expect(await page.locator("#view-train").isVisible(), "Train is not shown");
    await page.keyboard.press("ArrowLeft");
    expect(await page.locator("#view-look").isVisible(), "Look is not shown");
    await page.goto(`${base}#check?mechanism=aft`);
    await page.locator(".check-view .facts").waitFor();
    expect((await page.locator(".check-view select").first().inputValue()) === "aft", "another mechanism");
    await page.context().close();
  });

  await test("an address of nonsense is a page of what there is", async () => {
    const page = await open(browser, `${base}#look?data=toString&image=1.5&patch=1000&left=unknown&picture=none`);
    await settle(page);
    const said = await page.locator(".image-side .note").first().textContent();
    expect(said.startsWith("Test image 1:") && said.includes("attention of the class token"), said);
    await page.getByText("There is no model “unknown” here").waitFor();
    expect(!page.url().includes("patch="), page.url());
    await page.context().close();
  });

  await test("all of Look can be reached by the tab key", async () => {
    const page = await open(browser, base);
    await settle(page);
    const reached = new Set();
    for (let i = 0; i < 60; ++i) {
      await page.keyboard.press("Tab");
      const place = await page.evaluate(() => {
        const one = document.activeElement;
        return one === document.body
          ? null
          : one.id ||
              one.getAttribute("aria-label") ||
              one.textContent.trim().slice(0, 30) ||
              one.closest("label")?.textContent;
      });
      if (place === null) break;
      reached.add(place);
    }
    for (const name of [
      "tab-look",
      "Undo",
      "Clear",
      "file",
      "Model",
      "invert: dark becomes bright",
      "compare two mechanisms",
    ])
      expect(reached.has(name), `not reached: ${name}; reached: ${[...reached].join(", ")}`);
    await page.context().close();
  });

  await test("several threads where the server isolates the page, and the same maps with one", async () => {
    const page = await open(browser, `${base}#look?left=softmax&image=4`);
    const status = await page.locator("#status").textContent();
    const cores = await page.evaluate(() => [globalThis.crossOriginIsolated, navigator.hardwareConcurrency]);
    expect(cores[0], "the page is not isolated");
    expect(cores[1] === 1 || status.includes(`${cores[1]} threads`), status);
    const served = await shares(page);
    const single = await open(browser, `${pathToFileURL(join(site, "heed.html"))}#look?left=softmax&image=4`);
    expect((await single.locator("#status").textContent()).includes("one thread"), "not one thread");
    expect((await shares(single)).join() === served.join(), "other probabilities in the single file");
    expect((await seen(single)).join() === (await seen(page)).join(), "another image in the single file");
    for (const one of [page, single]) await one.context().close();
  });

  await test("the page in one file trains, checks and keeps its settings", async () => {
    const page = await open(browser, pathToFileURL(join(site, "heed.html")).href);
    await picture(page, "single");
    await tab(page, "Train");
    await page.getByRole("button", { name: "One step" }).click();
    await page.waitForFunction(() => document.querySelector(".state").textContent.startsWith("Step 1,"));
    await tab(page, "Check");
    await page.locator(".check-view .facts").waitFor();
    await page.reload();
    await ready(page);
    expect(await page.locator("#view-check").isVisible(), "another view after a reload");
    await page.context().close();
  });
}

await runAll(async (browser, base) => {
  await speed(browser, base);
  await look(browser, base);
  await train(browser, base);
  await check(browser, base);
  await looks(browser, base);
  await ways(browser, base);
});
