import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Random } from "@octavo/statistics";
import type { CheckResult } from "../check.js";
import type { Observation } from "../observation.js";
import { composedArrivals } from "../collecting/arrivals.js";
import { observation } from "../testing/observation.js";
import { manyRuns } from "../testing/simulate.js";
import { trafficDriftCheck } from "./check.js";
import { labelPatterns } from "./patterns.js";
import { driftPlacebo } from "./placebo.js";
import { trafficDriftSettings } from "./settings.js";

interface Mix {
  readonly condition: "production" | "evaluation";
  readonly seed: number;
  readonly seconds?: number;
  readonly perMinute?: number;
  readonly burstiness?: number;
  /** Factor on prompt lengths. */
  readonly times?: number;
  readonly tenants?: readonly [number, number];
}

function traffic({
  condition,
  seed,
  seconds = 600,
  perMinute = 120,
  burstiness = 0.8,
  times = 1,
  tenants = [0.5, 0.5],
}: Mix): readonly Observation[] {
  const random = new Random(seed);
  const loads = tenants.map((share, index) => ({
    tenant: `tenant-${index}`,
    requestsPerMinute: share * perMinute,
    burstiness,
  }));
  return composedArrivals(loads, 1000 * seconds, random).map(({ tenant, atMs }, index) =>
    observed({
      condition,
      tenant,
      caseId: `${condition}-${index}`,
      scheduledEpochMs: 1_700_000_000_000 + atMs,
      promptTokens: Math.ceil(times * 200 * Math.exp(0.6 * random.normal())),
      completionTokens: Math.ceil(100 * Math.exp(0.4 * random.normal())),
      queueDepth: 2,
      replicaCount: 1,
    }),
  );
}

function observed(seen: Partial<Observation>): Observation {
  return observation({ caseId: "case", condition: "", durationMs: 0, ...seen });
}

const quick = trafficDriftSettings.parse({ length_margin: 0.25, tenant_margin: 0.15 });
const judge = (...sides: (readonly Observation[])[]) => trafficDriftCheck.judge(sides.flat(), quick);
const production = (seed: number) => traffic({ condition: "production", seed });

describe("traffic-drift", () => {
  it("passes an evaluation under production's traffic", () => {
    const result = judge(
      traffic({ condition: "production", seed: 1, seconds: 1800 }),
      traffic({ condition: "evaluation", seed: 2, seconds: 1800 }),
    );
    assert.equal(result.verdict, "pass", result.summary);
    assert.deepEqual(
      result.hypotheses.map(({ name }) => name.split(",")[0]),
      [
        "arrival rate",
        "dispersion of arrivals",
        "prompt tokens",
        "output tokens",
        "shares of tenants",
        "production's requests under patterns the evaluation never ran",
      ],
    );
  });

  it("does not judge what a replay has from the recording", () => {
    const recorded = traffic({ condition: "production", seed: 1, seconds: 1800 });
    const replayed = (times: number) =>
      recorded.map((seen) => ({
        ...seen,
        condition: "evaluation",
        promptTokens: Math.round(times * (seen.promptTokens ?? 0)),
        tags: ["replayed"],
      }));
    const names = (result: CheckResult) => result.hypotheses.map(({ name }) => name.split(",")[0]);
    const alike = judge(recorded, replayed(1));
    assert.deepEqual(names(alike), [
      "prompt tokens",
      "production's requests under patterns the evaluation never ran",
    ]);
    assert.equal(alike.verdict, "pass");
    assert.ok(alike.notes.some((note) => note.startsWith("The evaluation's side is a replay")));
    assert.equal(judge(recorded, replayed(2.5)).verdict, "fail");
  });

  it("calls no pattern unseen for one window that all requests share", () => {
    const short = (condition: string, queueDepth: (index: number) => number) =>
      Array.from({ length: 200 }, (_, index) =>
        observed({
          condition,
          scheduledEpochMs: 100 * index,
          queueDepth: queueDepth(index),
          replicaCount: 1,
        }),
      );
    const result = judge(
      short("production", (index) => (index === 100 ? 20 : 2)),
      short("evaluation", () => 2),
    );
    const unseen = result.hypotheses.find(({ name }) => name.includes("never ran"));
    assert.equal(unseen?.estimate, 1);
    assert.equal(unseen.verdict, "inconclusive");
  });

  const drifts: readonly (readonly [string, Omit<Mix, "condition" | "seed">])[] = [
    ["arrival rate", { perMinute: 30 }],
    ["dispersion", { burstiness: 0.05 }],
    ["prompt tokens", { times: 2.5 }],
    ["shares of tenants", { tenants: [0.95, 0.05] }],
  ];
  for (const [name, drifted] of drifts)
    it(`finds a drift of ${name} in 19 of 20 runs or more`, () => {
      let found = 0;
      for (let seed = 0; seed < 20; seed++) {
        const result = judge(
          production(seed),
          traffic({ condition: "evaluation", seed: 100 + seed, ...drifted }),
        );
        const failed = result.hypotheses.filter(({ verdict }) => verdict === "fail");
        if (failed.some((one) => one.name.includes(name))) found += 1;
      }
      assert.ok(found >= 19, `${found} of 20`);
    });

  it("alarms in less than alpha of many runs on production's traffic dealt to both sides", () => {
    const settings = trafficDriftSettings.parse({
      resamples: 200,
      num_blocks: 8,
      rate_margin: 1.05,
      dispersion_margin: 1.05,
      length_margin: 0.02,
      tenant_margin: 0.02,
    });
    const placebo = driftPlacebo(settings);
    const random = new Random(1);
    // four hypotheses, so that few resamples can still reject one
    const seen = traffic({ condition: "production", seed: 3, seconds: 60 }).map((one) => ({
      ...one,
      completionTokens: undefined,
      queueDepth: undefined,
    }));
    let alarms = 0;
    for (let run = 0; run < manyRuns; run++)
      if (trafficDriftCheck.judge(placebo(seen, random), settings).verdict === "fail") alarms += 1;
    assert.ok(alarms <= 0.05 * manyRuns, `${alarms} of ${manyRuns}`);
  });

  it("labels windows as published", () => {
    const at = (second: number, queueDepth: number, replicaCount = 1) =>
      observed({ scheduledEpochMs: 1000 * second, queueDepth, replicaCount });
    const label = (seen: readonly Observation[]) => labelPatterns(seen, quick).map(({ pattern }) => pattern);
    assert.deepEqual(
      label([at(0, 1), at(1, 1), at(2, 1), at(3, 20)]),
      Array.from({ length: 4 }, () => "burst"),
    );
    assert.deepEqual(label([at(0, 12), at(1, 12)]), ["sustained", "sustained"]);
    assert.deepEqual(label([at(0, 11), at(1, 11)]), ["steady", "steady"]);
    assert.deepEqual(label([at(0, 12, 2), at(1, 12, 2)]), ["steady", "steady"]);
    // the peak is 40 s away from the first request, and 20 s from the last
    assert.deepEqual(label([at(0, 1), at(20, 1), at(40, 30), at(60, 1), at(61, 1)]), [
      "steady",
      "burst",
      "burst",
      "burst",
      "burst",
    ]);
    assert.deepEqual(label([observed({})]), []);
  });

  it("trips the published rule where production bursts and the evaluation never did", () => {
    const bursts = production(5).map((seen, index) => ({ ...seen, queueDepth: index % 50 === 0 ? 100 : 2 }));
    const scored = traffic({ condition: "evaluation", seed: 6 }).map((seen) => ({
      ...seen,
      scores: { ok: 1 },
    }));
    const result = judge(
      bursts.map((seen) => ({ ...seen, scores: { ok: 0.7 } })),
      scored,
    );
    assert.equal(result.ruleOfThumb.tripped, true);
    const unseen = result.hypotheses.find(({ name }) => name.includes("never ran"));
    assert.equal(unseen?.verdict, "fail");
    assert.ok(result.advice.some(({ knob }) => knob === "recording"));
    const lost = result.hypotheses.find(({ name }) => name === "ok, lost from evaluation to production");
    assert.equal(lost?.verdict, "fail");
    assert.ok(Math.abs((lost?.estimate ?? 0) - 0.3) < 1e-9);
  });

  it("weights the evaluation's scores as production has its patterns", () => {
    const half = (condition: string, share: number) =>
      Array.from({ length: 400 }, (_, index) => {
        const isSustained = index >= 400 * (1 - share);
        return observed({
          condition,
          scheduledEpochMs: 1000 * index,
          queueDepth: isSustained ? 14 : 5,
          replicaCount: 1,
          scores: condition === "evaluation" ? { ok: isSustained ? 0 : 1 } : {},
        });
      });
    const result = judge(half("production", 0.5), half("evaluation", 0.2));
    const lost = result.hypotheses.find(({ name }) => name.startsWith("ok, lost under"));
    // labels near the change see both depths: about 0.8 less about 0.5
    assert.ok(Math.abs((lost?.estimate ?? 0) - 0.3) < 0.05, String(lost?.estimate));
  });

  it("is inconclusive without observations, with one a side, all at one moment, and says what spans lack", () => {
    assert.equal(judge([]).verdict, "inconclusive");
    assert.equal(judge([observed({ condition: "production" })]).verdict, "inconclusive");
    const moment = [1, 2].flatMap(() =>
      ["production", "evaluation"].map((condition) => observed({ condition })),
    );
    const result = judge(moment);
    assert.equal(result.verdict, "inconclusive");
    assert.ok(result.notes.some((note) => note.includes("one moment")));
    const bare = production(8).map(({ scheduledEpochMs }) =>
      observed({ condition: "production", scheduledEpochMs }),
    );
    const lacking = judge(bare, traffic({ condition: "evaluation", seed: 9 }));
    assert.ok(lacking.notes.some((note) => note.includes("cluster.queue_depth")));
    assert.ok(lacking.hypotheses.some(({ verdict }) => verdict === "inconclusive"));
  });
});
