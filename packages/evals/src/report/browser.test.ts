import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { chromiumPath, noChromium, smallScreenProblems } from "@octavo/report/testing/small-screen";
import { type Browser, chromium, type Page } from "playwright-core";
import { renderReportHtml } from "./page.js";
import type { EvalReport } from "./report.js";
import { hostileText, sampleCase, sampleCheck, sampleReport } from "./testing/sample-report.js";

let browser: Browser | undefined;
let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-report-"));
  if (chromiumPath !== undefined)
    browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox"] });
});
after(async () => {
  await browser?.close();
  await rm(folder, { recursive: true });
});

interface Opened {
  readonly page: Page;
  /** What the browser complained of, and what it asked the network for. */
  readonly complaints: string[];
}

async function open(html: string, options: Parameters<Browser["newPage"]>[0] = {}): Promise<Opened> {
  assert.ok(browser !== undefined);
  const path = join(folder, `${Math.random()}.html`);
  await writeFile(path, html);
  const page = await browser.newPage({ reducedMotion: "reduce", ...options });
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (!/^(?:file|data):/.test(request.url())) complaints.push(request.url());
  });
  await page.goto(pathToFileURL(path).href);
  return { page, complaints };
}

/** Pairs of text and ground that are hard to read: contrast below WCAG's 4.5, by class and words. */
const poorContrast = `(() => {
  const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
  const poor = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const words = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
    if (words === "" || element.closest("script, style, .skip, [hidden]") !== null) continue;
    const isSvg = element.namespaceURI.endsWith("svg");
    if (isSvg && element.tagName !== "text") continue;
    let ground = [0, 0, 0, 0];
    for (let at = element; at !== null && ground[3] === 0; at = at.parentElement) ground = rgba(getComputedStyle(at).backgroundColor);
    const style = getComputedStyle(element);
    const [a, b] = [light(rgba(isSvg ? style.fill : style.color)), light(ground)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) poor.add(element.className + " " + words.slice(0, 30) + " " + contrast.toFixed(2));
  }
  return [...poor];
})()`;

test("the page requests nothing and violates none of its own policy", { skip: noChromium }, async () => {
  const { page, complaints } = await open(renderReportHtml(sampleReport()));
  assert.equal(await page.title(), "fail: octavo-mini in 4 bits against bf16");
  assert.equal(await page.locator("section.check").count(), 10);
  assert.ok(await page.locator("form.filter").isVisible(), "the script runs under the policy");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("hostile text stays text", { skip: noChromium }, async () => {
  const { page, complaints } = await open(
    renderReportHtml(
      sampleReport({
        name: hostileText,
        warnings: [hostileText],
        checks: [sampleCheck("quantization", "fail", hostileText)],
        cases: [sampleCase(0, hostileText)],
      }),
    ),
  );
  assert.doesNotMatch(await page.title(), /^owned/);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("script").count(), 1);
  assert.deepEqual(complaints, []);
  await page.close();
});

for (const colorScheme of ["light", "dark"] as const)
  test(`all text can be read in the ${colorScheme} theme`, { skip: noChromium }, async () => {
    const { page } = await open(renderReportHtml(sampleReport()), { colorScheme });
    assert.deepEqual(await page.evaluate(poorContrast), []);
    await page.close();
  });

test("the theme can be switched", { skip: noChromium }, async () => {
  const { page } = await open(renderReportHtml(sampleReport()), { colorScheme: "light" });
  const paper = (): Promise<string> => page.evaluate("getComputedStyle(document.body).backgroundColor");
  const light = await paper();
  await page.locator("button.theme").click();
  assert.notEqual(await paper(), light);
  await page.locator("button.theme").click();
  assert.equal(await paper(), light);
  await page.close();
});

test(
  "two thousand cases are filtered by state and by words, and open with the keyboard",
  { skip: noChromium },
  async () => {
    const cases = Array.from({ length: 2000 }, (_, index) => sampleCase(index, index === 77 ? " zebra" : ""));
    const { page, complaints } = await open(renderReportHtml(sampleReport({ cases, numCases: 2000 })));
    const shown = (): Promise<number> =>
      page.evaluate("document.querySelectorAll('.cases > details:not([hidden])').length");
    assert.equal(await shown(), 2000);
    await page.getByRole("radio", { name: /^regressed/ }).check();
    await page.locator("output", { hasText: / of 2000 cases/ }).waitFor();
    const numRegressed = await shown();
    assert.ok(numRegressed > 100 && numRegressed < 400);
    await page.getByRole("radio", { name: /^all/ }).check();
    await page.getByRole("searchbox").fill("zebra");
    await page.locator("output", { hasText: /^\s*1 of 2000 cases/ }).waitFor();
    assert.equal(await shown(), 1);
    const summary = page.locator(".cases > details:not([hidden]) > summary");
    await summary.focus();
    await page.keyboard.press("Enter");
    assert.ok(await page.locator(".cases > details[open] .answer").first().isVisible());
    assert.deepEqual(complaints, []);
    await page.close();
  },
);

test("charts give their figures to screen readers", { skip: noChromium }, async () => {
  const { page } = await open(renderReportHtml(sampleReport()));
  const unnamed = await page.evaluate(
    "[...document.querySelectorAll('svg:not([aria-hidden]), [role=region], [role=listitem], form, nav, aside')].filter((element) => !element.getAttribute('aria-label')).length",
  );
  assert.equal(unnamed, 0);
  assert.equal(await page.locator("h1").count(), 1);
  const step = page
    .locator("#check-jitter")
    .getByRole("listitem", { name: /138 ms, 1900 prompt and 32 decode tokens, blamed/ });
  assert.equal(await step.count(), 1);
  await page.close();
});

test("small screens scroll only downwards, and paper has every check", { skip: noChromium }, async () => {
  const { page } = await open(renderReportHtml(sampleReport()), { viewport: { width: 390, height: 800 } });
  // Names that differ in their last letters alone.
  const [one, two] = ["A", "B"].map((letter) => `${"customer-support-assistant-".repeat(3)}${letter}`);
  const named = JSON.stringify(sampleReport())
    .replaceAll('"baseline"', `"${one}"`)
    .replaceAll('"candidate"', `"${two}"`);
  const report = JSON.parse(
    named
      .replaceAll(`"role":"${one}"`, '"role":"baseline"')
      .replaceAll(`"role":"${two}"`, '"role":"candidate"'),
  ) as EvalReport;
  const html = renderReportHtml(report);
  assert.deepEqual(await smallScreenProblems(html, [one!, two!]), []);
  const labels = [...html.matchAll(/<text class="name"[^>]*>([^<]*)</g)].map(([, label = ""]) => label);
  assert.equal(
    labels.filter((label) => label.endsWith("-A")).length,
    labels.filter((label) => label.endsWith("-B")).length,
  );
  assert.ok(
    labels.some((label) => label.endsWith("assistant-A")),
    labels.join("\n"),
  );
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("form.filter").isVisible(), false);
  assert.ok(await page.locator("#check-tenant-fairness .summary").isVisible());
  const pdf = await page.pdf({ format: "A4", printBackground: true });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  await page.close();
});
