import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Random } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { observation } from "../testing/observation.js";
import { jitterCheck } from "./check.js";
import { jitterSettings } from "./settings.js";

interface Streams {
  readonly seed: number;
  readonly condition?: string;
  readonly count?: number;
  readonly tokens?: number;
  /** How often a step is one of a prefill burst, and how much longer it then takes. */
  readonly burst?: { readonly probability: number; readonly times: number };
}

const epochMs = 1_700_000_000_000;

/** Streams whose steps are shared: a slow step is one in all of the streams that run in it. */
function streams({
  seed,
  condition = "burst",
  count = 40,
  tokens = 60,
  burst,
}: Streams): readonly Observation[] {
  const random = new Random(seed);
  return Array.from({ length: count / 4 }, (_, turn) => {
    const steps = Array.from({ length: tokens - 1 }, () => {
      const isBurst = burst !== undefined && random.uniform() < burst.probability;
      return 10 * Math.exp(0.1 * random.normal()) * (isBurst ? burst.times : 1);
    });
    return Array.from({ length: 4 }, (__, stream) => {
      const gapsMs = steps.map((ms) => ms * Math.exp(0.02 * random.normal()));
      return observation({
        caseId: `stream-${turn}-${stream}`,
        condition,
        scheduledEpochMs: epochMs + turn * 1000 * (tokens / 60),
        firstTokenMs: 20,
        durationMs: 20 + gapsMs.reduce((sum, ms) => sum + ms, 0),
        gapsMs,
        completionTokens: tokens,
      });
    });
  }).flat();
}

const usual = (seed: number) => streams({ seed: 1000 + seed, condition: "baseline" });
const quick = jitterSettings.parse({ resamples: 400, slice_ms: 200 });
const judge = (...sides: (readonly Observation[])[]) => jitterCheck.judge(sides.flat(), quick);

describe("jitter", () => {
  it("passes tokens that come as usual", () => {
    const result = judge(usual(1), streams({ seed: 2 }));
    assert.equal(result.verdict, "pass", result.summary);
    assert.equal(result.ruleOfThumb.tripped, false);
  });

  it("finds a prefill burst that duration over tokens hides, in 20 of 20 runs", () => {
    for (let seed = 0; seed < 20; seed++) {
      const result = judge(usual(seed), streams({ seed, count: 80, burst: { probability: 0.04, times: 8 } }));
      assert.equal(result.verdict, "fail", `seed ${seed}: ${result.summary}`);
      assert.equal(result.ruleOfThumb.tripped, false, "the mean of a stream hides its stalls");
    }
  });

  it("alarms in less than alpha of 2,000 runs in which nothing changed, even with no room above what is usual", () => {
    const settings = jitterSettings.parse({ resamples: 200, slice_ms: 200, factor: 1.02 });
    let alarms = 0;
    for (let seed = 0; seed < 2000; seed++) {
      const seen = [
        ...streams({ seed: 10_000 + seed, condition: "baseline", count: 32, tokens: 20 }),
        ...streams({ seed, count: 32, tokens: 20 }),
      ];
      if (jitterCheck.judge(seen, settings).verdict === "fail") alarms += 1;
    }
    assert.ok(alarms <= 0.05 * 2000, `${alarms} of 2000`);
  });

  it("computes the published rule as it is written", () => {
    const call = (minute: number, msPerToken: number, prefillTokensInBatch = 0) =>
      observation({
        caseId: String(minute),
        condition: "burst",
        scheduledEpochMs: 60_000 * minute,
        durationMs: 10 * msPerToken,
        completionTokens: 10,
        prefillTokensInBatch,
      });
    const { ruleOfThumb } = judge([call(0, 10), call(1, 10), call(6, 20), call(12, 41, 4001), call(13, 5)]);
    assert.equal(ruleOfThumb.tripped, true);
    assert.deepEqual(ruleOfThumb.rows, [
      [600, 2, 41, 20, "over", 1, null, null],
      [0, 2, 10, null, "", 0, null, null],
      [300, 1, 20, 10, "", 0, null, null],
    ]);
    const day = 24 * 60;
    assert.equal(judge([call(0, 10), call(day + 10, 41)]).ruleOfThumb.tripped, false, "older than 24 hours");
  });

  it("tags windows of the published rule by hit ratios and by who queued, and compares unrounded", () => {
    const call = (minute: number, more: Partial<Observation>) =>
      observation({
        caseId: String(minute),
        condition: "burst",
        scheduledEpochMs: 60_000 * minute,
        durationMs: 100,
        completionTokens: 10,
        ...more,
      });
    const { ruleOfThumb } = judge([
      call(0, { cacheHitRatio: 0.8, tenant: "a", queueMs: 1 }),
      call(1, { cacheHitRatio: 0.8, tenant: "b", queueMs: 1 }),
      call(6, { cacheHitRatio: 0.3, tenant: "a", queueMs: 1, durationMs: 200.001 }),
      call(7, { cacheHitRatio: 0.3, tenant: "b", queueMs: 90, durationMs: 1 }),
    ]);
    assert.equal(ruleOfThumb.tripped, true, "20.0001 is over twice 10");
    assert.deepEqual(
      ruleOfThumb.rows.map((row) => row.slice(4)),
      [
        ["over", 0, 0.5, "b"],
        ["", 0, null, ""],
      ],
    );
  });

  it("says why, by the serving records, and what to change", () => {
    const slow = streams({ seed: 3, burst: { probability: 0.05, times: 10 } }).map((seen) => {
      const output = seen.gapsMs.indexOf(Math.max(...seen.gapsMs)) + 1;
      const gap = {
        output,
        ms: seen.gapsMs[output - 1]!,
        usualMs: 10,
        prefillTokens: 5000,
        culprits: ["other"],
      };
      return { ...seen, prefillTokensInBatch: 5000, slowGaps: [{ ...gap, cause: "prefill_burst" }] };
    });
    const result = judge(usual(3), slow);
    assert.equal(result.verdict, "fail");
    assert.equal(result.advice[0]?.knob, "--max-num-batched-tokens");
    assert.ok(
      result.notes.some((note) => note.startsWith("100 % of the time lost in long gaps is prefill_burst")),
    );
    assert.equal(result.movedCases[0]?.what, "prefill_burst");
    const steps = result.figures.find((figure) => figure.kind === "steps");
    assert.equal(steps?.steps.filter(({ isBlamed }) => isBlamed).length, 1);
    assert.equal(steps?.steps.find(({ isBlamed }) => isBlamed)?.label, "prefill_burst, other");
  });

  it("proves the blame by what a replay without the neighbours gave back", () => {
    const replay = (condition: string, longest: number) =>
      Array.from({ length: 6 }, (_, index) =>
        observation({
          caseId: "slow",
          condition,
          scheduledEpochMs: index,
          gapsMs: [10, longest + index, 10],
        }),
      );
    const seen = [usual(4), streams({ seed: 4 }), replay("replay-beside", 90)];
    assert.ok(judge(...seen).notes.some((note) => note.includes("not both")));
    const { notes } = judge(...seen, replay("replay-alone", 15));
    assert.ok(
      notes.some((note) => note.includes("75.0 ms (75.0 to 75.0)") && note.includes("to blame")),
      notes.join("\n"),
    );
    const alike = judge(...seen, replay("replay-alone", 90));
    assert.ok(alike.notes.some((note) => note.includes("not shown")));
    const one = (longest: number) =>
      judge(...seen, replay("replay-alone", 15), replay("replay-without-one", longest)).notes.find((note) =>
        note.startsWith("Without the one neighbour that was computed most it got"),
      );
    assert.match(one(20) ?? "", /70\.0 ms .*: that one is to blame/);
    assert.match(one(90) ?? "", /0\.0 ms .*: the others would have done as much/);
  });

  it("holds mornings against mornings where the baseline has several days", () => {
    const days = Array.from({ length: 200 }, (_, hour) =>
      observation({
        caseId: String(hour),
        condition: "baseline",
        scheduledEpochMs: 3_600_000 * hour,
        gapsMs: Array.from({ length: 50 }, () => (hour % 24 === 9 ? 30 : 10)),
      }),
    );
    const many = days.flatMap((seen) => Array.from({ length: 8 }, () => seen));
    const morning = Array.from({ length: 10 }, (_, minute) =>
      observation({
        caseId: String(minute),
        condition: "burst",
        scheduledEpochMs: 3_600_000 * (24 * 300 + 9) + 60_000 * minute,
        gapsMs: Array.from({ length: 50 }, () => 31),
      }),
    );
    const result = judge(many, morning);
    assert.equal(result.verdict, "pass", result.summary);
    assert.ok(result.notes.includes("The baseline is of the same hours of the day."));
  });

  it("holds the last five minutes of one server's spans against the time before them", () => {
    const spans = (isSlow: boolean) =>
      Array.from({ length: 400 }, (_, index) =>
        observation({
          caseId: String(index),
          condition: "candidate",
          scheduledEpochMs: epochMs + 6000 * index,
          durationMs: 500,
          completionTokens: 20,
          gapsMs: Array.from({ length: 19 }, (__, at) =>
            isSlow && index > 350 && at === 7 ? 200 : 10 + (at % 3),
          ),
        }),
      );
    const slow = judge(spans(true));
    assert.equal(slow.verdict, "fail", slow.summary);
    assert.equal(slow.ruleOfThumb.tripped, false);
    assert.equal(judge(spans(false)).verdict, "pass");
  });

  it("counts a request with its longest gap where a span kept a summary alone", () => {
    const summaries = (condition: string, maxMs: number) =>
      Array.from({ length: 60 }, (_, index) =>
        observation({
          caseId: String(index),
          condition,
          scheduledEpochMs: 1000 * index,
          gapSummary: { count: 50, p99Ms: maxMs / 2, maxMs: maxMs + (index % 7) },
        }),
      );
    const result = judge(summaries("baseline", 20), summaries("burst", 200));
    assert.equal(result.verdict, "fail");
    assert.ok(result.notes.some((note) => note.includes("summary of their gaps alone")));
  });

  it("reads long recordings, and long streams once", () => {
    const many = (condition: string) =>
      Array.from({ length: 150_000 }, (_, index) =>
        observation({ caseId: String(index), condition, scheduledEpochMs: index, gapsMs: [10] }),
      );
    assert.equal(judge(many("baseline"), many("burst")).verdict, "pass");
    const long = (condition: string) =>
      observation({ caseId: "1", condition, gapsMs: Array.from({ length: 200_000 }, (_, at) => at / 1e4) });
    assert.equal(judge([long("baseline")], [long("burst")]).figures.at(-1)?.kind, "steps");
  });

  it("is inconclusive without gaps, with one, and with a baseline of one; equal gaps pass", () => {
    assert.equal(judge([]).verdict, "inconclusive");
    const one = (condition: string) => observation({ caseId: "1", condition, gapsMs: [10] });
    assert.equal(judge([one("baseline")], [one("burst")]).verdict, "inconclusive");
    const mute = judge([observation({ caseId: "1", condition: "burst" })]);
    assert.equal(mute.verdict, "inconclusive");
    assert.ok(mute.notes.some((note) => note.includes("would hide a stall")));
    const seven = (condition: string) => observation({ caseId: "1", condition, gapsMs: Array(7).fill(10) });
    assert.equal(judge([seven("baseline")], [seven("burst")]).verdict, "inconclusive");
    const flat = (condition: string) =>
      Array.from({ length: 40 }, (_, index) =>
        observation({
          caseId: String(index),
          condition,
          scheduledEpochMs: 1000 * index,
          gapsMs: Array.from({ length: 50 }, () => 10),
        }),
      );
    assert.equal(judge(flat("baseline"), flat("burst")).verdict, "pass");
  });
});
