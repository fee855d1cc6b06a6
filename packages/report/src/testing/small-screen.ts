import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

/** Of a machine that has it; pages can be looked at only there. */
export const chromiumPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  (path) => existsSync(path),
);

/** Why tests of pages skip. */
export const noChromium: string | false =
  chromiumPath === undefined ? "no Chromium on this machine (apt-get install chromium)" : false;

/** What leaves a screen sideways, charts that scroll or are shrunk, text that is cut, leaves its drawing or covers another, and short words broken over lines; all details are open. */
const problems = `(() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  const found = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    found.push("the page is " + root.scrollWidth + " px wide");
    for (const element of document.querySelectorAll("body *"))
      if (element.closest(".scroll, .skip") === null && element.getBoundingClientRect().right > root.clientWidth + 1)
        found.push(element.tagName + "." + element.getAttribute("class") + " " + element.textContent.trim().slice(0, 40));
  }
  for (const element of document.querySelectorAll("body *")) {
    const { overflowX, textOverflow } = getComputedStyle(element);
    const isCut = (overflowX === "hidden" || overflowX === "clip") && element.scrollWidth > element.clientWidth + 1;
    // a line that opens to the whole text may be cut
    if (isCut && element.closest(".skip, summary") === null) found.push("cut (" + textOverflow + "): " + element.textContent.trim().slice(0, 40));
  }
  for (const box of document.querySelectorAll(".scroll:has(svg)"))
    if (box.scrollWidth > box.clientWidth) found.push("scrolls sideways: " + box.getAttribute("aria-label"));
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node.parentElement.closest("script, style, svg, .skip") !== null) continue;
    // a word may go on in the next element
    const isInline = getComputedStyle(node.parentElement).display === "inline";
    const [goesOnBefore, goesOnAfter] = [node.previousSibling, node.nextSibling].map((next) => isInline || next !== null);
    for (const { 0: word, index } of node.data.matchAll(/(?<![^\\s-])[\\w.%]{2,16}(?![^\\s-])/g)) {
      if ((goesOnBefore && index === 0) || (goesOnAfter && index + word.length === node.length)) continue;
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) found.push("broken: " + word);
    }
  }
  for (const svg of document.querySelectorAll("svg")) {
    const outer = svg.getBoundingClientRect();
    if (outer.width > 0 && outer.width < svg.getAttribute("width") - 1)
      found.push("shrunk to " + outer.width + " px: " + svg.getAttribute("aria-label"));
    const words = [...svg.querySelectorAll("text")].map((text) => ({ said: text.textContent.trim().slice(0, 40), box: text.getBoundingClientRect() })).filter(({ box }) => box.width > 0);
    for (const [index, { said, box }] of words.entries()) {
      if (box.left < outer.left - 1 || box.right > outer.right + 1) found.push("leaves its drawing: " + said);
      for (const { said: other, box: next } of words.slice(index + 1))
        if (Math.min(box.right, next.right) - Math.max(box.left, next.left) > 1 && Math.min(box.bottom, next.bottom) - Math.max(box.top, next.top) > 4)
          found.push("overlap: " + said + " | " + other);
    }
  }
  return found.slice(0, 10);
})()`;

/** What is wrong with a page on a screen of 390 pixels, and which of `words` nobody could read there. */
export async function smallScreenProblems(
  html: string,
  words: readonly string[] = [],
): Promise<readonly string[]> {
  if (chromiumPath === undefined) return [];
  const folder = await mkdtemp(join(tmpdir(), "octavo-page-"));
  const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox"] });
  try {
    const path = join(folder, "page.html");
    await writeFile(path, html);
    const page = await browser.newPage({ viewport: { width: 390, height: 800 }, reducedMotion: "reduce" });
    await page.goto(pathToFileURL(path).href);
    const found: string[] = await page.evaluate(problems);
    for (const word of words)
      if (!(await page.getByText(word, { exact: false }).first().isVisible()))
        found.push(`not to be read: ${word}`);
    return found;
  } finally {
    await browser.close();
    await rm(folder, { recursive: true });
  }
}
