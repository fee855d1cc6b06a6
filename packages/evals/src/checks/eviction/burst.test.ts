import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { Random } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { observation } from "../testing/observation.js";
import { coin, countVerdicts, manyRuns, mostByChance } from "../testing/simulate.js";
import { evictionBurstCheck } from "./check.js";
import { evictionBurstSettings } from "./settings.js";

const settings = evictionBurstSettings.parse({});

interface BurstOptions {
  readonly count?: number;
  readonly fillers?: number;
  /** Share of the burst's requests that lose blocks. */
  readonly disturbed?: number;
  /** Share of answers that the burst changes. */
  readonly changed?: number;
  readonly failed?: number;
  readonly isDigested?: boolean;
}

function burst(
  seed: number,
  { count = 80, fillers = 60, disturbed = 0, changed = 0, failed = 0, isDigested = true }: BurstOptions,
): readonly Observation[] {
  const random = new Random(seed);
  const of = (condition: string, index: number, isIn: boolean): Observation => {
    const isChanged = isIn && coin(random, changed) === 1;
    const lost = isIn ? coin(random, disturbed) : 0;
    const output = isChanged ? "other" : "same";
    return observation({
      caseId: `${condition === "filler" ? "filler" : "case"}-${index}`,
      condition,
      scheduledEpochMs: (isIn ? 20_000 : 0) + index * 100,
      output,
      scores: condition === "filler" ? {} : { exact: isChanged ? 0 : 1 },
      preemptions: lost,
      recomputedTokens: 300 * lost,
      cacheHitRatio: lost === 1 ? 0.2 : 0.9,
      kvCacheUsage: isIn ? Math.min(1, 0.4 + index / 40) : 0.35,
      ...(isDigested ? { logitsDigest: output } : {}),
      ...(isIn && coin(random, failed) === 1 ? { failureCode: "queue_full" } : {}),
    });
  };
  const range = (length: number): readonly number[] => Array.from({ length }, (_, index) => index);
  return [
    ...range(count).flatMap((index) => [of("quiet", index, false), of("quiet-again", index, false)]),
    ...range(count).map((index) => of("burst", index, true)),
    ...range(fillers).map((index) => of("filler", index, true)),
  ];
}

describe("eviction-burst", () => {
  test("a pool that is too small fails though the answers are the same", () => {
    const result = evictionBurstCheck.judge(burst(1, { disturbed: 0.5 }), settings);
    assert.equal(result.verdict, "fail");
    assert.match(
      result.summary,
      /^The KV cache is too small for this burst: .* % of requests were preempted \(accepted: 10 %\)/,
    );
    assert.match(result.summary, /0 of 80 answers differ/);
    assert(result.advice.some(({ knob }) => knob.includes("--gpu-memory-utilization")));
    assert(!result.advice.some(({ knob }) => knob === "engine"));
    assert(result.notes.some((note) => /requests were preempted, and \d+ tokens computed again/.test(note)));
    const memory = result.figures.find(({ kind }) => kind === "series");
    assert(memory?.kind === "series");
    assert.deepEqual(memory.spans?.[0]?.label, "burst");
    assert(result.notes.some((note) => /rose from 40 % to 90 % in/.test(note)));
  });

  test("a burst that changes bits is a bug of the engine, whatever the pool", () => {
    const result = evictionBurstCheck.judge(burst(1, { disturbed: 0.5, changed: 0.05 }), settings);
    assert.equal(result.verdict, "fail");
    assert.match(result.summary, /bug of the engine; and the KV cache is too small/);
    assert.equal(result.advice[0]?.knob, "engine");
  });

  test("requests that fail in the burst are counted, not compared", () => {
    const result = evictionBurstCheck.judge(burst(1, { failed: 0.3 }), settings);
    assert.equal(result.verdict, "fail");
    assert.match(result.summary, /^The server does not hold this burst: .* % of requests failed/);
    assert(result.notes.some((note) => /of 140 requests of the burst failed: queue_full/.test(note)));
  });

  test("a roomy pool passes", () => {
    const result = evictionBurstCheck.judge(burst(1, {}), settings);
    assert.equal(result.verdict, "pass", result.summary);
    assert.deepEqual(result.advice, []);
  });

  test("a server that says nothing of blocks is judged by its answers alone", () => {
    const silent = burst(1, { count: 400, isDigested: false }).map((one) => ({
      ...one,
      preemptions: undefined,
      recomputedTokens: undefined,
      cacheHitRatio: undefined,
      kvCacheUsage: 0.5,
    }));
    const result = evictionBurstCheck.judge(silent, settings);
    assert.equal(result.verdict, "pass", result.summary);
    assert(result.notes.some((note) => note.includes("the size of the pool is not judged")));
    assert(result.notes.some((note) => note.includes("the burst did not press it")));
  });

  test("a pool without evictions says nothing about answers that were not recorded", () => {
    const silent = burst(1, { isDigested: false }).map((one) => ({ ...one, output: undefined, scores: {} }));
    const result = evictionBurstCheck.judge(silent, settings);
    assert.equal(result.verdict, "inconclusive", result.summary);
    assert.match(result.summary, /^Not decided: 0 of 0 answers differ within the burst \(of 80 more/);
  });

  describe("given little or nothing", () => {
    for (const [name, seen, says] of [
      ["no observations", [], /nothing was sent within the burst/],
      ["one case", burst(1, { count: 1, fillers: 0 }), /0 of 1 answers differ/],
      [
        "no burst",
        burst(1, {}).filter(({ condition }) => condition === "quiet"),
        /nothing was sent within the burst/,
      ],
      [
        "fillers alone",
        burst(1, { fillers: 200 }).filter(({ condition }) => condition === "filler"),
        /no answer under the condition "quiet"/,
      ],
      [
        "scores that are all null",
        burst(1, { count: 20, isDigested: false }).map((one) => ({ ...one, scores: { exact: null } })),
        /0 of 20 answers differ/,
      ],
    ] as const) {
      test(`${name}: inconclusive`, () => {
        const result = evictionBurstCheck.judge(seen, settings);
        assert.equal(result.verdict, "inconclusive", result.summary);
        assert(
          result.notes.some((note) => says.test(note)),
          result.notes.join("\n"),
        );
      });
    }
  });

  describe("over many runs", () => {
    test("as many preemptions as are accepted, answers alike: at most alpha / 2 of many runs fail", () => {
      const counts = countVerdicts(manyRuns, (seed) => {
        const seen = burst(seed, { count: 30, fillers: 30, disturbed: settings.maxPreemptedShare });
        return evictionBurstCheck.judge(seen, settings).verdict;
      });
      assert(counts.fail <= mostByChance(manyRuns, settings.alpha / 2), JSON.stringify(counts));
    });

    test("a pool that a quarter of the requests overflow is found in at least 19 of 20 runs", () => {
      const counts = countVerdicts(
        100,
        (seed) => evictionBurstCheck.judge(burst(seed, { disturbed: 0.25 }), settings).verdict,
      );
      assert(counts.fail >= 95, JSON.stringify(counts));
    });
  });
});
