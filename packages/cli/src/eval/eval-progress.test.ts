import assert from "node:assert/strict";
import test from "node:test";
import { createEvalProgress } from "./eval-progress.js";

// the lines that are redrawn; CI may have a dumb terminal
process.env["TERM"] = "xterm";

const escape = "\u001b";
const upwards = new RegExp(`${escape}\\[\\d+A`, "u");
const moves = new RegExp(`${escape}\\[\\d*[A-Z]|\\r`, "gu");

function progressOn(isTTY: boolean): {
  readonly progress: ReturnType<typeof createEvalProgress>;
  text: () => string;
} {
  let written = "";
  const progress = createEvalProgress({ isTTY, columns: 80, write: (part) => (written += part) });
  return { progress, text: () => written };
}

test("without a terminal there is a plain line at every tenth of the way and for each verdict", () => {
  const { progress, text } = progressOn(false);
  for (let done = 1; done <= 100; done += 1)
    progress.update({ phase: "cases", done, total: 100, failed: done > 50 ? 2 : 0, resumed: 0 });
  progress.update({ phase: "check", check: "tail", index: 0, count: 1, done: 3, total: 9 });
  progress.end();
  const lines = text().trimEnd().split("\n");
  assert.equal(lines.length, 11);
  assert.match(lines[5] ?? "", /^\[={14} {14}\] 50 of 100 cases/);
  assert.match(lines.at(-1) ?? "", /100 of 100 cases, 2 failed$/);
  assert.ok(!text().includes(escape));
});

test("where the end is not known, lines come ever less often", () => {
  const { progress, text } = progressOn(false);
  for (let done = 1; done <= 1000; done += 1)
    progress.update({ phase: "cases", done, total: undefined, failed: 0, resumed: 0 });
  assert.deepEqual(
    text()
      .trimEnd()
      .split("\n")
      .map((line) => Number.parseInt(line, 10)),
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
  );
});

test("on a terminal the table is redrawn in place, no wider than it", () => {
  const { progress, text } = progressOn(true);
  progress.update({ phase: "cases", done: 10, total: 10, failed: 0, resumed: 4 });
  progress.update({ phase: "check", check: "jitter", index: 0, count: 1, done: 1, total: 4 });
  progress.end();
  const screens = text().split(upwards);
  assert.equal(screens.length, 3);
  assert.match(screens.at(-1) ?? "", /10 of 10 cases, 4 from the journal\n[^\n]*jitter +\[=======/);
  for (const line of text().replaceAll(moves, "").split("\n")) assert.ok(line.length < 80);
});
