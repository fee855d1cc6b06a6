import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { Random } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { observation } from "../testing/observation.js";
import { coin, countVerdicts, manyRuns, mostByChance } from "../testing/simulate.js";
import { replicaSkewCheck } from "./check.js";
import { replicaSkewSettings } from "./settings.js";

const settings = replicaSkewSettings.parse({});

interface FleetOptions {
  readonly replicas?: number;
  readonly count?: number;
  /** Share of cases whose answer is unstable from request to request. */
  readonly unstable?: number;
  /** Share of right answers that the last replica loses. */
  readonly drop?: number;
  readonly digest?: (replica: number, index: number) => string | undefined;
}

function fleet(
  seed: number,
  { replicas = 4, count = 100, unstable = 0.1, drop = 0, digest = () => undefined }: FleetOptions,
): readonly Observation[] {
  const random = new Random(seed);
  return Array.from({ length: count }, (_, index) => {
    const usual = coin(random, 0.85);
    const isUnstable = coin(random, unstable) === 1;
    return Array.from({ length: replicas }, (_unused, replica) => {
      const right = isUnstable ? coin(random, 0.5) : usual;
      const score = replica === replicas - 1 && right === 1 && coin(random, drop) === 1 ? 0 : right;
      const logitsDigest = digest(replica, index);
      return observation({
        caseId: `case-${index}`,
        condition: "replica",
        replica: `replica-${replica}`,
        scores: { json: score },
        output: `answer ${score}`,
        ...(logitsDigest === undefined ? {} : { logitsDigest }),
      });
    });
  }).flat();
}

describe("replica-skew", () => {
  test("a replica with other logits is named by its fingerprint", () => {
    const seen = fleet(1, {
      unstable: 0,
      digest: (replica, index) => (replica === 2 && index % 2 === 0 ? "x" : `d${index}`),
    });
    const result = replicaSkewCheck.judge(seen, settings);
    assert.equal(result.verdict, "fail");
    assert.match(result.summary, /replica-2: logits unlike the fleet's on 50 % of cases/);
    assert.deepEqual(
      result.hypotheses.filter(({ verdict }) => verdict === "fail").map(({ name }) => name),
      ["replica-2: logits unlike the fleet's"],
    );
    assert(result.notes.includes("replica-2: logits unlike the majority's on 50 of 100 cases, case-0 first"));
    assert(result.advice.some(({ knob, change }) => knob === "drain" && change.includes("replica-2")));
  });

  test("on machines of several kinds unequal logits decide nothing", () => {
    const seen = fleet(1, { count: 600, unstable: 0, digest: (replica) => `machine ${replica}` });
    const mixed = replicaSkewSettings.parse({ is_homogeneous: false });
    assert.equal(replicaSkewCheck.judge(seen, mixed).verdict, "pass");
    assert.equal(replicaSkewCheck.judge(seen, settings).verdict, "fail");
  });

  test("between two replicas that differ, both are named", () => {
    const seen = fleet(1, { replicas: 2, unstable: 0, digest: (replica) => `d${replica}` });
    const result = replicaSkewCheck.judge(seen, settings);
    assert.match(result.summary, /nothing says which of them is wrong/);
    assert.equal(
      result.hypotheses.filter(({ name, verdict }) => name.includes("logits") && verdict === "fail").length,
      2,
    );
    assert(result.notes.some((note) => note.startsWith("100 cases have no majority")));
  });

  test("of three replicas one is wrong: a healthy one is not blamed for a case that the other failed", () => {
    const seen = fleet(1, {
      replicas: 3,
      unstable: 0,
      digest: (replica, index) => (replica === 1 ? "x" : `d${index}`),
    }).map((one, index) => (index === 3 * 40 + 2 ? { ...one, failureCode: "timeout" } : one));
    const result = replicaSkewCheck.judge(seen, settings);
    assert.deepEqual(
      result.hypotheses.filter(({ verdict }) => verdict === "fail").map(({ name }) => name),
      ["replica-1: logits unlike the fleet's"],
    );
    assert(result.notes.includes("1 cases have no majority: they count for no replica"));
    assert(!result.advice.some(({ change }) => change.includes("replica-0")));
  });

  test("an evenly split fleet fails and no replica is named", () => {
    const seen = fleet(1, { unstable: 0, digest: (replica) => `d${replica % 2}` });
    const result = replicaSkewCheck.judge(seen, settings);
    assert.equal(result.verdict, "fail");
    assert.match(result.summary, /no majority agrees on logits on 100 % of cases/);
    assert.deepEqual(
      result.advice.map(({ knob }) => knob),
      ["model files"],
    );
  });

  test("scores decide where there are no digests", () => {
    const result = replicaSkewCheck.judge(fleet(7, { count: 300, drop: 0.15 }), settings);
    assert.equal(result.verdict, "fail");
    assert.match(result.summary, /replica-3: json below the others by/);
    assert.deepEqual(
      result.hypotheses.filter(({ verdict }) => verdict === "fail").map(({ name }) => name),
      ["replica-3: json below the others"],
    );
    const [heatmap] = result.figures;
    assert(heatmap?.kind === "heatmap");
    assert.deepEqual(heatmap.y, ["replica-0", "replica-1", "replica-2", "replica-3"]);
    assert(heatmap.cells[3]![0]!.value < heatmap.cells[0]![0]!.value);
    assert.match(result.movedCases[0]!.what, /^replica-3: json 0, the others/);
    assert.equal(result.ruleOfThumb.tripped, true);
    assert.equal(result.ruleOfThumb.rows[0]?.at(-1), "drifted");
    assert(result.notes.some((note) => /standard deviation of .* beyond chance/.test(note)));
  });

  test("the exact test is McNemar's between two replicas", () => {
    const of = (index: number, scores: readonly number[]): readonly Observation[] =>
      scores.map((score, replica) =>
        observation({
          caseId: `c${index}`,
          condition: "replica",
          replica: `r${replica}`,
          scores: { e: score },
        }),
      );
    const seen = [
      ...Array.from({ length: 8 }, (_, index) => of(index, [1, 0])).flat(),
      ...of(8, [0, 1]),
      ...of(9, [1, 1]),
    ];
    const result = replicaSkewCheck.judge(seen, settings);
    // P(at most 1 of 9) = 10 / 512
    assert(
      result.notes.some((note) => note.startsWith("r1: e is below the others (exact test, p = 0.020)")),
      result.notes.join("\n"),
    );
  });

  describe("given little or nothing", () => {
    for (const [name, seen, says] of [
      ["no observations", [], undefined],
      ["one replica", fleet(1, { replicas: 1 }), undefined],
      ["one case", fleet(1, { count: 1 }), /no digests of logits/],
      [
        "observations that name no replica",
        fleet(1, {}).map((one) => ({ ...one, replica: undefined })),
        /400 observations do not say which replica/,
      ],
      [
        "scores that are all null",
        fleet(1, {}).map((one) => ({ ...one, scores: { json: null } })),
        undefined,
      ],
      [
        "cases that no two replicas share",
        fleet(1, {}).map((one) => ({ ...one, caseId: `${one.caseId}-${one.replica}` })),
        undefined,
      ],
      [
        "a replica that fails",
        fleet(1, { count: 900, unstable: 0 }).map((one) =>
          one.replica === "replica-1" ? { ...one, failureCode: "connection" } : one,
        ),
        /replica-1: 900 requests failed/,
      ],
    ] as const) {
      test(`${name}: inconclusive`, () => {
        const result = replicaSkewCheck.judge(seen, settings);
        assert.equal(result.verdict, "inconclusive", result.summary);
        if (says !== undefined)
          assert(
            result.notes.some((note) => says.test(note)),
            result.notes.join("\n"),
          );
      });
    }
  });

  describe("over many runs", () => {
    test("eight healthy replicas: at most alpha / 2 of many runs fail, while the published rule often trips", () => {
      const strict = replicaSkewSettings.parse({ margin: 0 });
      let tripped = 0;
      const counts = countVerdicts(manyRuns, (seed) => {
        const result = replicaSkewCheck.judge(fleet(seed, { replicas: 8, count: 40 }), strict);
        if (result.ruleOfThumb.tripped) tripped++;
        return result.verdict;
      });
      assert(counts.fail <= mostByChance(manyRuns, strict.alpha / 2), JSON.stringify(counts));
      assert(tripped > manyRuns / 4, `${tripped}`);
    });

    test("three replicas of which half the answers are unstable: some of many runs fail, at most alpha / 2 of them", () => {
      const strict = replicaSkewSettings.parse({ margin: 0 });
      // few fail, so fewer runs than these may have none
      const runs = 2000;
      const counts = countVerdicts(
        runs,
        (seed) =>
          replicaSkewCheck.judge(fleet(seed, { replicas: 3, count: 100, unstable: 0.5 }), strict).verdict,
      );
      assert(counts.fail > 0 && counts.fail <= mostByChance(runs, strict.alpha / 2), JSON.stringify(counts));
    });

    test("a replica that lost a tenth of its answers is found in at least 19 of 20 runs", () => {
      const counts = countVerdicts(
        60,
        (seed) => replicaSkewCheck.judge(fleet(seed, { count: 500, drop: 0.12 }), settings).verdict,
      );
      assert(counts.fail >= 57, JSON.stringify(counts));
    });
  });
});
