import assert from "node:assert/strict";
import test, { describe } from "node:test";
import type { Observation } from "../observation.js";
import { checkNamed } from "../table.js";
import { observation } from "../testing/observation.js";

/** Cases under both conditions; of the candidate's, scores of the judge fail where told. */
function judged(isFailed: (index: number) => boolean, exact: (index: number) => number = () => 1) {
  return Array.from({ length: 400 }, (_, index): readonly Observation[] => {
    const caseId = `case-${index}`;
    return [
      observation({ caseId, condition: "baseline", scores: { exact: 1, tone: 1 }, output: "a" }),
      observation({
        caseId,
        condition: "candidate",
        scores: { exact: exact(index), tone: isFailed(index) ? null : 1 },
        output: "a",
        ...(isFailed(index) ? { failedScores: ["tone"] } : {}),
      }),
    ];
  }).flat();
}

describe("evaluators that fail", () => {
  const row = checkNamed("quantization");

  test("a few failed scores are borne, more draw no verdict", () => {
    const few = row.judge(
      judged((index) => index % 20 === 0),
      {},
    );
    assert.deepEqual([few.verdict, few.brokenEvaluators], ["pass", undefined]);
    const many = row.judge(
      judged((index) => index % 10 === 0),
      {},
    );
    assert.equal(many.verdict, "inconclusive");
    assert.deepEqual(many.brokenEvaluators, [{ evaluator: "tone", side: "candidate", failed: 40, of: 400 }]);
    assert.match(many.summary, /^No verdict is drawn: tone could not score 40 of 400 outputs of candidate/);
    assert(many.notes.some((note) => note.startsWith("tone could not score 40 of 400")));
  });

  test("an evaluator that never scored is not forgotten", () => {
    const seen = judged(() => true).map((one) => ({
      ...one,
      scores: { exact: 1, tone: null },
      failedScores: ["tone"],
    }));
    const result = row.judge(seen, {});
    assert.equal(result.verdict, "inconclusive");
    assert.deepEqual(
      result.brokenEvaluators?.map(({ side }) => side),
      ["baseline", "candidate"],
    );
  });

  test("a failure stands where it shows without the broken evaluator, and falls where it rests on it", () => {
    const lost = row.judge(
      judged(
        (index) => index % 10 === 0,
        (index) => Number(index % 4 !== 0),
      ),
      {},
    );
    assert.equal(lost.verdict, "fail");
    assert.equal(lost.brokenEvaluators?.length, 1);
    const moody = judged((index) => index % 10 === 0).map((one, index) =>
      one.condition === "candidate" && one.failedScores === undefined && index % 4 === 1
        ? { ...one, scores: { exact: 1, tone: 0 } }
        : one,
    );
    assert.equal(row.judge(moody, {}).verdict, "inconclusive");
  });

  test("of replicas each is a side", () => {
    const seen = Array.from({ length: 300 }, (_, index) =>
      [0, 1, 2, 3, 4, 5, 6, 7].map((replica) =>
        observation({
          caseId: `case-${index}`,
          condition: "replica",
          replica: `r${replica}`,
          scores: { tone: replica === 3 && index % 5 === 0 ? null : 1 },
          ...(replica === 3 && index % 5 === 0 ? { failedScores: ["tone"] } : {}),
        }),
      ),
    ).flat();
    const result = checkNamed("replica-skew").judge(seen, {});
    assert.deepEqual(result.brokenEvaluators, [{ evaluator: "tone", side: "r3", failed: 60, of: 300 }]);
    assert.equal(result.verdict, "inconclusive");
  });
});
