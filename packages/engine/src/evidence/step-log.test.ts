import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { StepLog } from "./step-log.js";

/** Runs a step of the given shares, `[order, tokens, isPrefill, work]`. */
function run(
  log: StepLog,
  startMs: number,
  computeMs: number,
  shares: readonly (readonly [number, number, boolean, number])[],
): void {
  for (const [order, tokens, isPrefill, work] of shares) log.add(order, 0, tokens, isPrefill, work);
  log.measure(computeMs);
  log.end({ startMs, durationMs: computeMs + 1, blocksUsed: 3, blocksEvicted: 1, preemptions: 2 });
}

describe("the step log", () => {
  test("shares a step's compute time out by work", () => {
    const log = new StepLog(8, 32);
    run(log, 100, 12, [
      [7, 100, true, 100],
      [8, 1, false, 1],
      [9, 19, true, 19],
    ]);
    const step = log.at(0);
    assert(step !== undefined);
    assert.deepEqual(
      step.shares.map(({ order, ms }) => [order, Math.round(ms * 1e9) / 1e9]),
      [
        [7, 10],
        [8, 0.1],
        [9, 1.9],
      ],
    );
    assert.equal(Math.round(log.prefillMs * 1e9) / 1e9, 11.9);
    const { shares: _, ...rest } = step;
    assert.deepEqual(rest, {
      step: 0,
      startMs: 100,
      durationMs: 13,
      computeMs: 12,
      prefillTokens: 119,
      decodeTokens: 1,
      draftTokens: 0,
      blocksUsed: 3,
      blocksEvicted: 1,
      preemptions: 2,
    });
  });

  test("counts draft tokens apart from the tokens before them", () => {
    const log = new StepLog(8, 32);
    log.add(1, 0, 6, false, 6, 5);
    log.add(2, 0, 12, true, 12, 2);
    log.add(3, 0, 2, false, 2, 1);
    log.measure(40);
    log.end({ startMs: 0, durationMs: 41, blocksUsed: 1, blocksEvicted: 0, preemptions: 0 });
    const step = log.at(0);
    assert(step !== undefined);
    assert.deepEqual([step.prefillTokens, step.decodeTokens, step.draftTokens], [10, 2, 8]);
    assert.deepEqual(
      step.shares.map(({ tokens, draftTokens, ms }) => [tokens, draftTokens, ms]),
      [
        [6, 5, 12],
        [12, 2, 24],
        [2, 1, 4],
      ],
    );
  });

  test("forgets the oldest steps when either ring is full, and never half of one", () => {
    const log = new StepLog(4, 10);
    for (let step = 0; step < 20; step += 1) {
      const numShares = step % 5 === 0 ? 7 : 1 + (step % 3);
      run(
        log,
        step * 10,
        1,
        Array.from({ length: numShares }, (_, order) => [order, 1, false, 1] as const),
      );
      for (let earlier = 0; earlier <= step; earlier += 1) {
        const logged = log.at(earlier);
        if (earlier < log.oldest) assert.equal(logged, undefined);
        else {
          assert.equal(logged?.startMs, earlier * 10);
          assert.equal(logged.shares.length, earlier % 5 === 0 ? 7 : 1 + (earlier % 3));
        }
        assert.equal(log.numSharesOf(earlier), logged?.shares.length);
      }
      assert(step - log.oldest < 4);
    }
    for (const step of [-1, 20, 0.5, Number.NaN]) {
      assert.equal(log.at(step), undefined);
      assert.equal(log.numSharesOf(step), undefined);
    }
  });

  test("finds the steps that were under way in a span of time", () => {
    const log = new StepLog();
    for (let step = 0; step < 10; step += 1) run(log, step * 10, 4, [[0, 1, false, 1]]);
    const between = (from: number, to: number): number[] =>
      [...log.between(from, to)].map(({ step }) => step);
    assert.deepEqual(between(22, 41), [2, 3, 4]);
    assert.deepEqual(between(25, 40), [3]);
    assert.deepEqual(between(-5, 5), [0]);
    assert.deepEqual(between(95, 500), []);
  });

  test("estimates the cost of a prompt token from steps full of them", () => {
    const log = new StepLog();
    run(log, 0, 50, [[0, 2, true, 1]]);
    assert.equal(log.msPerPromptToken, undefined);
    for (const ms of [100, 110, 900]) run(log, 0, ms, [[0, 100, true, 1]]);
    assert.equal(log.msPerPromptToken, 1.1);
  });
});
