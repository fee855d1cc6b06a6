import assert from "node:assert/strict";
import test from "node:test";
import { createLoadingLine } from "./loading-line.js";

// the lines that are redrawn; CI may have a dumb terminal
process.env["TERM"] = "xterm";

test("a warning has a line of its own", () => {
  for (const isTTY of [false, true]) {
    let text = "";
    const line = createLoadingLine({ isTTY, write: (part) => (text += part) });
    line.update({ phase: "loading weights", doneBytes: 0, totalBytes: 2 ** 20 });
    line.warn("16 threads on 2 processors");
    const before = isTTY ? "\u001b[2K" : "\n";
    assert.ok(text.endsWith(`${before}octavo: 16 threads on 2 processors\n`), JSON.stringify(text));
  }
});

test("shaders are counted, not weighed", () => {
  for (const [isTTY, shown] of [
    [true, /compiling shaders 3 of 40$/],
    [false, /^compiling shaders \(40\)\n$/],
  ] as const) {
    let text = "";
    const line = createLoadingLine({ isTTY, write: (part) => (text += part) });
    line.update({ phase: "compiling shaders", unit: "shaders", doneBytes: 3, totalBytes: 40 });
    assert.match(text, shown);
  }
});

test("downloads show files and pace, packing one plain line", () => {
  let text = "";
  const line = createLoadingLine({ isTTY: false, write: (part) => (text += part) });
  const download = {
    name: "org/tiny",
    numFiles: 3,
    finishedFiles: 1,
    receivedBytes: 5_000_000,
    presentBytes: 0,
    totalBytes: 10_000_000,
    elapsedMs: 2000,
    done: false,
  };
  line.update({ phase: "downloading", doneBytes: 5_000_000, totalBytes: 10_000_000, download });
  for (const doneBytes of [0, 2 ** 20])
    line.update({ phase: "loading weights", doneBytes, totalBytes: 2 ** 20 });
  line.end();
  assert.match(text, /^org\/tiny: 50 %.*1 of 3 files.*\/s.*left\n/);
  assert.equal(text.match(/loading weights \(1\.0 MiB\)\n/g)?.length, 1);
});
