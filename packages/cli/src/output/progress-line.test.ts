import assert from "node:assert/strict";
import test from "node:test";
import { createLoadLine } from "./load-line.js";
import { createLoadingLine } from "./loading-line.js";
import { createOptimizeLine } from "./optimize-line.js";
import { createTerminalLine } from "./progress-line.js";
import { createQuantizeLine } from "./quantize-line.js";

// the lines that are redrawn; CI may have a dumb terminal
process.env["TERM"] = "xterm";

/** What a terminal of so many columns, or a pipe, is written. */
function written(columns: number | undefined, draw: (stream: Stream) => void): string {
  let text = "";
  draw({ isTTY: columns !== undefined, columns: columns ?? 0, write: (part) => (text += part) });
  return text;
}

interface Stream {
  readonly isTTY: boolean;
  readonly columns: number;
  write(text: string): unknown;
}

const layer = "model.layers.31.block_sparse_moe.experts.7.w1.weight";

/** Every command's line, with the longest texts that it writes. */
const lines: Readonly<Record<string, (stream: Stream) => void>> = {
  loading(stream) {
    const line = createLoadingLine(stream);
    line.update({ phase: "loading weights", doneBytes: 0, totalBytes: 2 ** 37 });
    line.update({ phase: "loading weights", doneBytes: 2 ** 37, totalBytes: 2 ** 37 });
    line.end();
  },
  downloading(stream) {
    const line = createLoadingLine(stream);
    const download = {
      name: "organisation-with-a-long-name/model-with-a-much-longer-name-8x22b-instruct",
      numFiles: 100,
      finishedFiles: 50,
      receivedBytes: 5e11,
      presentBytes: 0,
      totalBytes: 1e12,
      elapsedMs: 200_000,
      done: false,
    };
    line.update({ phase: "downloading", doneBytes: 0, totalBytes: 1, download });
    line.end();
  },
  "sending load"(stream) {
    const line = createLoadLine(stream);
    line.update({ sent: 900_000, ended: 500_000, failed: 123_456, total: 1_000_000 });
    line.update({ sent: 1_000_000, ended: 1_000_000, failed: 123_456, total: 1_000_000 });
    line.end();
  },
  quantizing(stream) {
    const line = createQuantizeLine(stream);
    const at = { elapsedMs: 1, unit: layer, doneUnits: 1000, totalUnits: 1002, leftMs: 86_399_000 };
    line.update({ share: 0.5, ...at });
    line.update({ share: 1, ...at });
    line.end();
  },
  optimizing(stream) {
    const line = createOptimizeLine(stream);
    const scores = { numValidated: 999, seedScore: 0.5, bestScore: 0.75 };
    line.update({
      phase: "search",
      share: 0.5,
      spent: { calls: 100_000 },
      ...scores,
    } as Parameters<typeof line.update>[0]);
    line.end();
  },
};

for (const [name, draw] of Object.entries(lines))
  test(`${name}: no line is wider than its terminal, and pipes get no escapes`, () => {
    for (const columns of [20, 80, 120]) {
      const text = written(columns, draw);
      // oxlint-disable-next-line no-control-regex -- the escape that clears a line
      for (const line of text.split(/[\r\n]|\u001b\[2?K/))
        assert.ok(line.length < columns, `${line.length} of ${columns}: ${line}`);
      assert.ok(text.includes("\r"), "it is redrawn");
    }
    const piped = written(undefined, draw);
    // oxlint-disable-next-line no-control-regex -- what a pipe must not get
    assert.doesNotMatch(piped, /[\r\u001b]/);
    assert.ok(piped.split("\n").length < 5, "a few lines");
  });

test("elsewhere a line at every tenth and for news, whole however long", () => {
  const text = written(undefined, (stream) => {
    const line = createTerminalLine(stream);
    for (let step = 0; step <= 1000; step += 1)
      line.update({ share: step / 1000, text: `${step} ${layer}`, isNews: step === 55 });
    line.update({ share: 1, text: "again" });
    line.end();
  });
  const said = text.trimEnd().split("\n");
  assert.deepEqual(
    said.map((line) => Number(line.split(" ")[0])),
    [0, 55, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000],
  );
  assert.ok(said.every((line) => line.endsWith(layer)));
});
