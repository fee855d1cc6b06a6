import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { CaseSpec } from "../case-spec.js";
import { modelShapes } from "../models/shapes.js";
import type { CaseSample } from "../run/run-case.js";
import { mergeResults, type CpuRun, saveResults } from "./results-file.js";
import { type CaseResult, summariseCase } from "./summarise.js";
import { renderCases } from "./table.js";

const model = {
  path: "",
  shape: modelShapes.tiny,
  type: "q4_0",
  weightBytes: 1e9,
  multiplyAddsPerToken: 1,
} as const;
const limits = { readGBps: 40, int8Gops: 1000, bf16Gflops: 0 };
const sample = (contender: string, speed: number): CaseSample => ({
  contender,
  measurement: {
    decodeTokensPerSecond: speed,
    ...(contender === "octavo" && { outsideNativeShare: 0.031 }),
  },
  limits,
});

const spec: CaseSpec = {
  group: "decode",
  name: "decode, 1 stream",
  shape: "tiny",
  type: "q4_0",
  job: { kind: "decode", streams: 1, promptTokens: 1, newTokens: 1 },
  figures: [
    {
      label: "",
      metric: "decodeTokensPerSecond",
      unit: "tokens/s",
      isBetter: "higher",
      bound: () => ({ limit: "readGBps", perUnit: 1e9 }),
      own: [{ on: "share of limit", atLeast: 0.85 }],
      peers: { "llama.cpp": { on: "ratio", atLeast: 1.5 } },
    },
    {
      label: "outside",
      metric: "outsideNativeShare",
      unit: "%",
      scale: 100,
      isBetter: "lower",
      own: [{ on: "octavo", atMost: 5 }],
    },
  ],
  peers: ["llama.cpp", "node-llama-cpp"],
};

const samples = [
  sample("octavo", 36),
  sample("llama.cpp", 20),
  sample("octavo", 30),
  sample("octavo", 32),
  sample("llama.cpp", 22),
];
const lines = summariseCase(spec, model, 2, { samples, numRepeated: 1, failures: new Map() });

describe("summarise", () => {
  test("medians, the ratio, the share of the limit, and whether targets are met", () => {
    const [share, peer, outside] = lines;
    assert.equal(lines.length, 3);
    assert.equal(share?.octavo, 32);
    assert.equal(share?.limit?.octavoShare, 0.8);
    assert.equal(share?.isMet, false);
    assert.equal(peer?.peer, 21);
    assert.equal(peer?.ratio, 32 / 21);
    assert.equal(peer?.isMet, true);
    assert.equal(outside?.octavo, 3.1);
    assert.equal(outside?.isMet, true);
  });

  test("nothing without Octavo's own figure", () => {
    assert.deepEqual(
      summariseCase(spec, model, 2, {
        samples: [sample("llama.cpp", 20)],
        numRepeated: 0,
        failures: new Map(),
      }),
      [],
    );
  });

  test("the table names what was missed and what was repeated", () => {
    const text = renderCases(lines);
    assert.match(text, /32\.0 tokens\/s.*80% of 40\.0 GB\/s.*≥ 85%.*MISSED.*1 repeated/);
    assert.match(text, /llama\.cpp 21\.0 .*1\.52x.*≥ 1\.5x.*met/);
  });
});

describe("results of several runs", () => {
  const run = (commit: string): CpuRun => ({
    machine: { cpu: "x", cores: 2, memoryGiB: 1, node: "v20" },
    commit,
    date: "2026-01-01",
    peers: {},
  });
  const line = (name: string, octavo: number): CaseResult => ({
    name,
    octavo,
    unit: "x",
    isBetter: "higher",
    samples: { octavo: [octavo] },
    numRepeated: 0,
    threads: 2,
  });

  test("merge by case, each with the record of its run", () => {
    const first = mergeResults([], run("a"), [line("one", 1), line("two", 2)]);
    const second = mergeResults(first.cases, run("b"), [line("two", 3), line("three", 4)]);
    assert.equal(second.commit, "b");
    assert.deepEqual(
      second.cases.map((item) => [item.name, item.octavo, item.run.commit]),
      [
        ["one", 1, "a"],
        ["two", 3, "b"],
        ["three", 4, "b"],
      ],
    );
  });

  test("a figure and its peers are lines of their own", () => {
    assert.equal(mergeResults([], run("a"), lines).cases.length, 3);
  });

  test("a file that is something else is left alone", () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-results-"));
    try {
      const path = join(folder, "cpu.json");
      writeFileSync(path, '{"benchmark": "serve"}');
      assert.throws(() => saveResults(path, run("a"), []), { code: "invalid_option" });
      assert.equal(readFileSync(path, "utf8"), '{"benchmark": "serve"}');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
