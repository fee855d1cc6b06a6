import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { AcceptanceRates } from "./acceptance-rates.js";
import { type DraftCandidate, type DraftCosts, setDraftLengths } from "./draft-lengths.js";
import { DecodeCost } from "./decode-cost.js";

function lengthsOf(candidates: readonly { rate: number; maxTokens: number }[], costs: DraftCosts): number[] {
  const all: DraftCandidate[] = candidates.map((candidate) => ({ ...candidate, length: -1 }));
  setDraftLengths(all, costs);
  return all.map(({ length }) => length);
}

/** Tokens per millisecond that a step is expected to give. */
function speedOf(
  candidates: readonly { rate: number }[],
  lengths: readonly number[],
  { baseMs, draftTokenMs, baseTokens }: DraftCosts,
): number {
  let tokens = baseTokens;
  let ms = baseMs;
  for (const [index, { rate }] of candidates.entries()) {
    for (let position = 1; position <= lengths[index]!; position += 1) tokens += rate ** position;
    ms += draftTokenMs * lengths[index]!;
  }
  return tokens / ms;
}

describe("draft lengths", () => {
  test("grow with the acceptance rate and shrink with the cost", () => {
    const free = { baseMs: 10, draftTokenMs: 0.1, baseTokens: 1 };
    const [sure, likely, unsure, wrong] = lengthsOf(
      [0.95, 0.7, 0.3, 0].map((rate) => ({ rate, maxTokens: 24 })),
      { ...free, baseTokens: 4 },
    );
    assert.ok(sure! > likely! && likely! > unsure! && unsure! >= 1 && wrong === 0);
    const dear = lengthsOf([{ rate: 0.7, maxTokens: 24 }], { ...free, draftTokenMs: 3 });
    assert.ok(dear[0]! < lengthsOf([{ rate: 0.7, maxTokens: 24 }], free)[0]!);
    assert.deepEqual(lengthsOf([{ rate: 1, maxTokens: 7 }], free), [7]);
  });

  test("are 0 where a draft token costs as much as a step, or gains next to nothing", () => {
    assert.deepEqual(
      lengthsOf([{ rate: 0.9, maxTokens: 5 }], { baseMs: 1, draftTokenMs: 1, baseTokens: 1 }),
      [0],
    );
    assert.deepEqual(
      lengthsOf([{ rate: 0.02, maxTokens: 5 }], { baseMs: 1, draftTokenMs: 0.01, baseTokens: 1 }),
      [0],
    );
  });

  test("are as good as the best of all choices, but for a share too small to chase", () => {
    const candidate = fc.record({
      rate: fc.double({ min: 0, max: 0.99, noNaN: true }),
      maxTokens: fc.nat(4),
    });
    fc.assert(
      fc.property(
        fc.array(candidate, { minLength: 1, maxLength: 3 }),
        fc.double({ min: 0.01, max: 1.2, noNaN: true }),
        (candidates, draftTokenMs) => {
          const costs = { baseMs: 1, draftTokenMs, baseTokens: candidates.length };
          const chosen = lengthsOf(candidates, costs);
          let best = 0;
          const counts = candidates.map(({ maxTokens }) => maxTokens + 1);
          for (let code = 0; code < counts.reduce((product, count) => product * count, 1); code += 1) {
            let rest = code;
            const lengths = counts.map((count) => {
              const length = rest % count;
              rest = Math.floor(rest / count);
              return length;
            });
            best = Math.max(best, speedOf(candidates, lengths, costs));
          }
          assert.ok(speedOf(candidates, chosen, costs) >= best / 1.031);
        },
      ),
      { numRuns: 200, seed: 2 },
    );
  });
});

describe("acceptance rates", () => {
  test("follow the acceptance of drafts by confidence, and decay", () => {
    const rates = new AcceptanceRates(new AcceptanceRates());
    assert.ok(rates.rate(0) < rates.rate(3));
    for (let draft = 0; draft < 50; draft += 1) rates.observe(3, 4, 0);
    assert.ok(rates.rate(3) < 0.05, `${rates.rate(3)}`);
    assert.ok(rates.rate(0) > 0.3);
    for (let draft = 0; draft < 50; draft += 1) rates.observe(3, 4, 4);
    assert.ok(rates.rate(3) > 0.9, `${rates.rate(3)}`);
    for (let draft = 0; draft < 200; draft += 1) rates.observe(1, 4, 1);
    assert.ok(Math.abs(rates.rate(1) - 0.5) < 0.1, `${rates.rate(1)}`);
  });

  test("of a new sequence are what they are of all", () => {
    const all = new AcceptanceRates();
    const first = new AcceptanceRates(all);
    for (let draft = 0; draft < 200; draft += 1) first.observe(2, 3, 0);
    assert.ok(new AcceptanceRates(all).rate(2) < 0.05);
  });
});

describe("the cost of a step", () => {
  test("is taken to rise by a part of itself until sizes have differed, then as it does", () => {
    const cost = new DecodeCost();
    assert.ok(cost.isUnknown);
    for (let step = 0; step < 20; step += 1) cost.observe(1, 10);
    assert.ok(cost.perToken > 0.5 && cost.perToken < 5, `${cost.perToken}`);
    for (let step = 0; step < 60; step += 1) cost.observe(1 + (step % 4), 10 + (step % 4));
    assert.ok(Math.abs(cost.perToken - 1) < 0.1, `${cost.perToken}`);
    assert.ok(Math.abs(cost.of(8) - 17) < 1, `${cost.of(8)}`);
  });

  test("is not moved far by one step that the machine was slow in", () => {
    const cost = new DecodeCost();
    for (let step = 0; step < 100; step += 1) cost.observe(1 + (step % 3), 10);
    cost.observe(3, 10_000);
    assert.ok(cost.of(2) < 11, `${cost.of(2)}`);
    assert.ok(cost.perToken >= 0);
  });
});
