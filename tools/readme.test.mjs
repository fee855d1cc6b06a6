// Documents' snippets and figures are those of the examples and of the benchmark results; their links lead somewhere.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { libraryPages } from "./library-pages.mjs";
import { filesBelow, root } from "./lib/steps.mjs";
import { filledDocuments, formatTable, peerTable, renderDocument, writtenDocuments } from "./readme.mjs";

for (const document of filledDocuments) {
  test(`${document} holds the examples and figures as they are`, () => {
    const text = readFileSync(join(root, document), "utf8");
    assert.equal(text, renderDocument(text), "run `node tools/readme.mjs`");
  });
}

for (const [document, page] of Object.entries(writtenDocuments)) {
  test(`${document} is derived from the rows as they are`, async () => {
    assert.equal(readFileSync(join(root, document), "utf8"), await page(), "run `node tools/readme.mjs`");
  });
}

test("whatever the library exports to be called has a docstring", () => {
  for (const [path, page] of Object.entries(libraryPages())) {
    const bare = [...page.matchAll(/^## (\w+)\n\n```ts\n(?:class|function|const) /gm)].map(
      ([, name]) => name,
    );
    assert.deepEqual(bare, [], path);
  }
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

test("formats: a row each with what was measured of it, all columns or the compact ones", () => {
  const machine = { cores: 2, cpu: "X", node: "v20" };
  const speed = (weightBytes, pace, ratio) => ({
    weightBytes,
    tokensPerSecond: { prefill: 10 * pace, decode1: pace, decode8: 4 * pace },
    ratio: { prefill: ratio, decode1: ratio, decode8: ratio },
    peakMemoryRatio: 1.25,
    run: { commit: "abc", date: "2026-01-02" },
  });
  const quality = {
    kl: 0.01234,
    klInterval: [0.01, 0.015],
    flips: 0.02,
    validJson: 1,
    exactJson: 0.985,
    exactCalls: 0.97,
    run: { commit: "def", date: "2026-01-01" },
  };
  const cases = [
    { name: "bf16", speed: speed(880e6, 40, 1) },
    { name: "FP8", quality, speed: { ...speed(441e6, 90.4, 2.26), target: { on: "ratio", atLeast: 1 } } },
    {
      name: "NF4",
      quality: { ...quality, klInterval: undefined },
      making: {
        seconds: 30.2,
        peakBytes: 0.84e9,
        target: { on: "peakBytes", atMost: 2.44e9 },
        run: quality.run,
      },
    },
  ];
  const result = { benchmark: "formats", machine, cases };
  const compact = formatTable(result, true).split("\n");
  assert.match(compact[0], /2026-01-01, 2026-01-02 \(abc, def\)/);
  const from = compact.findIndex((line) => line.startsWith("|"));
  assert.deepEqual(compact.slice(from, from + 5), [
    "| format | bytes | prefill 512 (≥ 1×) | decode, 1 stream (≥ 1×) | decode, 8 streams (≥ 1×) | KL | exact JSON | exact tool calls |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    "| bf16 | 880 MB | 400 (1.00×) | 40.0 (1.00×) | 160 (1.00×) |  |  |  |",
    "| FP8 | 441 MB | 904 (2.26×) | 90.4 (2.26×) | 362 (2.26×) | 0.0123 | 98.5 % | 97.0 % |",
    "| NF4 |  |  |  |  | 0.0123 | 98.5 % | 97.0 % |",
  ]);
  const whole = formatTable(result).split("\n");
  const [, , , fp8, nf4] = whole.filter((line) => line.startsWith("|"));
  assert.equal(
    fp8,
    "| FP8 | 441 MB | 904 (2.26×) | 90.4 (2.26×) | 362 (2.26×) | 1.25× |  | 0.0123 (0.0100 to 0.0150) | 2.0 % | 100.0 % | 98.5 % | 97.0 % |",
  );
  assert.match(nf4, /^\| NF4 \|  \|  \|  \|  \|  \| 0\.84 GB \(≤ 2\.44\) \| 0\.0123 \| /);

  const untimed = cases.map(({ name, quality: own }) => ({ name, quality: own }));
  const [head] = formatTable({ ...result, cases: untimed }, true).match(/^\|.*$/m);
  assert.equal(head, "| format | KL | exact JSON | exact tool calls |");
  assert.doesNotMatch(formatTable({ ...result, cases: untimed }), /tokens\/s|NaN|undefined/);
});

test("a document may ask for the rows whose name holds a text", () => {
  const rowsOf = (marker) =>
    renderDocument(`<!-- figures ${marker} -->\n<!-- /figures -->\n`)
      .split("\n")
      .filter((line) => line.startsWith("| ") && !line.startsWith("| ---"));
  const all = rowsOf("speculation");
  const some = rowsOf("speculation=suffix");
  const [header, ...rows] = some;
  assert.equal(header, all[0]);
  assert.ok(rows.length > 0 && rows.length < all.length - 1);
  assert.ok(rows.every((row) => row.includes("suffix")));
});
