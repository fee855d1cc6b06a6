// Documents' snippets and figures are those of the examples and of the benchmark results; their links lead somewhere.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { filesBelow, root } from "./lib/steps.mjs";
import { filledDocuments, peerTable, renderDocument } from "./readme.mjs";

for (const document of filledDocuments) {
  test(`${document} holds the examples and figures as they are`, () => {
    const text = readFileSync(join(root, document), "utf8");
    assert.equal(text, renderDocument(text), "run `node tools/readme.mjs`");
  });
}

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

test("figures beside peers: a row each, with the share of the machine's limit, ratios and bounds", () => {
  const run = { commit: "abc" };
  const machine = { cores: 2, cpu: "X", node: "v20" };
  const limit = { name: "readGBps", octavoShare: 0.874 };
  const decode = { name: "decode", unit: "tokens/s", octavo: 85.2, limit, run };
  const cases = [
    { ...decode, target: { on: "share of limit", atLeast: 0.85 } },
    { ...decode, peerName: "node-llama-cpp", ratio: 2.5, target: { on: "ratio", atLeast: 1.8 } },
    { ...decode, peerName: "llama.cpp", ratio: 2 },
    { name: "step", unit: "%", octavo: 3.14, run, target: { on: "octavo", atMost: 5 } },
  ];
  const lines = peerTable({ benchmark: "cpu", machine, commit: "abc", date: "2026-01-01", cases }).split(
    "\n",
  );
  assert.deepEqual(lines.slice(2, 6), [
    "| | Octavo | of the machine's limit | ratio to llama.cpp | ratio to node-llama-cpp |",
    "| --- | ---: | ---: | ---: | ---: |",
    "| decode | 85.2 tokens/s | 87 % of read bandwidth (≥ 85 %) | 2.00× | 2.50× (≥ 1.8×) |",
    "| step | 3.14 % (≤ 5) |  |  |  |",
  ]);
});
