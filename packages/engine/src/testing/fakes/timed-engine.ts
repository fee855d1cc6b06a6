import { TestRandom } from "@octavo/text/testing/random";
import type { FakeBackendOptions } from "./fake-backend.js";
import type { FixtureOptions } from "./engine-fixture.js";
import type { VirtualClock } from "./virtual-clock.js";

/** Steps take compute time per token, on a virtual clock on which nothing else takes time. */
export function timedSteps(clock: VirtualClock): Omit<FakeBackendOptions, "vocabSize"> {
  return { answersAtOnce: true, computeMs: ({ numTokens }) => 0.3 + 0.05 * numTokens, clock };
}

/** Long contexts and unpaced prefill. */
export const longContext: FixtureOptions = {
  numBlocks: 512,
  maxModelLen: 600,
  maxNumBatchedTokens: 256,
  maxPrefillStepMs: 0,
};

export function randomPrompt(count: number, seed: number): number[] {
  const random = new TestRandom(seed);
  return Array.from({ length: count }, () => random.below(60));
}
