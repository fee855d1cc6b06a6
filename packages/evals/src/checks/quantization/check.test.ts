import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { Random } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { observation } from "../testing/observation.js";
import { coin, countVerdicts, manyRuns, mostByChance } from "../testing/simulate.js";
import { quantizationCheck } from "./check.js";
import { quantizationSettings } from "./settings.js";

const settings = quantizationSettings.parse({});

interface Answered {
  readonly before: number | null;
  readonly after: number | null;
  readonly cluster?: string;
  readonly tag?: string;
  readonly evaluator?: string;
}

/** Both answers to each case. */
function both(cases: readonly Answered[]): readonly Observation[] {
  return cases.flatMap(({ before, after, cluster, tag, evaluator = "exact" }, index) => {
    const common = { caseId: `case-${index}`, cluster, tags: tag === undefined ? [] : [tag] };
    return [
      observation({ ...common, condition: "baseline", scores: { [evaluator]: before }, output: "was" }),
      observation({ ...common, condition: "candidate", scores: { [evaluator]: after }, output: "is" }),
    ];
  });
}

const times = (count: number, one: Answered): readonly Answered[] => Array.from({ length: count }, () => one);

describe("quantization", () => {
  test("a variant that loses tool calls fails on that axis, and the published rule says the same", () => {
    const result = quantizationCheck.judge(
      both([
        ...times(170, { before: 1, after: 1, tag: "tools" }),
        ...times(26, { before: 1, after: 0, tag: "tools" }),
        ...times(4, { before: 0, after: 1, tag: "tools" }),
        ...times(200, { before: 1, after: 1, tag: "chat" }),
      ]),
      settings,
    );
    assert.equal(result.verdict, "fail");
    const [tools, chat] = result.hypotheses;
    assert.equal(tools?.name, "tools/exact");
    assert.equal(tools.verdict, "fail");
    assert(Math.abs(tools.estimate! - 0.11) < 1e-12);
    assert(tools.interval![0] > 0.02 && tools.interval![1] < 0.18);
    assert.equal(chat?.verdict, "pass");
    assert.match(result.summary, /tools\/exact lost 11 points/);
    assert.equal(result.ruleOfThumb.tripped, true);
    assert.deepEqual(result.ruleOfThumb.rows[0], ["tools/exact", 200, 0.98, 0.87, -11, "blocks the release"]);
    assert.equal(result.movedCases.length, 30);
    assert.equal(result.movedCases[0]?.what, "tools/exact: 1 → 0");
    assert.equal(result.movedCases.at(-1)?.what, "tools/exact: 0 → 1");
    assert(result.advice.some(({ knob }) => knob === "--quantization"));
    assert(result.notes.some((note) => note.startsWith("tools/exact: 26 cases lost, 4 gained of 200")));
  });

  test("two points are accepted for chat and block an agent by the published rule, not by the test", () => {
    const cases = both([
      ...times(98, { before: 1, after: 1, tag: "tools" }),
      ...times(2, { before: 1, after: 0, tag: "tools" }),
    ]);
    const agent = quantizationCheck.judge(cases, settings);
    assert.equal(agent.ruleOfThumb.tripped, true);
    assert.equal(agent.verdict, "inconclusive");
    const chat = quantizationCheck.judge(cases, quantizationSettings.parse({ workload: "chat" }));
    assert.equal(chat.ruleOfThumb.tripped, false);
    assert.equal(chat.hypotheses[0]?.margin, 0.05);
  });

  test("identical answers pass once there are enough of them, and say how many that is before", () => {
    const few = quantizationCheck.judge(both(times(40, { before: 1, after: 1 })), settings);
    assert.equal(few.verdict, "inconclusive");
    assert(few.sampleSize.needed! > 40);
    const many = quantizationCheck.judge(both(times(500, { before: 1, after: 1 })), settings);
    assert.equal(many.verdict, "pass");
    assert.deepEqual(many.advice, []);
    assert.equal(many.sampleSize.have, 500);
  });

  test("margins go by axis, then evaluator, then tag", () => {
    const margins = { "tools/exact": 0.01, exact: 0.03, tools: 0.07, json: 0.04 };
    const result = quantizationCheck.judge(
      both([
        { before: 1, after: 1, tag: "tools" },
        { before: 1, after: 1, tag: "chat" },
        { before: 1, after: 1, tag: "json", evaluator: "schema" },
        { before: 1, after: 1, evaluator: "other" },
      ]),
      quantizationSettings.parse({ margins }),
    );
    assert.deepEqual(
      result.hypotheses.map(({ name, margin }) => [name, margin]),
      [
        ["tools/exact", 0.01],
        ["chat/exact", 0.03],
        ["json/schema", 0.04],
        ["other", 0.02],
      ],
    );
  });

  test("forced tokens are shown by role and decide nothing", () => {
    const forced = (rank: number, logprob: number) => [
      { role: "prose", logprob: -0.1, rank: 1 },
      { role: "tool_argument", logprob, rank },
    ];
    const cases = both(times(12, { before: 1, after: 1 })).map((one) =>
      one.condition === "baseline"
        ? { ...one, forced: forced(1, -0.2) }
        : { ...one, forced: forced(3, -2.2) },
    );
    const result = quantizationCheck.judge(cases, settings);
    assert.equal(result.verdict, "inconclusive");
    assert(
      result.notes.some((note) =>
        note.startsWith("forced tokens, tool_argument: 12 of 12 first choices flipped"),
      ),
    );
    assert(result.notes.some((note) => note.includes("2.0000 nats lost per token")));
    const figure = result.figures.find(({ title }) => title.startsWith("First choices lost"));
    assert(figure?.kind === "intervals");
    assert.deepEqual(
      figure.rows.map(({ label, estimate }) => [label, estimate]),
      [
        ["prose", 0],
        ["tool_argument", 1],
      ],
    );
  });

  describe("given little or nothing", () => {
    for (const [name, cases, says] of [
      ["no observations", [], /no answer under the condition "baseline"/],
      ["one case", both([{ before: 1, after: 0 }]), /1 cases lost/],
      ["one cluster", both(times(50, { before: 1, after: 0, cluster: "one" })), /50 cases lost/],
      ["scores that are all null", both(times(50, { before: null, after: null })), /no evaluator scored/],
      [
        "one side only",
        both(times(50, { before: 1, after: 1 })).filter(({ condition }) => condition === "candidate"),
        /no answer under the condition "baseline"/,
      ],
      [
        "cases that do not pair",
        [
          observation({ caseId: "a", condition: "baseline", scores: { exact: 1 } }),
          observation({ caseId: "b", condition: "candidate", scores: { exact: 1 } }),
        ],
        /2 answers have none to the same case/,
      ],
      [
        "a judge that failed on one side",
        both(times(600, { before: 1, after: 1 })).map((one, index) =>
          one.condition === "candidate" && index < 200 ? { ...one, scores: { exact: null } } : one,
        ),
        /scored on one side only: the axis cannot pass/,
      ],
      [
        "requests that failed",
        both(times(600, { before: 1, after: 1 })).map((one, index) =>
          one.condition === "candidate" && index < 200 ? { ...one, failureCode: "timeout" } : one,
        ),
        /requests failed \(timeout\)/,
      ],
    ] as const) {
      test(`${name}: inconclusive, and it says why`, () => {
        const result = quantizationCheck.judge(cases, settings);
        assert.equal(result.verdict, "inconclusive");
        assert(
          result.notes.some((note) => says.test(note)),
          result.notes.join("\n"),
        );
        assert.notEqual(result.summary, "");
      });
    }
  });

  describe("over many runs", () => {
    /** Cases in conversations of `size` that share their difficulty; `loss` of the right answers are lost. */
    const run = (seed: number, conversations: number, size: number, loss: number): readonly Observation[] => {
      const random = new Random(seed);
      return both(
        Array.from({ length: conversations }, (_, conversation) => {
          const ability = 0.5 + 0.45 * random.uniform();
          const instability = 0.12 * random.uniform();
          return Array.from({ length: size }, () => {
            const before = coin(random, ability);
            const flipped = coin(random, instability) === 1 ? coin(random, ability) : before;
            const after = flipped === 1 && coin(random, loss) === 1 ? 0 : flipped;
            return { before, after, cluster: `conversation-${conversation}` };
          });
        }).flat(),
      );
    };

    test("nothing lost: at most alpha of many runs fail, whatever the margin", () => {
      const margins = [0, 0.02].map((margin) => quantizationSettings.parse({ margin }));
      const failed = [0, 0];
      for (let seed = 0; seed < manyRuns; seed++) {
        const cases = seed % 2 === 0 ? run(seed, 80, 1, 0) : run(seed, 25, 4, 0);
        for (const [index, limits] of margins.entries())
          if (quantizationCheck.judge(cases, limits).verdict === "fail") failed[index]! += 1;
      }
      for (const count of failed)
        assert(count <= mostByChance(manyRuns, settings.alpha / 2), failed.join(", "));
    });

    test("a loss on the margin is decided either way at most alpha of the time", () => {
      // of right answers, of which there are 0.725 on the whole
      const loss = 0.05 / 0.725;
      const limits = quantizationSettings.parse({ margin: 0.05 });
      const counts = countVerdicts(
        manyRuns,
        (seed) => quantizationCheck.judge(run(seed, 120, 1, loss), limits).verdict,
      );
      assert(counts.pass <= mostByChance(manyRuns, limits.alpha / 2), JSON.stringify(counts));
      assert(counts.pass + counts.fail <= mostByChance(manyRuns, limits.alpha), JSON.stringify(counts));
    });

    test("a loss of ten points is found in at least 19 of 20 runs", () => {
      const loss = 0.1 / 0.725;
      const counts = countVerdicts(
        200,
        (seed) => quantizationCheck.judge(run(seed, 400, 1, loss), settings).verdict,
      );
      assert(counts.fail >= 190, JSON.stringify(counts));
    });

    test("graded scores: no false alarms, and a loss is found", () => {
      const graded = (seed: number, loss: number): readonly Observation[] => {
        const random = new Random(seed);
        return both(
          Array.from({ length: 60 }, () => {
            const before = random.uniform();
            const noise = coin(random, 0.3) === 1 ? 0.2 * (random.uniform() - 0.5) : 0;
            const after = Math.min(1, Math.max(0, before + noise - (coin(random, 0.4) === 1 ? loss : 0)));
            return { before, after };
          }),
        );
      };
      const none = quantizationSettings.parse({ margin: 0 });
      const same = countVerdicts(manyRuns, (seed) => quantizationCheck.judge(graded(seed, 0), none).verdict);
      assert(same.fail <= mostByChance(manyRuns, none.alpha / 2), JSON.stringify(same));
      const worse = countVerdicts(
        100,
        (seed) => quantizationCheck.judge(graded(seed, 0.3), settings).verdict,
      );
      assert(worse.fail >= 95, JSON.stringify(worse));
    });
  });
});
