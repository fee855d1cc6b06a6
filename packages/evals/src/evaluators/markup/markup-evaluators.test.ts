import assert from "node:assert/strict";
import test from "node:test";
import { sampleOf, valueOf } from "../testing/sample.js";
import { linksIn } from "./links.js";
import { markupEvaluators } from "./markup-evaluators.js";

test("links are found and held to what is allowed", async () => {
  const hosts = { name: "valid_links", options: { hosts: ["example.com", "*.example.org"] } };
  for (const [spec, output, value] of [
    ["contains_valid_link", "see https://example.com/a.", 1],
    ["contains_valid_link", "see [here](http://localhost:3000)", 1],
    ["contains_valid_link", "see example.com", 0],
    ["contains_valid_link", "see https://nowhere", 0],
    ["contains_valid_link", "see https://exa_mple..com", 0],
    ["contains_valid_link", "ftp://example.com", 0],
    ["valid_links", "none", "skipped"],
    ["valid_links", "https://example.com and https://-bad-.com", 0],
    [hosts, "https://EXAMPLE.com/x https://a.b.example.org", 1],
    [hosts, "https://example.org", 0],
    [hosts, "https://example.com.evil.net", 0],
    [hosts, "https://example.com@evil.net/", 0],
    [{ name: "valid_links", options: { httpsOnly: true } }, "http://example.com", 0],
  ] as const) {
    assert.equal(await valueOf(markupEvaluators, spec, sampleOf({ output })), value, output);
  }
});

test("a link ends where the sentence around it goes on", () => {
  assert.deepEqual(
    linksIn(
      'At (https://en.wikipedia.org/wiki/Octavo_(book)), **https://a.com/b**; "http://c.de?x=1,2" or <https://d.fr>! https://a.com/b',
    ),
    ["https://en.wikipedia.org/wiki/Octavo_(book)", "https://a.com/b", "http://c.de?x=1,2", "https://d.fr"],
  );
  assert.equal(linksIn(`https://a.com/${")".repeat(100_000)}`).length, 1);
});

test("code is told from prose, and its language from others", async () => {
  const typescript = { name: "contains_code", options: { language: "typescript" } };
  const listed = { name: "code_fence_language", options: { languages: ["python", "sql"] } };
  for (const [spec, output, value] of [
    ["contains_code", "```\nx = 1\n```", 1],
    ["contains_code", "```\n\n```", 0],
    ["contains_code", "const a = 1;\nconsole.log(a);", 1],
    ["contains_code", "def f(x):\n    return (x)\n", 1],
    ["contains_code", "<div class='a'>x</div>\n<p>y</p>", 1],
    ["contains_code", "I import wine from France.\nLet me return to this: it is (almost) done.", 0],
    [typescript, "```ts\nlet a;\n```", 1],
    [typescript, "```js\nlet a;\n```", 0],
    ["code_fence_language", "text", "skipped"],
    ["code_fence_language", "```\nx\n```", 0],
    [listed, "```py\nx\n```\n~~~sql\ny\n~~~", 1],
    [listed, "```constructor\nx\n```", 0],
  ] as const) {
    assert.equal(await valueOf(markupEvaluators, spec, sampleOf({ output })), value, output);
  }
});
