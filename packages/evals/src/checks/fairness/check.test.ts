import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Random } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { observation } from "../testing/observation.js";
import { fairnessCheck } from "./check.js";
import { serviceGap } from "./service-gap.js";
import { fairnessSettings } from "./settings.js";

interface Traffic {
  readonly seed: number;
  readonly requests?: number;
  /** What the small tenant's latencies are multiplied by beside the large one. */
  readonly slowdown: number;
  /** The large tenant's latency over the small one's solo latency. */
  readonly large?: number;
}

/** Latencies whose neighbours depend on each other, as those of a queue do. */
function traffic({ seed, requests = 400, slowdown, large = 1 }: Traffic): readonly Observation[] {
  const random = new Random(seed);
  const seen: Observation[] = [];
  for (const condition of ["solo", "shared"] as const) {
    let state = random.normal();
    for (let index = 0; index < requests; index++) {
      state = 0.7 * state + Math.sqrt(1 - 0.49) * random.normal();
      const ms = 100 * Math.exp(0.3 * state + 0.2 * random.normal());
      const times = condition === "solo" ? 1 : slowdown;
      seen.push(
        observed({
          condition,
          caseId: `small/${index}`,
          tenant: "small",
          scheduledEpochMs: 12_000 * index,
          firstTokenMs: (ms * times) / 10,
          durationMs: ms * times,
        }),
      );
      if (condition === "solo") continue;
      for (let other = 0; other < 3; other++)
        seen.push(
          observed({
            condition,
            caseId: `large/${index}/${other}`,
            tenant: "large",
            scheduledEpochMs: 12_000 * index + 4000 * other,
            firstTokenMs: 10 * large,
            durationMs: 100 * large * Math.exp(0.3 * random.normal()),
          }),
        );
    }
  }
  return seen;
}

function observed(seen: Partial<Observation>): Observation {
  return observation({ caseId: "case", condition: "", durationMs: 0, ...seen });
}

const quick = fairnessSettings.parse({ resamples: 200 });
const judge = (seen: readonly Observation[], settings = quick) => fairnessCheck.judge(seen, settings);

describe("fairness", () => {
  it("passes a tenant that waits no longer than alone", () => {
    const result = judge(traffic({ seed: 1, slowdown: 1.1 }));
    assert.equal(result.verdict, "pass");
    assert.match(result.summary, /small is isolated/);
    assert.deepEqual(result.advice, []);
    assert.equal(result.hypotheses.length, 2);
    assert.ok(result.hypotheses.every(({ name }) => name.includes("p99")));
  });

  it("fails a starved tenant, says why the published rule did not, and lists its slowest requests", () => {
    const result = judge(traffic({ seed: 2, slowdown: 6, large: 7 }));
    assert.equal(result.verdict, "fail");
    assert.equal(result.ruleOfThumb.tripped, false);
    assert.ok(result.notes.some((note) => note.includes("cannot see overload")));
    assert.ok(result.advice.some(({ knob }) => knob.includes("--scheduling-policy fair")));
    assert.equal(result.movedCases.length, 50);
    assert.ok(result.movedCases[0]!.severity >= result.movedCases[49]!.severity);
    assert.ok(result.figures.some(({ kind }) => kind === "series"));
  });

  it("computes the published rule as it is written", () => {
    const at = (tenant: string, durationMs: number, scheduledEpochMs: number) =>
      observed({ condition: "shared", tenant, durationMs, scheduledEpochMs });
    const many = Array.from({ length: 200 }, (_, index) => at("large", 100, index));
    const { ruleOfThumb } = judge([
      ...many,
      at("small", 100, 5),
      at("small", 151, 300_001),
      at("large", 100, 300_002),
    ]);
    assert.equal(ruleOfThumb.tripped, false, "1.51 of the aggregate, which its own request is the p99 of");
    assert.deepEqual(ruleOfThumb.rows, [
      ["large", 201, 100, 1, "0 of 2"],
      ["small", 2, 151, 1.51, "0 of 2"],
    ]);
    const over = judge([...many, at("small", 151, 5)]);
    assert.equal(over.ruleOfThumb.tripped, true);
  });

  it("detects a starved tenant in 20 of 20 runs, and alarms in less than alpha of 2,000 runs without one", () => {
    for (let seed = 0; seed < 20; seed++)
      assert.equal(judge(traffic({ seed, slowdown: 6 })).verdict, "fail", `seed ${seed}`);
    let alarms = 0;
    for (let seed = 0; seed < 2000; seed++)
      if (judge(traffic({ seed, slowdown: 1, requests: 100 })).verdict === "fail") alarms += 1;
    assert.ok(alarms <= 0.05 * 2000, `${alarms} false alarms`);
  });

  it("does not alarm more often than alpha where the slowdown is all of its margin", () => {
    const settings = fairnessSettings.parse({ resamples: 200, first_token_margin: 2.25 });
    let alarms = 0;
    for (let seed = 0; seed < 200; seed++)
      if (judge(traffic({ seed, slowdown: 2.25 }), settings).verdict === "fail") alarms += 1;
    assert.ok(alarms <= 0.05 * 200, `${alarms} of 200`);
  });

  it("judges p90 of fewer than 368 requests and says so, and nothing of fewer than 36", () => {
    const some = judge(traffic({ seed: 3, slowdown: 6, requests: 60 }));
    assert.equal(some.verdict, "fail");
    assert.ok(some.hypotheses[0]!.name.includes("p90"));
    assert.ok(some.notes.some((note) => note.includes("bound no p99, which takes 368")));
    assert.equal(some.sampleSize.needed, 368);
    const few = judge(traffic({ seed: 3, slowdown: 6, requests: 20 }));
    assert.equal(few.verdict, "inconclusive");
    assert.deepEqual(
      few.advice.map(({ knob, change }) => [knob, change]),
      [["requests", "collect 368 or more on each side"]],
    );
  });

  it("fails a tenant whose requests are refused, whatever the others' latency", () => {
    const refused = traffic({ seed: 4, slowdown: 1 }).map((seen, index) =>
      seen.condition === "shared" && seen.tenant === "small" && index % 3 === 0
        ? { ...seen, failureCode: "queue_full", firstTokenMs: undefined }
        : seen,
    );
    const result = judge(refused);
    assert.equal(result.verdict, "fail");
    assert.equal(result.hypotheses.find(({ unit }) => unit === "share")?.verdict, "fail");
  });

  it("does not pass a server that refuses everything, nor a solo run of which many failed", () => {
    const refused = (seen: Observation) => ({
      ...seen,
      failureCode: "unauthorized",
      firstTokenMs: undefined,
      durationMs: 2,
    });
    const dead = judge(traffic({ seed: 8, slowdown: 1, requests: 500 }).map(refused));
    assert.equal(dead.verdict, "inconclusive", dead.summary);
    assert.ok(dead.notes.some((note) => note.startsWith("500 of 500 requests failed of small alone")));
    const some = traffic({ seed: 8, slowdown: 1 }).map((seen, index) =>
      seen.condition === "solo" && index % 10 === 0 ? refused(seen) : seen,
    );
    assert.equal(judge(some).verdict, "inconclusive");
  });

  it("is inconclusive without observations, with one, without a solo run, and with no variance at all it passes", () => {
    assert.equal(judge([]).verdict, "inconclusive");
    assert.equal(judge([observed({ condition: "shared", tenant: "small" })]).verdict, "inconclusive");
    const shared = traffic({ seed: 5, slowdown: 6 }).filter(({ condition }) => condition === "shared");
    const result = judge(shared);
    assert.equal(result.verdict, "inconclusive");
    assert.ok(result.notes.some((note) => note.includes("without its own solo run")));
    const flat = traffic({ seed: 6, slowdown: 1 }).map((seen) => ({
      ...seen,
      durationMs: 100,
      firstTokenMs: 10,
    }));
    assert.equal(judge(flat).verdict, "pass");
    const zero = flat.map((seen) => ({ ...seen, durationMs: 0, firstTokenMs: 0 }));
    assert.equal(judge(zero).verdict, "inconclusive");
  });

  it("notes spans that do not say whose they are or when the first token came", () => {
    const bare = traffic({ seed: 7, slowdown: 1 }).map((seen, index) => ({
      ...seen,
      firstTokenMs: undefined,
      tenant: index === 900 ? undefined : seen.tenant,
    }));
    const { notes, verdict } = judge(bare);
    assert.equal(verdict, "inconclusive");
    assert.ok(notes.some((note) => note.includes("stream them")));
    assert.ok(notes.some((note) => note.includes("whose they are")));
  });

  it("counts what others were served while a tenant waits, and holds it against a bound where there is one", () => {
    const seen = [
      observed({
        condition: "shared",
        tenant: "small",
        scheduledEpochMs: 100,
        firstTokenMs: 900,
        durationMs: 1000,
        promptTokens: 10,
        completionTokens: 2,
        gapsMs: [100],
      }),
      observed({
        condition: "shared",
        tenant: "large",
        scheduledEpochMs: 0,
        firstTokenMs: 50,
        durationMs: 450,
        promptTokens: 1000,
        completionTokens: 5,
        gapsMs: [100, 100, 100, 100],
      }),
    ];
    // the prompt was computed before the small tenant came; four outputs of weight 2 while it waited
    assert.equal(serviceGap(seen, "small")?.tokens, 8);
    assert.equal(serviceGap(seen, "large")?.tokens, undefined);
    const bounded = judge(seen, fairnessSettings.parse({ service_gap_tokens: 5 }));
    assert.equal(bounded.hypotheses.find(({ unit }) => unit === "tokens")?.verdict, "fail");
  });

  it("takes no setting that it does not know", () => {
    assert.throws(() => fairnessSettings.parse({ e2e: 3 }));
    assert.throws(() => fairnessSettings.parse({ alpha: 0 }));
  });
});
