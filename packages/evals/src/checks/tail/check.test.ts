import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { Random } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { observation } from "../testing/observation.js";
import { coin, countVerdicts, manyRuns, mostByChance } from "../testing/simulate.js";
import { tailCheck } from "./check.js";
import { tailSettings } from "./settings.js";

const settings = tailSettings.parse({});

/** Answers with one scored part in each third of the output, each right with a probability by position. */
function answers(
  random: Random,
  count: number,
  rightAt: (promptTokens: number, fromToken: number) => number,
): readonly Observation[] {
  return Array.from({ length: count }, (_, index) => {
    const promptTokens = [4_000, 20_000, 50_000, 100_000][index % 4]!;
    const luck = 0.08 * (random.uniform() - 0.5);
    return observation({
      caseId: `case-${index}`,
      promptTokens,
      completionTokens: 2_600,
      output: "text",
      parts: [0, 250, 700, 1_500, 2_100, 2_500].map((fromToken) => ({
        evaluator: "grounded",
        fromToken,
        toToken: fromToken + 100,
        value: coin(random, rightAt(promptTokens, fromToken) + luck),
      })),
    });
  });
}

describe("tail", () => {
  test("a cliff in the longest cell is found, drawn and explained", () => {
    const seen = answers(new Random(1), 400, (prompt, from) =>
      prompt > 64_000 && from >= 2_000 ? 0.55 : 0.9,
    );
    const result = tailCheck.judge(seen, settings);
    assert.equal(result.verdict, "fail");
    const failed = result.hypotheses.filter(({ verdict }) => verdict === "fail");
    assert.deepEqual(
      failed.map(({ name }) => name),
      ["grounded: prompts 64k+ × output 2000+"],
    );
    assert.equal(result.ruleOfThumb.tripped, true);
    assert.deepEqual(
      result.ruleOfThumb.rows.map((row) => row[1]),
      ["0-8k", "8k-32k", "32k-64k", "64k+"],
    );
    assert.deepEqual(result.ruleOfThumb.columns.slice(2), [
      "output first 500",
      "output 500-2000",
      "output 2000+",
    ]);
    const [heatmap] = result.figures;
    assert(heatmap?.kind === "heatmap");
    const cell = heatmap.cells[3]![2]!;
    assert.equal(cell.count, 200);
    assert(cell.value < 0.65 && cell.interval![0] < cell.value && cell.interval![1] > cell.value);
    assert(result.movedCases.length === 50);
    assert.match(result.movedCases[0]!.what, /tokens 2[15]00 to .* scored 0, with a prompt of 100000/);
    assert(result.advice.some(({ knob }) => knob === "--max-model-len"));
    assert(
      result.notes.some((note) => note.startsWith("grounded: each doubling of the place in the answer")),
    );
  });

  test("buckets are the published ones, in tokens, and can be others", () => {
    const at = (promptTokens: number, fromToken: number, caseId: string): Observation =>
      observation({
        caseId,
        promptTokens,
        parts: [{ evaluator: "e", fromToken, toToken: fromToken + 1, value: 1 }],
      });
    const counts = (one: Observation, given: object): (number | undefined)[][] => {
      const [figure] = tailCheck.judge([one], tailSettings.parse(given)).figures;
      assert(figure?.kind === "heatmap");
      return figure.cells.map((row) => row.map((cell) => cell?.count));
    };
    const place = (table: (number | undefined)[][]): string =>
      table
        .flatMap((row, i) => row.flatMap((count, j) => (count === undefined ? [] : [`${i},${j}`])))
        .join(" ");
    assert.equal(place(counts(at(7_999, 499, "a"), {})), "0,0");
    assert.equal(place(counts(at(8_000, 500, "a"), {})), "1,1");
    assert.equal(place(counts(at(31_999, 1_999, "a"), {})), "1,1");
    assert.equal(place(counts(at(32_000, 2_000, "a"), {})), "2,2");
    assert.equal(place(counts(at(64_000, 9_000, "a"), {})), "3,2");
    const small = { prompt_edges: [512, 1024, 2048], output_edges: [32] };
    assert.equal(place(counts(at(1_500, 31, "a"), small)), "2,0");
    assert.throws(() => tailSettings.parse({ prompt_edges: [512, 512] }), /rising/);
  });

  test("judges recordings of any size", () => {
    const one = (promptTokens: number, index: number) =>
      observation({
        caseId: String(index),
        promptTokens,
        parts: [{ evaluator: "e", fromToken: 0, toToken: 1, value: 1 }],
      });
    const seen = Array.from({ length: 200_000 }, (_, index) => one(index < 100 ? 9_000 : 10, index));
    assert.equal(tailCheck.judge(seen, tailSettings.parse({})).verdict, "pass");
  });

  test("cells too thin to be tested let nothing pass", () => {
    const short = answers(new Random(3), 600, () => 1);
    const deep = short.slice(0, 5).map((one, index) => ({
      ...one,
      caseId: `deep-${index}`,
      parts: [{ evaluator: "grounded", fromToken: 2_100, toToken: 2_200, value: 0 }],
    }));
    const shallow = short.map((one) => ({
      ...one,
      parts: one.parts!.filter(({ fromToken }) => fromToken < 2_000),
    }));
    assert.equal(tailCheck.judge(shallow, settings).verdict, "pass");
    const result = tailCheck.judge([...shallow, ...deep], settings);
    assert.equal(result.verdict, "inconclusive");
    assert.match(result.summary, /^Not decided: 4 cells have answers and too few cases .* output 2000\+/);
    assert(result.advice.some(({ knob }) => knob === "prompt_edges, output_edges"));
  });

  test("the published table scores slices as one text; of recorded parts it says that they are averaged", () => {
    const parts = [0, 100].map((fromToken) => ({
      evaluator: "e",
      fromToken,
      toToken: fromToken + 100,
      value: 1,
    }));
    const slices = [{ evaluator: "e", fromToken: 0, toToken: 200, value: 0.25 }];
    const one = observation({ caseId: "a", promptTokens: 100, parts });
    const { ruleOfThumb: ofSlices } = tailCheck.judge([{ ...one, slices }], settings);
    assert.deepEqual(ofSlices.rows, [["e", "0-8k", 0.25, null, null]]);
    assert.doesNotMatch(ofSlices.rule, /averaged/);
    const { ruleOfThumb: ofParts } = tailCheck.judge([one], settings);
    assert.deepEqual(ofParts.rows, [["e", "0-8k", 1, null, null]]);
    assert.match(ofParts.rule, /Of 1 answers parts were averaged/);
  });

  test("whole answers stand at their last token", () => {
    const result = tailCheck.judge(
      [
        observation({
          caseId: "a",
          promptTokens: 100,
          completionTokens: 700,
          scores: { exact: 1, other: null },
        }),
      ],
      settings,
    );
    const [figure] = result.figures;
    assert(figure?.kind === "heatmap");
    assert.equal(figure.cells[0]![1]?.count, 1);
    assert(result.notes.some((note) => note.startsWith("1 answers were scored as a whole")));
  });

  describe("given little or nothing", () => {
    const perfect = answers(new Random(3), 600, () => 1);
    for (const [name, seen, verdict, says] of [
      ["no observations", [], "inconclusive", /no answer under the condition/],
      ["one case", answers(new Random(1), 1, () => 0.5), "inconclusive", /fewer than 8 independent cases/],
      [
        "no token counts",
        [observation({ caseId: "a", scores: { exact: 1 } })],
        "inconclusive",
        /do not say how long/,
      ],
      [
        "scores that are all null",
        [observation({ caseId: "a", promptTokens: 5, completionTokens: 5, scores: { exact: null } })],
        "inconclusive",
        undefined,
      ],
      ["scores without variance", perfect, "pass", undefined],
      [
        "requests that failed",
        perfect.map((one, index) => (index % 3 === 0 ? { ...one, failureCode: "timeout" } : one)),
        "inconclusive",
        /200 requests failed/,
      ],
    ] as const) {
      test(`${name}: ${verdict}`, () => {
        const result = tailCheck.judge(seen, settings);
        assert.equal(result.verdict, verdict, result.summary);
        if (says !== undefined)
          assert(
            result.notes.some((note) => says.test(note)),
            result.notes.join("\n"),
          );
      });
    }

    test("a few perfect cases prove nothing", () => {
      const result = tailCheck.judge(
        answers(new Random(3), 40, () => 1),
        settings,
      );
      assert.equal(result.verdict, "inconclusive");
      assert(result.sampleSize.needed! > result.sampleSize.have);
    });
  });

  describe("over many runs", () => {
    test("the same everywhere: at most alpha / 2 of many runs fail", () => {
      const strict = tailSettings.parse({ margin: 0, prompt_edges: [8_000], output_edges: [500, 2_000] });
      let shift = 0;
      const counts = countVerdicts(manyRuns, (seed) => {
        const random = new Random(seed);
        shift = 0.5 + 0.45 * random.uniform();
        return tailCheck.judge(
          answers(random, 40, () => shift),
          strict,
        ).verdict;
      });
      assert(counts.fail <= mostByChance(manyRuns, strict.alpha / 2), JSON.stringify(counts));
    });

    test("a cliff of 25 points is found in at least 19 of 20 runs", () => {
      const counts = countVerdicts(40, (seed) => {
        const seen = answers(new Random(seed), 320, (prompt, from) =>
          prompt > 64_000 && from >= 2_000 ? 0.63 : 0.88,
        );
        return tailCheck.judge(seen, settings).verdict;
      });
      assert(counts.fail >= 38, JSON.stringify(counts));
    });
  });
});
