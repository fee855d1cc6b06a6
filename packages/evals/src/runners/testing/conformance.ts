import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EvaluatorTable } from "../../evaluators/registry.js";
import type { Evaluator, Sample } from "../../evaluators/evaluator.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import type { Runner, RunnerProgress, ScoredCase } from "../runner.js";
import { evaluators as testRows } from "./evaluators.js";

/** For runners that score elsewhere: what to load there, so that the suite's evaluators are known. */
export const conformanceModule = new URL("evaluators.js", import.meta.url).href;

export interface ConformanceLimits {
  /** Most samples that the runner may hold: taken from the source and not all given back. */
  readonly samplesInFlight: number;
  /** Samples of the test that watches it; many times as many. */
  readonly manySamples: number;
}

const specs = ["test_length", "test_throws", "test_gold"];
const table = new EvaluatorTable(testRows);

function sampleNumber(index: number): Sample {
  const output = index % 7 === 3 ? "throw" : "x".repeat(index % 40);
  return sampleOf({
    output,
    case: { id: `case-${index}`, expected: index % 2 === 0 ? { outputs: ["xx"] } : {} },
  });
}

function* samplesUpTo(count: number): Generator<Sample, void, undefined> {
  for (let index = 0; index < count; index++) yield sampleNumber(index);
}

function expectedRow(
  index: number,
  evaluator: string,
): ScoredCase["score"] | { status: "failed"; code: string } {
  const { text } = sampleNumber(index).answer;
  if (evaluator === "test_length") {
    const value = (text.length % 100) / 100;
    return { status: "scored", value, passed: value >= 0.5, details: { length: text.length } };
  }
  if (evaluator === "test_throws") {
    if (text === "throw") return { status: "failed", code: "judge_failed", reason: "as it was asked to" };
    return { status: "scored", value: 1, passed: true };
  }
  if (index % 2 === 1) return { status: "skipped", reason: "the case has no expected output" };
  return { status: "scored", value: text === "xx" ? 1 : 0, passed: text === "xx" };
}

function pairOf(row: ScoredCase): string {
  return `${row.caseId} ${row.evaluator}`;
}

/** Asserts that the rows are those of samples 0 to `count` - 1, each pair once, whatever their order. */
function assertComplete(rows: readonly ScoredCase[], count: number): void {
  const byPair = new Map(rows.map((row) => [pairOf(row), row.score]));
  assert.equal(byPair.size, rows.length, "a pair was scored twice");
  assert.equal(rows.length, count * specs.length);
  for (let index = 0; index < count; index++) {
    for (const evaluator of specs) {
      assert.deepEqual(byPair.get(`case-${index} ${evaluator}`), expectedRow(index, evaluator));
    }
  }
}

/** What holds for every runner. `open` makes a new one; the suite closes it. */
export function runnerConformance(
  name: string,
  open: () => Runner | Promise<Runner>,
  limits: ConformanceLimits,
): void {
  const evaluators = table.create(specs);

  async function withRunner(use: (runner: Runner) => Promise<void>): Promise<void> {
    const runner = await open();
    try {
      await use(runner);
    } finally {
      await runner.close();
    }
  }

  const collect = async (
    runner: Runner,
    samples: AsyncIterable<Sample> | Iterable<Sample>,
    options: {
      signal?: AbortSignal;
      onProgress?: (progress: RunnerProgress) => void;
      with?: Evaluator[];
    } = {},
  ): Promise<ScoredCase[]> => {
    const rows: ScoredCase[] = [];
    const { signal = new AbortController().signal, onProgress } = options;
    const run = runner.run(samples, options.with ?? evaluators, {
      signal,
      ...(onProgress === undefined ? {} : { onProgress }),
    });
    for await (const row of run) rows.push(row);
    return rows;
  };

  describe(`${name} as a runner`, () => {
    test("scores every pair exactly once; what throws has failed and what lacks its gold is skipped", () =>
      withRunner(async (runner) => assertComplete(await collect(runner, samplesUpTo(60)), 60)));

    test("gives the same rows whatever the order of the samples", () =>
      withRunner(async (runner) =>
        assertComplete(await collect(runner, [...samplesUpTo(40)].toReversed()), 40),
      ));

    test("ends at once without samples or without evaluators", () =>
      withRunner(async (runner) => {
        assert.deepEqual(await collect(runner, []), []);
        assert.deepEqual(await collect(runner, samplesUpTo(3), { with: [] }), []);
      }));

    test("counts its progress up to every pair", () =>
      withRunner(async (runner) => {
        const seen: RunnerProgress[] = [];
        await collect(runner, samplesUpTo(20), { onProgress: (progress) => seen.push(progress) });
        const done = seen.map((progress) => progress.done);
        assert.deepEqual(
          done,
          done.toSorted((a, b) => a - b),
        );
        assert.deepEqual([seen.at(-1)?.done, seen.at(-1)?.failed], [60, 3]);
      }));

    test("rejects with the reason of an abort, closes its source, and can run again", () =>
      withRunner(async (runner) => {
        const control = new AbortController();
        const reason = new DOMException("enough", "AbortError");
        let isClosed = false;
        async function* endless(): AsyncGenerator<Sample, void, undefined> {
          try {
            for (let index = 0; ; index++) yield sampleNumber(index);
          } finally {
            isClosed = true;
          }
        }
        await assert.rejects(async () => {
          for await (const row of runner.run(endless(), evaluators, { signal: control.signal })) {
            if (row.caseId === "case-5") control.abort(reason);
          }
        }, reason);
        assert.ok(isClosed, "the source was left open");
        await assert.rejects(collect(runner, samplesUpTo(3), { signal: control.signal }), reason);
        assertComplete(await collect(runner, samplesUpTo(10)), 10);
      }));

    test("stops and closes its source when its reader leaves", () =>
      withRunner(async (runner) => {
        let isClosed = false;
        function* watched(): Generator<Sample, void, undefined> {
          try {
            yield* samplesUpTo(1_000_000);
          } finally {
            isClosed = true;
          }
        }
        const { signal } = new AbortController();
        for await (const row of runner.run(watched(), evaluators, { signal })) {
          assert.ok(row);
          break;
        }
        assert.ok(isClosed, "the source was left open");
        assertComplete(await collect(runner, samplesUpTo(10)), 10);
      }));

    test("rejects with the error of its source", () =>
      withRunner(async (runner) => {
        const error = new TypeError("line 5 is no case");
        async function* breaking(): AsyncGenerator<Sample, void, undefined> {
          yield* samplesUpTo(4);
          throw error;
        }
        await assert.rejects(collect(runner, breaking()), error);
        assertComplete(await collect(runner, samplesUpTo(10)), 10);
      }));

    test(`holds at most ${limits.samplesInFlight} samples however many there are`, () =>
      withRunner(async (runner) => {
        let numTaken = 0;
        let numRows = 0;
        let most = 0;
        function* counted(): Generator<Sample, void, undefined> {
          for (const sample of samplesUpTo(limits.manySamples)) {
            numTaken++;
            yield sample;
          }
        }
        const { signal } = new AbortController();
        for await (const row of runner.run(counted(), evaluators, { signal })) {
          assert.ok(row);
          most = Math.max(most, numTaken - numRows / specs.length);
          numRows++;
        }
        assert.equal(numRows, limits.manySamples * specs.length);
        assert.ok(most <= limits.samplesInFlight, `${Math.ceil(most)} samples were held`);
      }));

    test("carries long outputs and lone surrogates unharmed", () =>
      withRunner(async (runner) => {
        const long = sampleOf({ output: "x".repeat(1_000_033), case: { id: "long" } });
        const lone = sampleOf({
          output: "\ud800\ud800",
          case: { id: "lone", expected: { outputs: ["\ud800\ud800"] } },
        });
        const rows = await collect(runner, [long, lone]);
        const scoreOf = (pair: string) => rows.find((row) => pairOf(row) === pair)?.score;
        assert.deepEqual(scoreOf("long test_length"), {
          status: "scored",
          value: 0.33,
          passed: false,
          details: { length: 1_000_033 },
        });
        assert.deepEqual(scoreOf("lone test_gold"), { status: "scored", value: 1, passed: true });
      }));
  });
}
