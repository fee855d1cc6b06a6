// README's snippets and figures are those of the examples and of the benchmark results; its links lead somewhere.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { filesBelow, root } from "./lib/steps.mjs";
import { renderReadme } from "./readme.mjs";

test("README.md holds the examples and figures as they are", () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  assert.equal(readme, renderReadme(readme), "run `node tools/readme.mjs`");
});

test("links between documents and files lead somewhere", () => {
  const documents = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    ...filesBelow("docs", (path) => path.endsWith(".md")),
  ];
  for (const document of documents) {
    const text = readFileSync(join(root, document), "utf8");
    for (const [, target] of text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      assert.ok(
        existsSync(join(root, dirname(document), target)),
        `${document} links to ${target}, which is not there`,
      );
    }
  }
});
