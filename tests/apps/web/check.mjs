// Check: gradients compared with finite differences, and the adder's surrogate gradients.
import { expect, open, picture, settle, test } from "./browser.mjs";

const select = (page, name) => page.locator(".check-view .field", { hasText: name }).locator("select");
const value = async (page, name) => {
  await settle(page);
  return Number(await page.locator(".check-view .facts tr", { hasText: name }).locator("td").textContent());
};
const byPass = (page) => value(page, "backward pass");
const byDifferences = (page) => value(page, "by finite differences");

async function agree(page, what) {
  const [analytic, numeric] = [await byPass(page), await byDifferences(page)];
  expect(Math.abs(analytic - numeric) <= 1e-6 * Math.max(1, Math.abs(numeric)), `${what}: ${analytic} and ${numeric}`);
}

export async function check(browser, base) {
  const page = await open(browser, `${base}#check`);
  await page.locator(".check-view .facts").waitFor();

  await test("an element is moved, and its derivative with it", async () => {
    const before = await byPass(page);
    for (let i = 0; i < 30; ++i) await page.getByLabel("move it by").press("ArrowRight");
    await agree(page, "moved");
    expect((await byPass(page)) !== before, "the derivative is the same");
    const other = await byPass(page);
    await page.getByLabel("element", { exact: false }).first().press("End");
    await agree(page, "the last element");
    expect((await byPass(page)) !== other, "another element has the same derivative");
    await select(page, "Tensor").selectOption({ index: 2 });
    await agree(page, "another tensor");
    await picture(page, "check-moved");
  });

  await test("the address holds what is checked", async () => {
    const again = await open(browser, page.url());
    await again.locator(".check-view .facts").waitFor();
    expect((await byPass(again)) === (await byPass(page)), `${page.url()} and ${again.url()}`);
    await again.context().close();
  });

  await test("a chart shows its values by keys", async () => {
    const chart = page.locator(".check-view figure").first();
    await chart.locator("svg.chart").press("ArrowLeft");
    expect((await chart.locator(".values").textContent()).includes("weighted sum of the outputs"), "nothing is said");
    await chart.locator("svg.chart").press("Escape");
    expect((await chart.locator(".values").textContent()) === "", "it is still said");
  });

  const mechanisms = await select(page, "Mechanism").locator("option").allTextContents();
  for (const name of mechanisms)
    await test(`${name}: every setting's gradients agree`, async () => {
      await select(page, "Mechanism").selectOption(name);
      await settle(page);
      const settings = await select(page, "Setting").locator("option").count();
      for (let i = 0; i < settings; ++i) {
        await select(page, "Setting").selectOption({ index: i });
        await settle(page);
        const surrogate = await page.locator(".check-view .results > .note").textContent();
        if (!surrogate) await agree(page, `setting ${i}`);
        await page.getByRole("button", { name: "Check every element" }).click();
        await settle(page);
        const verdicts = await page
          .locator(".check-view .results table")
          .last()
          .locator("td:last-child")
          .allTextContents();
        expect(verdicts.length > 0, `setting ${i}: no rows`);
        expect(
          verdicts.every((one) => one === (surrogate ? "not a derivative" : "agrees")),
          `setting ${i}: ${verdicts}`,
        );
      }
    });

  await test("the adder's surrogate gradients as a picture", async () => {
    const chart = page.locator(".adder figure");
    expect((await chart.locator("path.line").count()) === 5, "there are not five lines");
    await chart.locator("svg.chart").press("End");
    const text = await chart.locator(".values").textContent();
    for (const part of ["u = w - x 2.5", "sign 1", "hardtanh 1", "hardtanh -1", "full -2.5"])
      expect(text.includes(part), `no ${part} in: ${text}`);
    await picture(page, "check");
  });
  await page.context().close();
}
