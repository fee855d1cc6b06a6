import type { IsolationCase } from "./isolation-report.js";
import { octavoMiniSteps } from "./recorded-steps.js";
import { linearCosts, recordedCosts, type StepCosts } from "./step-costs.js";

/** Steps of 20 ms, and 0.1 ms more for each prompt token and 0.3 ms for each sequence. */
const gpu = linearCosts("linear", 20, 0.1, 0.3);
/** Recorded steps of the real engine, slowed down so that 500 requests a minute keep it busy 90 % of the time. */
const recorded = recordedCosts(octavoMiniSteps, 8);

function isolationCase(
  name: string,
  costs: StepCosts,
  lengths: { readonly promptTokens: number; readonly outputTokens: number },
  durationMs: number,
): IsolationCase {
  const load = { burstiness: 0.25, ...lengths };
  return {
    name,
    small: { ...load, account: { tenant: "small" }, requestsPerMinute: 5 },
    large: { ...load, account: { tenant: "large" }, requestsPerMinute: 500 },
    durationMs,
    seeds: [1, 2, 3],
    engine: { costs, maxNumSeqs: 32, maxNumBatchedTokens: 512, numBlocks: 4096 },
  };
}

const minute = 60_000;

export const isolationCases: readonly IsolationCase[] = [
  isolationCase("bursts that the engine can take", gpu, { promptTokens: 300, outputTokens: 64 }, 20 * minute),
  isolationCase(
    "bursts, with steps as they were recorded on the engine",
    recorded,
    { promptTokens: 300, outputTokens: 64 },
    60 * minute,
  ),
  isolationCase(
    "more than the engine can take, with recorded steps",
    recorded,
    { promptTokens: 500, outputTokens: 96 },
    10 * minute,
  ),
  isolationCase("more than the engine can take", gpu, { promptTokens: 500, outputTokens: 96 }, 10 * minute),
];
