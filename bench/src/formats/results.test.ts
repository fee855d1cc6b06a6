import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Quality } from "./quality.js";
import type { RunRecord } from "../support/results.js";
import { mergeFormats, readFormats, saveFormats } from "./results-file.js";
import { type Samples, speedOf } from "./speed.js";

const run = (commit: string): RunRecord => ({
  machine: { cpu: "x", cores: 2, memoryGiB: 1, node: "v20" },
  commit,
  date: "2026-01-01",
});
const quality = (kl: number): Quality => ({
  kl,
  klInterval: undefined,
  flips: 0,
  validJson: 1,
  exactJson: 1,
  exactCalls: 1,
});
const samples = (...speeds: number[]): Samples => ({
  prefill: speeds,
  decode1: speeds,
  decode8: speeds,
  memory: [130],
});
const baseline = samples(10, 20, 40);

describe("speeds", () => {
  test("are medians; ratios compare within a round, so that a machine that slows down does not decide", () => {
    const speed = speedOf(100, samples(11, 22, 20), baseline);
    assert.equal(speed.tokensPerSecond.prefill, 20);
    assert.equal(speed.ratio.prefill, 1.1);
    assert.equal(speed.peakMemoryRatio, 1.3);
    assert.equal(speed.rounds, 3);
    assert.deepEqual(speed.target, { on: "ratio", atLeast: 1 });
    assert.equal(speed.isMet, true);
  });

  test("one pace below the baseline's misses the target", () => {
    const speed = speedOf(100, { ...baseline, prefill: [12, 24, 48], decode8: [9, 18, 36] }, baseline);
    assert.equal(speed.ratio.prefill, 1.2);
    assert.equal(speed.isMet, false);
  });

  test("the baseline is held to nothing", () => {
    const speed = speedOf(100, baseline, baseline);
    assert.equal(speed.target, undefined);
    assert.equal(speed.isMet, undefined);
  });
});

describe("results of several runs", () => {
  test("merge part by part in the order of the formats, each with the record of its run", () => {
    const order = ["bf16", "FP8", "NF4"];
    const first = mergeFormats([], run("a"), [{ name: "NF4", quality: quality(0.5) }], order);
    const speed = speedOf(100, baseline, baseline);
    const second = mergeFormats(
      first.cases,
      run("b"),
      [
        { name: "NF4", speed },
        { name: "bf16", speed },
      ],
      order,
    );
    const third = mergeFormats(second.cases, run("c"), [{ name: "NF4", quality: quality(0.25) }], order);
    assert.equal(third.commit, "c");
    assert.deepEqual(
      third.cases.map((one) => [one.name, one.quality?.kl, one.quality?.run.commit, one.speed?.run.commit]),
      [
        ["bf16", undefined, undefined, "b"],
        ["NF4", 0.25, "c", "b"],
      ],
    );
  });

  test("are kept in a file; one that holds something else is left alone", () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-formats-"));
    try {
      const path = join(folder, "formats.json");
      assert.deepEqual(readFormats(path), []);
      saveFormats(path, run("a"), [{ name: "FP8", quality: quality(0.1) }], ["FP8"]);
      assert.equal(readFormats(path)[0]?.quality?.kl, 0.1);
      for (const text of ['{"benchmark": "serve", "cases": []}', "{", "null"]) {
        writeFileSync(path, text);
        assert.throws(() => saveFormats(path, run("a"), [], []), { code: "invalid_option" });
        assert.equal(readFileSync(path, "utf8"), text);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
