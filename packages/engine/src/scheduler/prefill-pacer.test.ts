import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TestRandom } from "@octavo/text/testing/random";
import * as fc from "fast-check";
import { PrefillPacer } from "./prefill-pacer.js";

/** Milliseconds of a step with `prefillTokens` beside `decodeTokens` generating sequences. */
type Machine = (prefillTokens: number, decodeTokens: number, index: number) => number;

interface Run {
  readonly targetMs?: number;
  readonly steps?: number;
  /** Generating sequences of each step. */
  readonly decodes?: (index: number) => number;
  /** Whether a prompt is there to go on with. */
  readonly hasPrompt?: (index: number) => boolean;
}

/** What each step with prompt tokens took, and how many it had. */
function paced(
  machine: Machine,
  { targetMs = 200, steps = 200, decodes = () => 1, hasPrompt = () => true }: Run = {},
) {
  const pacer = new PrefillPacer(targetMs);
  const mixed: { readonly tokens: number; readonly ms: number }[] = [];
  for (let index = 0; index < steps; index += 1) {
    const decodeTokens = decodes(index);
    const tokens = hasPrompt(index) ? pacer.maxTokens(decodeTokens) : 0;
    const ms = machine(tokens, decodeTokens, index);
    pacer.observe({ prefillTokens: tokens, decodeTokens }, ms);
    if (tokens > 0) mixed.push({ tokens, ms });
  }
  return {
    mixed,
    longestMs: Math.max(...mixed.map(({ ms }) => ms)),
    last: mixed.at(-1) ?? { tokens: 0, ms: 0 },
  };
}

/** Box and Muller's. */
function normal(random: TestRandom): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

/** Prompts come now and then: without them, the step's own time is seen. */
const nowAndThen = (index: number): boolean => index % 10 !== 0;

describe("a step with prompt tokens beside generating sequences", () => {
  test("has one prompt token before anything is known, and any number where there is no bound", () => {
    assert.equal(new PrefillPacer(200).maxTokens(1), 1);
    const off = new PrefillPacer(0);
    off.observe({ prefillTokens: 512, decodeTokens: 1 }, 10_000);
    assert.equal(off.maxTokens(8), Number.POSITIVE_INFINITY);
  });

  test("never exceeds the target by a prompt token, nor at all where the step's own time was seen, and uses it", () => {
    fc.assert(
      fc.property(
        fc.record({
          targetMs: fc.integer({ min: 1, max: 2000 }),
          base: fc.double({ min: 0, max: 0.75, noNaN: true }),
          token: fc.double({ min: 0.0002, max: 0.19, noNaN: true }),
          isKnownBefore: fc.boolean(),
        }),
        ({ targetMs, base, token, isKnownBefore }) => {
          const hasPrompt = isKnownBefore ? (index: number) => index >= 20 : undefined;
          const { longestMs, last } = paced((tokens) => targetMs * (base + token * tokens), {
            targetMs,
            ...(hasPrompt && { hasPrompt }),
          });
          // Where the step's own time was never seen alone, a part of it may be taken for the token's.
          const mostMs = targetMs * (isKnownBefore ? 1.001 : 1.001 + token);
          assert.ok(longestMs <= mostMs, `${longestMs} of ${targetMs} ms`);
          const unused = targetMs - last.ms;
          const isUsed = unused <= 0.15 * targetMs + targetMs * token || last.ms >= 1.04 * targetMs * base;
          assert.ok(isUsed, `${last.tokens} tokens, ${last.ms} of ${targetMs} ms`);
        },
      ),
      { numRuns: 500 },
    );
  });

  const machines: readonly (readonly [string, Machine, Run?])[] = [
    ["that compute some tokens while weights are read", (tokens) => Math.max(60, 4 * tokens)],
    [
      "on which tokens of large pieces cost half",
      (tokens) => 60 + 4 * tokens - 2 * Math.max(0, tokens - 128),
    ],
    ["on which a token takes a third of the target", (tokens) => 20 + 70 * tokens],
    [
      "where 16 sequences join and leave at once",
      (tokens, decodes) => 10 + 6 * decodes + 0.3 * tokens,
      { decodes: (index) => (index % 40 < 20 ? 1 : 16), hasPrompt: nowAndThen },
    ],
    [
      "where prompts are rare",
      (tokens) => 60 + 3 * tokens,
      { steps: 3000, hasPrompt: (index) => index % 500 > 480 },
    ],
    [
      "where tokens come to cost four times as much as context grows",
      (tokens, _, index) => 40 + 0.5 * tokens * (1 + index / 100),
      { steps: 300 },
    ],
  ];
  for (const [name, machine, run] of machines) {
    test(`keeps the target on machines ${name}`, () => {
      const { longestMs } = paced(machine, run);
      assert.ok(longestMs <= 1.05 * 200, `${longestMs} ms`);
    });
  }

  test("a long prompt computed alone says nothing of the small pieces beside others", () => {
    const pacer = new PrefillPacer(200);
    pacer.observe({ prefillTokens: 2048, decodeTokens: 0 }, 600);
    assert.equal(pacer.maxTokens(1), 1);
  });

  for (const noise of [0.05, 0.15]) {
    test(`keeps the target but for a few steps on a machine with ${100 * noise} % of noise`, () => {
      const random = new TestRandom(7);
      const { mixed } = paced((tokens) => (60 + 3 * tokens) * (1 + noise * normal(random)), { steps: 2000 });
      const above = mixed.slice(20).filter(({ ms }) => ms > 200).length;
      assert.ok(above <= 0.03 * mixed.length, `${above} of ${mixed.length}`);
      const tokens = mixed.reduce((sum, step) => sum + step.tokens, 0);
      assert.ok(tokens >= 25 * mixed.length, "and prompts go on");
    });
  }
});

describe("where a step takes the target without prompts", () => {
  for (const base of [210, 400, 2000]) {
    for (const token of [0.05, 1, 20, 500]) {
      test(`${base} ms, ${token} ms a prompt token: prompts go on, and add a twentieth or one token`, () => {
        const { mixed, last } = paced((tokens) => base + token * tokens, { hasPrompt: nowAndThen });
        const addedMs = Math.max(...mixed.slice(20).map(({ ms }) => ms - base));
        assert.ok(addedMs <= Math.max(0.06 * base, token), `${addedMs} ms`);
        assert.ok(last.tokens >= 1);
        assert.ok(token > 0.5 || last.tokens >= 50, `${last.tokens} tokens, which cost next to nothing`);
      });
    }
  }
});

test("follows a machine that becomes slower and quicker, and forgets one slow step", () => {
  const slower = paced((tokens, _, index) => (60 + 3 * tokens) * (index >= 100 && index < 200 ? 2.5 : 1), {
    steps: 300,
  });
  assert.ok(slower.mixed.slice(105, 200).every(({ ms }) => ms <= 205));
  assert.ok(slower.last.ms >= 165, `${slower.last.ms} ms`);
  const once = paced((tokens, _, index) => (index === 100 ? 10 : 1) * (60 + 3 * tokens), { steps: 140 });
  assert.ok(once.last.ms >= 165, `${once.last.ms} ms`);
  assert.ok(once.mixed.slice(101).every(({ ms }) => ms <= 200));
});
