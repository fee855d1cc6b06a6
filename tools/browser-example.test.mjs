// The page of examples/browser in Chromium, on the software GPU that Chromium brings: the whole engine, and the CPU's tokens.
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { chromium } from "playwright-core";
import { LLM } from "@octavo/engine";
import { servePage } from "../examples/browser/site.mjs";
import { chromiumPath, noChromium } from "../packages/report/dist/testing/small-screen.js";
import { join } from "node:path";
import { root } from "./lib/steps.mjs";

const model = join(root, "models/octavo-mini");
/** A step of the software GPU takes a third of a second of processor time. */
const maxTokens = 3;
const questions = ["Hello!", "Name three colors."];
const flags = [
  "--no-sandbox",
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--enable-features=Vulkan",
  // nine tenths of the time to compile; the kernels write workgroup memory before they read it
  "--enable-dawn-features=disable_workgroup_init",
];

suite("the page in Chromium", { skip: noChromium, timeout: 300_000 }, () => {
  let server;
  let browser;
  let page;
  let url;
  let expected;
  const requested = new Set();
  const problems = [];

  before(async () => {
    const llm = await LLM.load(model, { maxModelLen: 2048 });
    expected = await Promise.all(
      questions.map((content) =>
        llm.chat([{ role: "user", content }], { temperature: 0, maxTokens }).result(),
      ),
    );
    await llm[Symbol.asyncDispose]();
    server = await servePage(model);
    url = `http://127.0.0.1:${server.address().port}`;
    browser = await chromium.launch({ executablePath: chromiumPath, args: flags });
    page = await browser.newPage({ viewport: { width: 390, height: 800 } });
    page.setDefaultTimeout(280_000);
    page.on("request", (request) => requested.add(new URL(request.url()).origin));
    page.on("pageerror", (error) => problems.push(error.message));
    page.on(
      "response",
      (response) => response.ok() || problems.push(`${response.status()} ${response.url()}`),
    );
    await page.goto(url);
    await page.locator("#send:enabled, #state.failed").first().waitFor();
  });
  after(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  });

  const stateOf = (shown) => shown.locator("#state").textContent();

  test("a message is answered with what the CPU answers, and fits a small screen", async () => {
    assert.match(await stateOf(page), /swiftshader is ready/);
    await page.fill("#message", questions[0]);
    await page.fill("#max-tokens", String(maxTokens));
    await page.click("#send");
    await page.locator("#state", { hasText: "tokens in" }).waitFor();
    const [{ text, usage }] = expected;
    assert.equal(usage.completionTokens, maxTokens);
    assert.equal(await page.locator("li.assistant").textContent(), text);
    assert.ok(
      (await stateOf(page)).startsWith(`${usage.promptTokens} tokens in, ${usage.completionTokens} out`),
    );
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  });

  test("what a page does not have refuses by name", async () => {
    const said = await page.evaluate(async () => {
      const content = "a ".repeat(5_000);
      const tooLong = await llm
        .chat([{ role: "user", content }])
        .result()
        .catch((error) => error.message);
      const { LLM: Again } = await import("@octavo/engine");
      const elsewhere = await Again.load("/other", { device: "webgpu" }).catch(({ code }) => code);
      return { tooLong, elsewhere };
    });
    assert.equal(said.tooLong, "node:worker_threads has no Worker in a browser.");
    assert.equal(said.elsewhere, "artifact_not_found");
  });

  test("requests at once give the CPU's tokens, and one that is stopped gives its blocks back", async () => {
    const { answers, stopped, stats } = await page.evaluate(
      async ({ contents, most }) => {
        const ask = (content, options) =>
          llm.chat([{ role: "user", content }], { temperature: 0, ...options });
        const stop = new AbortController();
        const begun = [];
        const endless = async () => {
          const options = { maxTokens: 1_000, ignoreEos: true, signal: stop.signal };
          for await (const { tokens } of ask(contents[0], options)) {
            begun.push(...tokens);
            if (begun.length >= most) stop.abort();
          }
        };
        const ending = endless().catch(({ code }) => code);
        const whole = await ask(contents[1], { maxTokens: most });
        const how = await ending;
        // a stopped request's blocks are free within a step
        while (llm.engine.stats.running > 0) await new Promise((resume) => setTimeout(resume, 20));
        llm.engine.checkIntegrity();
        const tokens = [begun.slice(0, most), [...whole.sequences[0].tokens]];
        return { answers: tokens, stopped: how, stats: llm.engine.stats };
      },
      { contents: questions, most: maxTokens },
    );
    assert.deepEqual(
      answers,
      expected.map(({ sequences }) => [...sequences[0].tokens]),
    );
    assert.equal(stopped, "request_cancelled");
    assert.equal(stats.freeBlocks + stats.cachedBlocks, stats.totalBlocks);
  });

  test("nothing is asked of another host, and nothing is missing", () => {
    assert.deepEqual([...requested], [url]);
    assert.deepEqual(problems, []);
  });

  test("a browser without WebGPU is told so", async () => {
    const other = await browser.newPage();
    await other.addInitScript(() => Object.defineProperty(Navigator.prototype, "gpu", { value: undefined }));
    await other.goto(url);
    await other.locator("#state.failed").waitFor();
    assert.match(await stateOf(other), /has no WebGPU/);
    assert.ok(await other.locator("#send").isDisabled());
  });
});
