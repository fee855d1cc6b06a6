import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { Random } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { observation } from "../testing/observation.js";
import { coin, countVerdicts, manyRuns, mostByChance } from "../testing/simulate.js";
import { evictionCheck } from "./check.js";
import { evictionSettings } from "./settings.js";

const settings = evictionSettings.parse({});

interface Run {
  readonly output: string;
  readonly score?: number | null;
  readonly digest?: string;
}

interface EvictedCase {
  readonly kept: Run;
  readonly again?: Run;
  readonly evicted: Run;
  readonly preemptions?: number;
}

function cases(all: readonly EvictedCase[]): readonly Observation[] {
  return all.flatMap(({ kept, again, evicted, preemptions = 1 }, index) => {
    const of = (condition: string, { output, score, digest }: Run, lost: number): Observation =>
      observation({
        caseId: `case-${index}`,
        condition,
        output,
        preemptions: lost,
        recomputedTokens: 20 * lost,
        cacheHitRatio: 0.9,
        scores: score === undefined ? {} : { exact: score },
        ...(digest === undefined ? {} : { logitsDigest: digest }),
      });
    return [
      of("kept", kept, 0),
      ...(again === undefined ? [] : [of("kept-again", again, 0)]),
      of("evicted", evicted, preemptions),
    ];
  });
}

const times = (count: number, one: EvictedCase): readonly EvictedCase[] =>
  Array.from({ length: count }, () => one);
const digested = (output: string, digest = output): Run => ({ output, score: 1, digest });
const unchanged = { kept: digested("a"), again: digested("a"), evicted: digested("a") };

describe("eviction", () => {
  test("one different bit on a server that digests its logits is a bug of the engine", () => {
    const moved = {
      kept: digested("abcd", "a1 b2 c3"),
      again: digested("abcd", "a1 b2 c3"),
      evicted: { output: "abXd", score: 0, digest: "a1 f2 c3" },
    };
    const result = evictionCheck.judge(cases([...times(79, unchanged), moved]), settings);
    assert.equal(result.verdict, "fail");
    assert.match(result.summary, /1 of 80 answers differ after eviction: recomputing.*bug of the engine/);
    assert.deepEqual(
      result.movedCases.map(({ caseId, what }) => [caseId, what]),
      [["case-79", "other logits from token 1 on; the text parts at character 2; exact: 1 → 0"]],
    );
    assert.equal(result.advice[0]?.knob, "engine");
    assert(
      result.notes.includes("1 of 80 answers differ; undisturbed, 0 of 80 differ from run to run (0 %)"),
    );
  });

  test("logits that differ under the same text fail too", () => {
    const moved = { ...unchanged, evicted: digested("a", "other") };
    const result = evictionCheck.judge(cases([...times(79, unchanged), moved]), settings);
    assert.equal(result.verdict, "fail");
    assert.equal(result.movedCases[0]?.what, "other logits from token 0 on; the text does not differ");
  });

  test("equality of enough cases passes; of few it does not", () => {
    assert.equal(evictionCheck.judge(cases(times(80, unchanged)), settings).verdict, "pass");
    const few = evictionCheck.judge(cases(times(20, unchanged)), settings);
    assert.equal(few.verdict, "inconclusive");
    assert.deepEqual([few.sampleSize.have, few.sampleSize.needed], [20, 72]);
  });

  test("without digests, answers may flip by rounding as long as they score the same", () => {
    const flipped = { kept: { output: "a", score: 1 }, evicted: { output: "b", score: 1 } };
    const same = { kept: { output: "a", score: 1 }, evicted: { output: "a", score: 1 } };
    const result = evictionCheck.judge(cases([...times(60, flipped), ...times(340, same)]), settings);
    assert.equal(result.verdict, "pass");
    assert.match(result.summary, /60 of 400 answers differ/);
    const broken = { kept: { output: "a", score: 1 }, evicted: { output: "b", score: 0 } };
    const worse = evictionCheck.judge(cases([...times(40, broken), ...times(360, same)]), settings);
    assert.equal(worse.verdict, "fail");
    assert.match(worse.summary, /score worse \(exact: loss 10 points/);
  });

  test("a judge's mood about equal answers does not count", () => {
    const moody = { kept: { output: "a", score: 1 }, evicted: { output: "a", score: 0 } };
    const result = evictionCheck.judge(cases(times(300, moody)), settings);
    assert.equal(result.verdict, "pass");
    assert.deepEqual(result.movedCases, []);
  });

  test("answers that were not recorded are not equal", () => {
    const unread = (count: number, given: EvictedCase): readonly Observation[] =>
      cases(times(count, given)).map((one) => ({ ...one, output: undefined }));
    const bare = { kept: { output: "" }, evicted: { output: "" } };
    const unknown = evictionCheck.judge(unread(300, bare), settings);
    assert.equal(unknown.verdict, "inconclusive");
    assert.match(unknown.summary, /^0 of 0 answers differ after eviction \(of 300 more it is not known\)/);
    const worse = { kept: { output: "", score: 1 }, evicted: { output: "", score: 0 } };
    assert.equal(evictionCheck.judge(unread(300, worse), settings).verdict, "fail");
    const partly = [
      ...cases(times(80, bare)),
      ...unread(20, bare).map((one) => ({ ...one, caseId: `u-${one.caseId}` })),
    ];
    assert.equal(evictionCheck.judge(partly, settings).verdict, "inconclusive");
  });

  test("cases that failed kept and evicted are missing", () => {
    const lost = cases(times(20, unchanged)).map((one) => ({
      ...one,
      caseId: `lost-${one.caseId}`,
      failureCode: "timeout",
    }));
    const result = evictionCheck.judge([...cases(times(80, unchanged)), ...lost], settings);
    assert.equal(result.verdict, "inconclusive");
  });

  test("cases that lost nothing are no evidence", () => {
    const untouched = evictionCheck.judge(cases(times(80, { ...unchanged, preemptions: 0 })), settings);
    assert.equal(untouched.verdict, "inconclusive");
    assert.match(untouched.summary, /None of 80 cases lost a block/);
  });

  test("the published curve has its buckets and does not decide", () => {
    const at = (caseId: string, cacheHitRatio: number, score: number): Observation =>
      observation({ caseId, condition: "recorded", cacheHitRatio, scores: { grounded: score } });
    const result = evictionCheck.judge(
      [at("a", 0.86, 0.88), at("b", 0.85, 0.82), at("c", 0.56, 0.82), at("d", 0.55, 0.69), at("e", 0, 0.69)],
      settings,
    );
    assert.deepEqual(result.ruleOfThumb.rows, [["grounded", 1, 0.88, 2, 0.82, 2, 0.69]]);
    assert.equal(result.ruleOfThumb.tripped, true);
    assert.equal(result.verdict, "inconclusive");
    assert(result.notes.some((note) => note.startsWith("recorded traffic alone cannot tell")));
  });

  describe("given little or nothing", () => {
    for (const [name, seen, says] of [
      ["no observations", [], /no answer under the condition "kept"/],
      ["one case", cases([unchanged]), /0 of 1 answers differ/],
      [
        "no evicted side",
        cases(times(9, unchanged)).filter(({ condition }) => condition === "kept"),
        /condition "evicted"/,
      ],
      [
        "scores that are all null and other texts",
        cases(times(80, { kept: { output: "a", score: null }, evicted: { output: "b", score: null } })),
        /80 of 80 answers differ|nothing was repeated/,
      ],
      [
        "requests that failed",
        cases(times(100, unchanged)).map((one, index) =>
          one.condition === "evicted" && index < 90 ? { ...one, failureCode: "timeout" } : one,
        ),
        /requests failed/,
      ],
    ] as const) {
      test(`${name}: inconclusive`, () => {
        const result = evictionCheck.judge(seen, settings);
        assert.equal(result.verdict, "inconclusive", result.summary);
        assert(
          result.notes.some((note) => says.test(note)),
          result.notes.join("\n"),
        );
      });
    }
  });

  describe("over many runs", () => {
    /** A server that rounds: `flips` of its answers change anyway, and eviction breaks `harm` of them. */
    const run = (seed: number, count: number, harm: number): readonly Observation[] => {
      const random = new Random(seed);
      const answer = (): Run => {
        const flip = coin(random, 0.15);
        return { output: `text ${flip}`, score: flip === 1 ? coin(random, 0.7) : 1 };
      };
      return cases(
        Array.from({ length: count }, () => ({
          kept: answer(),
          again: answer(),
          evicted: coin(random, harm) === 1 ? { output: "broken", score: 0 } : answer(),
        })),
      );
    };

    test("eviction without harm: at most alpha of many runs fail", () => {
      const strict = evictionSettings.parse({ margin: 0 });
      const counts = countVerdicts(manyRuns, (seed) => evictionCheck.judge(run(seed, 60, 0), strict).verdict);
      assert(counts.fail <= mostByChance(manyRuns, strict.alpha / 2), JSON.stringify(counts));
    });

    test("13 % of answers corrupted, as vllm#50702 had it: found in at least 19 of 20 runs", () => {
      const counts = countVerdicts(
        100,
        (seed) => evictionCheck.judge(run(seed, 250, 0.13), settings).verdict,
      );
      assert(counts.fail >= 95, JSON.stringify(counts));
    });
  });
});
