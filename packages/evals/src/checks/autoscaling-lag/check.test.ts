import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Random } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { observation } from "../testing/observation.js";
import { autoscalingLagCheck } from "./check.js";
import { autoscalingLagSettings } from "./settings.js";

interface Run {
  readonly seed: number;
  readonly cases?: number;
  /** First tokens in the burst before the second replica came, over idle. */
  readonly slowdown: number;
  readonly lost?: number;
}

function run({ seed, cases = 120, slowdown, lost = 0 }: Run): readonly Observation[] {
  const random = new Random(seed);
  const seen: Observation[] = [];
  for (const condition of ["idle", "scaling", "scaled"])
    for (let index = 0; index < cases; index++) {
      const times = condition === "scaling" ? slowdown : 1;
      const isScaling = condition === "scaling";
      seen.push(
        observation({
          caseId: `case-${index}`,
          condition,
          scheduledEpochMs: { idle: 0, scaling: 1e6, scaled: 1e6 + 100 * cases }[condition]! + 100 * index,
          firstTokenMs: 50 * times * Math.exp(0.2 * random.normal()),
          durationMs: 200,
          queueDepth: isScaling ? 20 : 1,
          replicaCount: condition === "scaled" ? 2 : 1,
          output: `answer ${index}`,
          scores: { ok: isScaling && random.uniform() < lost ? 0 : 1 },
        }),
      );
    }
  return seen;
}

const quick = autoscalingLagSettings.parse({ resamples: 400 });
const judge = (seen: readonly Observation[]) => autoscalingLagCheck.judge(seen, quick);

describe("autoscaling-lag", () => {
  it("passes a burst that costs nothing", () => {
    const result = judge(run({ seed: 1, slowdown: 1.2 }));
    assert.equal(result.verdict, "pass", result.summary);
    assert.ok(result.notes.some((note) => note.startsWith("All 120 answers")));
    assert.match(result.summary, /A replica joined after 12\.0 s/);
  });

  it("finds a slow scale-up in 20 of 20 runs, and a loss of answers", () => {
    for (let seed = 0; seed < 20; seed++)
      assert.equal(judge(run({ seed, slowdown: 8 })).verdict, "fail", `seed ${seed}`);
    const lost = judge(run({ seed: 2, slowdown: 1, lost: 0.3 }));
    assert.equal(lost.verdict, "fail");
    assert.equal(lost.hypotheses.find(({ verdict }) => verdict === "fail")?.name, "ok, less than idle");
    assert.equal(lost.ruleOfThumb.tripped, true);
  });

  it("alarms in less than alpha of 2,000 runs without a lag, and where the lag is all of its margin", () => {
    const count = (slowdown: number, runs: number, cases: number) => {
      let alarms = 0;
      for (let seed = 0; seed < runs; seed++)
        if (judge(run({ seed, slowdown, cases, lost: 0.02 })).verdict === "fail") alarms += 1;
      return alarms;
    };
    assert.ok(count(1, 2000, 60) <= 100);
    assert.ok(count(3, 200, 120) <= 10);
  });

  it("buckets saturation as published", () => {
    const at = (queueDepth: number, replicaCount: number | undefined, score: number) =>
      observation({
        caseId: "a",
        condition: "scaling",
        queueDepth,
        ...(replicaCount === undefined ? {} : { replicaCount }),
        scores: { g: score },
      });
    const { ruleOfThumb } = judge([
      at(1, 1, 0.9),
      at(2, 1, 0.8),
      at(15, 2, 0.7),
      at(31, 2, 0.6),
      at(32, 2, 0.5),
      at(3, 0, 0.8),
      at(9, undefined, 0),
    ]);
    assert.deepEqual(ruleOfThumb.columns, ["saturation", "requests", "p99 ms", "g"]);
    assert.deepEqual(ruleOfThumb.rows, [
      ["idle", 1, 100, 0.9],
      ["warm", 3, 100, 0.767],
      ["saturating", 1, 100, 0.6],
      ["scaling", 1, 100, 0.5],
    ]);
    assert.equal(ruleOfThumb.tripped, true);
  });

  it("counts answers that were scored on one side only, and lets no score pass where they are many", () => {
    const unscored = (share: number) =>
      run({ seed: 6, slowdown: 1 }).map((seen, index) =>
        seen.condition === "scaling" && index % Math.round(1 / share) === 0
          ? { ...seen, scores: { ok: null } }
          : seen,
      );
    const few = judge(unscored(0.04));
    assert.equal(few.verdict, "pass", few.summary);
    assert.ok(few.notes.includes("ok: 5 cases were scored on one side only, left out"), few.notes.join("\n"));
    const many = judge(unscored(0.25));
    assert.equal(many.verdict, "inconclusive");
    assert.ok(many.notes.some((note) => note.startsWith("ok: 30 cases were scored on one side only, 25 %")));
    const none = judge(unscored(1));
    assert.equal(none.verdict, "inconclusive");
    assert.equal(none.hypotheses.find(({ name }) => name === "ok, less than idle")?.estimate, undefined);
  });

  it("judges requests that fail, answers that are cut off and fallbacks once there are any", () => {
    const spoiled = run({ seed: 5, slowdown: 1 }).map((seen, index) => {
      if (seen.condition !== "scaling") return seen;
      if (index % 4 === 0) return { ...seen, failureCode: "timeout", output: undefined };
      if (index % 4 === 1) return { ...seen, finishReason: "length", output: "answ" };
      return index % 4 === 2 ? { ...seen, tags: ["fallback"] } : seen;
    });
    const result = judge(spoiled);
    const failed = result.hypotheses.filter(({ verdict }) => verdict === "fail").map(({ name }) => name);
    for (const path of ["requests that fail", "answers cut off", "answers of a fallback"])
      assert.ok(failed.includes(`${path}, more than idle`), failed.join(", "));
    assert.deepEqual(
      new Set(result.movedCases.map(({ what }) => what)),
      new Set(["failed", "cut off", "answered by a fallback"]),
    );
    assert.ok(result.advice.some(({ knob }) => knob.includes("--queue-timeout")));
  });

  it("pairs a case that the burst had twice with its idle answer each time", () => {
    const seen = run({ seed: 6, slowdown: 8, cases: 30 });
    const twice = seen.flatMap((one) =>
      one.condition === "scaling" ? [one, { ...one, scheduledEpochMs: one.scheduledEpochMs + 3050 }] : [one],
    );
    const result = judge(twice);
    assert.equal(result.sampleSize.have, 60);
    assert.equal(result.verdict, "fail");
  });

  it("does not pass a server that refuses everything, nor idle requests of which many failed", () => {
    const refused = (seen: Observation) => ({
      ...seen,
      failureCode: "unauthorized",
      firstTokenMs: undefined,
      durationMs: 2,
      output: undefined,
      scores: {},
    });
    const dead = judge(run({ seed: 8, slowdown: 1 }).map(refused));
    assert.equal(dead.verdict, "inconclusive", dead.summary);
    assert.ok(dead.notes.some((note) => note.startsWith("120 of 120 requests failed when idle")));
    const half = judge(
      run({ seed: 8, slowdown: 1, cases: 400 }).map((seen, index) =>
        seen.condition === "idle" && index % 10 === 0 ? refused(seen) : seen,
      ),
    );
    assert.equal(half.verdict, "inconclusive", half.summary);
  });

  it("takes no refusal for a quick answer", () => {
    // a third of a slow burst is refused at once: the others' waiting is what is judged
    const seen = run({ seed: 9, slowdown: 8 }).map((one, index) =>
      one.condition === "scaling" && index % 3 === 0
        ? { ...one, failureCode: "queue_full", firstTokenMs: undefined, durationMs: 1 }
        : one,
    );
    const waiting = judge(seen).hypotheses.find(({ name }) => name.startsWith("time to the first token"));
    assert.equal(waiting?.verdict, "fail");
  });

  it("does not pass by scores alone where nothing was streamed or pairs are few", () => {
    const mute = run({ seed: 8, slowdown: 1 }).map((seen) => ({ ...seen, firstTokenMs: undefined }));
    assert.equal(judge(mute).verdict, "inconclusive");
    assert.match(judge(mute).summary, /time to the first token, over idle, could not be judged/);
    assert.ok(judge(mute).notes.some((note) => note.includes("stream them")));
    const wide = autoscalingLagSettings.parse({ score_margin: 0.9 });
    const few = autoscalingLagCheck.judge(run({ seed: 8, slowdown: 1, cases: 30 }), wide);
    assert.equal(few.verdict, "inconclusive");
    assert.ok(few.notes.some((note) => note.startsWith("30 pairs bound no percentile")));
  });

  it("is inconclusive without observations, with one state, and with one case", () => {
    assert.equal(judge([]).verdict, "inconclusive");
    assert.equal(judge([observation({ caseId: "a", condition: "idle" })]).verdict, "inconclusive");
    assert.equal(judge(run({ seed: 7, slowdown: 9, cases: 1 })).verdict, "inconclusive");
    const bare = run({ seed: 8, slowdown: 1 }).map((seen) => ({ ...seen, queueDepth: undefined }));
    assert.ok(judge(bare).notes.some((note) => note.includes("in no bucket")));
  });
});
