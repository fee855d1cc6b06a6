import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { DownloadProgress } from "./download-progress.js";
import { createProgressBar, formatDecimalBytes } from "./progress-bar.js";

function at(receivedBytes: number, more: Partial<DownloadProgress> = {}): DownloadProgress {
  return {
    name: "acme/tiny",
    numFiles: 2,
    finishedFiles: receivedBytes === 1000 ? 2 : 0,
    receivedBytes,
    presentBytes: 0,
    totalBytes: 1000,
    elapsedMs: receivedBytes * 10,
    done: receivedBytes === 1000,
    ...more,
  };
}

function draw(stream: { isTTY?: boolean; columns?: number }, steps: readonly DownloadProgress[]): string {
  let text = "";
  const bar = createProgressBar({ ...stream, write: (part) => (text += part) });
  for (const step of steps) bar(step);
  return text;
}

const steps = Array.from({ length: 101 }, (_, percent) => at(percent * 10));

describe("progress bar", () => {
  const environment = process.env["TERM"];
  before(() => void (process.env["TERM"] = "xterm"));
  after(() => {
    if (environment === undefined) delete process.env["TERM"];
    else process.env["TERM"] = environment;
  });

  it("redraws one line on a terminal and ends it", () => {
    const text = draw({ isTTY: true, columns: 100 }, steps);
    assert.equal(text.split("\n").length, 2);
    assert.ok(text.endsWith("\n"));
    assert.match(text, /\racme\/tiny: 50 %, 500 B of 1\.00 kB, 0 of 2 files, 100 B\/s, 5 s left \[#+-+\]/);
    // oxlint-disable-next-line no-control-regex -- the sequence that clears the rest of a line
    const lines = text.split("\r").map((line) => line.replace(/\u001B\[K\n?/, ""));
    assert.ok(lines.every((line) => line.length < 100));
  });

  it("stays within a narrow terminal", () => {
    const text = draw({ isTTY: true, columns: 20 }, steps);
    // oxlint-disable-next-line no-control-regex -- the sequence that clears the rest of a line
    for (const line of text.split("\r")) assert.ok(line.replace(/\u001B\[K\n?/, "").length < 20, line);
  });

  it("writes a line per tenth elsewhere, without control characters", () => {
    const lines = draw({}, steps).trimEnd().split("\n");
    assert.equal(lines.length, 11);
    assert.match(lines.at(-1) ?? "", /^acme\/tiny: 100 %, 1\.00 kB of 1\.00 kB, 2 of 2 files/);
    // oxlint-disable-next-line no-control-regex -- what a log file must not hold
    assert.ok(lines.every((line) => !/[\r\u001B]/.test(line)));
  });

  it("writes plain lines on a terminal that calls itself dumb", () => {
    process.env["TERM"] = "dumb";
    const onDumb = draw({ isTTY: true, columns: 100 }, steps);
    process.env["TERM"] = "xterm";
    assert.equal(onDumb, draw({}, steps));
  });

  it("says nothing when everything was there already", () => {
    assert.equal(draw({}, [at(1000, { presentBytes: 1000 })]), "");
    assert.equal(draw({ isTTY: true }, [at(1000, { presentBytes: 1000 })]), "");
  });

  it("counts only what was fetched towards the speed", () => {
    assert.match(draw({}, [at(900, { presentBytes: 800, elapsedMs: 1000 })]), /100 B\/s, 1 s left/);
  });

  it("shows whole percents and bytes", () => {
    const text = draw({ isTTY: true, columns: 100 }, steps);
    for (let percent = 0; percent <= 100; percent++)
      assert.ok(text.includes(`: ${percent} %,`), `${percent} % is missing`);
    assert.doesNotMatch(text, /\d\.\d{3,}/);
  });

  it("formats sizes", () => {
    assert.deepEqual([0, 999, 1000, 15_500_000, 2e12].map(formatDecimalBytes), [
      "0 B",
      "999 B",
      "1.00 kB",
      "15.5 MB",
      "2.00 TB",
    ]);
  });
});
