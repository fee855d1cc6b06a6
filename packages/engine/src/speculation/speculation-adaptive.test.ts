import assert from "node:assert/strict";
import { describe, it, mock } from "node:test";
import type { StepPlan } from "@octavo/kernels";
import type { Drafter } from "./drafter.js";
import { NgramDrafter } from "./ngram-drafter.js";
import type { SpeculationOptions } from "./speculation.js";
import { SuffixDrafter } from "./suffix-drafter.js";
import { collect, createFakeEngine, generationRequest } from "../testing/fakes/engine-fixture.js";
import { TestRandom } from "@octavo/text/testing/random";

const ngram = (min: number): SpeculationOptions => ({
  createDrafter: () => new NgramDrafter({ promptLookupMin: min, promptLookupMax: 4 }),
  numSpeculativeTokens: 8,
});

const suffix: SpeculationOptions = {
  createDrafter: () =>
    new SuffixDrafter({ maxTreeDepth: 24, maxCachedRequests: 100, maxSpecFactor: 1, minTokenProb: 0.1 }),
  numSpeculativeTokens: 16,
};

/** Milliseconds that a step says it took: beside them the time that it really takes is nothing. */
const stepMs = 10_000;

/** A step reads the weights, whatever it computes; each token costs this share of that. */
const costOf =
  (share: number) =>
  ({ numTokens }: StepPlan): number =>
    stepMs * (1 + share * (numTokens - 1));

interface Counts {
  numSteps: number;
  draftTokens: number;
  acceptedTokens: number;
  computeMs: number;
}

/** One request whose output is `text`, after a prompt of `prompt`. */
async function generate(
  prompt: readonly number[],
  text: readonly number[],
  tokenShare: number,
  speculation: (SpeculationOptions & { readonly onStep?: (ms: number) => void }) | undefined,
): Promise<Counts> {
  const { engine } = createFakeEngine({
    backend: {
      script: (context) => text[context.length - prompt.length],
      computeMs: (plan) => {
        const ms = costOf(tokenShare)(plan);
        speculation?.onStep?.(ms);
        return ms;
      },
    },
    maxModelLen: 2048,
    numBlocks: 512,
    speculation,
  });
  const counts: Counts = { numSteps: 0, draftTokens: 0, acceptedTokens: 0, computeMs: 0 };
  engine.observe({
    onStep: ({ computeMs, draftTokens = 0 }) => {
      counts.numSteps += 1;
      counts.computeMs += computeMs;
      counts.draftTokens += draftTokens;
    },
    onDraft: (_, acceptedTokens) => void (counts.acceptedTokens += acceptedTokens),
  });
  const { sequences } = await collect(engine.generate(generationRequest(prompt, { maxTokens: text.length })));
  assert.deepEqual(sequences[0]?.tokens, [...text]);
  await engine[Symbol.asyncDispose]();
  return counts;
}

function randomText(length: number, numTokens: number, seed: number): number[] {
  const random = new TestRandom(seed);
  return Array.from({ length }, () => random.below(numTokens));
}

describe("adaptive speculation", () => {
  it("makes answers that quote their prompt several times as fast", async () => {
    const prompt = randomText(400, 60, 1);
    const answer = [...prompt.slice(100, 220), ...prompt.slice(30, 90), ...prompt.slice(300, 390)];
    const plain = await generate(prompt, answer, 0.1, undefined);
    for (const speculation of [ngram(2), suffix]) {
      const drafted = await generate(prompt, answer, 0.1, speculation);
      assert.ok(
        plain.computeMs / drafted.computeMs > 2.2,
        `${plain.computeMs} to ${drafted.computeMs} ms with ${drafted.acceptedTokens}/${drafted.draftTokens}`,
      );
    }
  });

  it("stops drafting where drafts are rejected", async () => {
    // Every token has stood before, and what follows it is anything.
    const prompt = randomText(400, 12, 2);
    const answer = randomText(1200, 12, 3);
    for (const share of [0.2, 0.5, 1]) {
      const plain = await generate(prompt, answer, share, undefined);
      for (const speculation of [ngram(1), suffix]) {
        const drafted = await generate(prompt, answer, share, speculation);
        assert.ok(
          drafted.computeMs < plain.computeMs * 1.03,
          `${plain.computeMs} to ${drafted.computeMs} ms at ${share}`,
        );
      }
    }
  });

  it("stops drafting where a draft token costs as much as a step, even if it is accepted", async () => {
    const prompt = randomText(300, 60, 4);
    const answer = Array.from({ length: 4 }, () => prompt).flat();
    const plain = await generate(prompt, answer, 1, undefined);
    const drafted = await generate(prompt, answer, 1, ngram(3));
    assert.ok(
      drafted.computeMs < plain.computeMs * 1.03,
      `${plain.computeMs} to ${drafted.computeMs} ms, ${drafted.draftTokens} draft tokens`,
    );
  });

  it("resumes drafting when it begins to pay", async () => {
    const prompt = randomText(300, 8, 5);
    const failing = randomText(500, 8, 6);
    const quoting = Array.from({ length: 3 }, () => prompt).flat();
    const before = await generate(prompt, failing, 0.3, ngram(1));
    const whole = await generate(prompt, [...failing, ...quoting], 0.3, ngram(1));
    const stepsToQuote = whole.numSteps - before.numSteps;
    assert.ok(stepsToQuote < quoting.length * 0.75, `${stepsToQuote} steps for ${quoting.length} tokens`);
  });

  for (const first of [1, 50])
    it(`counts what drafting takes once, where the first takes ${first} times as long`, async () => {
      const answer = randomText(600, 60, 10);
      const now = performance.now.bind(performance);
      let passedMs = 0;
      let numDrafts = 0;
      const clock = mock.method(performance, "now", () => now() + passedMs);
      const drafter: Drafter = {
        isCostly: true,
        draft: async (requests) => {
          let tookMs = 0;
          for (const { sequence, maxTokens } of requests) {
            for (let at = 0; at < maxTokens; at += 1)
              sequence.draft.push(answer[sequence.numOutputTokens + at]!);
            tookMs += 0.55 * stepMs * maxTokens;
          }
          numDrafts += 1;
          if (numDrafts === 1) tookMs *= first;
          passedMs += tookMs;
          return tookMs;
        },
        release: () => undefined,
        [Symbol.dispose]: () => undefined,
      };
      try {
        const { numSteps } = await generate([1, 2, 3], answer, 0.1, {
          createDrafter: () => drafter,
          numSpeculativeTokens: 4,
          onStep: (ms) => (passedMs += ms),
        });
        assert.ok(numSteps < answer.length / 2, `${numSteps} steps`);
      } finally {
        clock.mock.restore();
      }
    });

  const drafted = {
    always: () => true,
    never: () => false,
    // and not at first
    "four times in five": (index: number) => index > 5 && index % 5 !== 0,
  };
  for (const [share, isRight] of Object.entries(drafted))
    it(`${share === "never" ? "leaves" : "goes on with"} reading where drafts are right ${share}`, async () => {
      const answer = randomText(600, 60, 11);
      const now = performance.now.bind(performance);
      let passedMs = 0;
      const clock = mock.method(performance, "now", () => now() + passedMs);
      const counts = { read: 0, forgotten: 0, steps: 0, withoutSent: 0 };
      const drafter: Drafter = {
        isCostly: true,
        draft: async (requests) => {
          for (const { sequence, maxTokens } of requests)
            for (let at = 0; at < maxTokens; at += 1) {
              const index = sequence.numOutputTokens + at;
              sequence.draft.push(answer[index]! + (isRight(index) ? 0 : 1));
            }
          const tookMs = 0.1 * stepMs;
          passedMs += tookMs;
          return tookMs;
        },
        follow: async () => {
          counts.read += 1;
          passedMs += 0.1 * stepMs;
        },
        forget: () => void (counts.forgotten += 1),
        release: () => undefined,
        [Symbol.dispose]: () => undefined,
      };
      const { engine } = createFakeEngine({
        backend: {
          script: (context) => answer[context.length - 3],
          computeMs: (plan) => {
            const ms = costOf(0.1)(plan);
            passedMs += ms;
            if (plan.withoutSent === true) counts.withoutSent += 1;
            return ms;
          },
        },
        maxModelLen: 2048,
        numBlocks: 512,
        speculation: { createDrafter: () => drafter, numSpeculativeTokens: 4 },
      });
      engine.observe({ onStep: () => void (counts.steps += 1) });
      try {
        const ask = async (maxTokens: number): Promise<void> => {
          const { sequences } = await collect(engine.generate(generationRequest([1, 2, 3], { maxTokens })));
          assert.deepEqual(sequences[0]?.tokens, answer.slice(0, maxTokens));
        };
        await ask(answer.length);
        if (share !== "never") {
          assert.equal(counts.forgotten, 0);
          assert.equal(counts.read, counts.steps);
          assert.ok(counts.steps < answer.length / 2, `${counts.steps} steps`);
          return;
        }
        assert.equal(counts.forgotten, 1);
        // a step that tells what steps cost, 12 of trial, 64 that save nothing, 512 of rest, and then it is read again
        assert.equal(counts.read, answer.length - 512);
        assert.equal(counts.steps, answer.length);
        await ask(10);
        assert.equal(counts.read, counts.steps - 512);
        assert.equal(counts.withoutSent, 512);
      } finally {
        clock.mock.restore();
        await engine[Symbol.asyncDispose]();
      }
    });

  it("learns from finished requests", async () => {
    const answer = randomText(200, 60, 7);
    const prompts = [randomText(20, 60, 8), randomText(20, 60, 9)];
    const { engine } = createFakeEngine({
      backend: { script: (context) => answer[context.length - 20], computeMs: costOf(0.05) },
      maxModelLen: 512,
      numBlocks: 256,
      speculation: suffix,
    });
    const steps: number[] = [];
    let numSteps = 0;
    engine.observe({ onStep: () => void (numSteps += 1) });
    for (const prompt of prompts) {
      numSteps = 0;
      await collect(engine.generate(generationRequest(prompt, { maxTokens: answer.length })));
      steps.push(numSteps);
    }
    assert.ok(steps[1]! < steps[0]! / 3, `${steps.join(" then ")} steps`);
    await engine[Symbol.asyncDispose]();
  });
});
