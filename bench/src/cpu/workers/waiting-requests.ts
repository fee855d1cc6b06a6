import type { LLM, StepRecord } from "@octavo/engine";
import type { Job } from "../contenders/contender.js";
import { decodeRequest } from "../../steps/step-costs.js";
import { median } from "../../support/median.js";

/**
 * How much longer a step takes with `waiting` requests in the queue than with none. Stretches of steps with and without them
 * alternate behind the same running streams, and each crowded one is held against the mean of those before and after it: steps
 * grow longer all the while, as the streams' contexts do.
 */
export async function stepCostRatio(
  llm: LLM,
  { streams, waiting, steps }: Extract<Job, { kind: "waiting" }>,
  prompt: (length: number) => Int32Array,
): Promise<number> {
  const rounds = 5;
  const stop = new AbortController();
  const running = Array.from({ length: streams }, () =>
    llm
      .generate(prompt(16), {
        temperature: 0,
        ignoreEos: true,
        maxTokens: llm.engine.maxModelLen - 16,
        signal: stop.signal,
      })
      .result()
      .catch(() => undefined),
  );
  await observeSteps(llm, 16);
  const ratios: number[] = [];
  let before = await observeSteps(llm, steps);
  for (let round = 0; round < rounds; round++) {
    const crowd = new AbortController();
    const queued = Array.from({ length: waiting }, () => untilDropped(llm, prompt(16), crowd.signal));
    while (llm.engine.stats.waiting < waiting) await new Promise((resolve) => setImmediate(resolve));
    await observeSteps(llm, 16);
    const crowded = await observeSteps(llm, steps);
    crowd.abort();
    await Promise.all(queued);
    await observeSteps(llm, 16);
    const after = await observeSteps(llm, steps);
    ratios.push((2 * crowded) / (before + after));
    before = after;
  }
  stop.abort();
  await Promise.all(running);
  return median(ratios);
}

/** Queued straight at the engine: nothing of it is to cost time while the steps are watched. */
async function untilDropped(llm: LLM, promptTokens: Int32Array, signal: AbortSignal): Promise<void> {
  try {
    const events = llm.engine.generate(decodeRequest(promptTokens, 1), signal);
    for await (const event of events) if (event.kind === "done") return;
  } catch {
    // An aborted request may end in an error; that it ended is all that counts.
  }
}

/** Median time from step to step over the next `count` steps, ms. */
function observeSteps(llm: LLM, count: number): Promise<number> {
  return new Promise((resolve) => {
    const starts: number[] = [];
    const watch = llm.engine.observe({
      onStep(step: StepRecord) {
        starts.push(step.startMs);
        if (starts.length <= count) return;
        watch[Symbol.dispose]();
        resolve(median(starts.slice(1).map((start, index) => start - (starts[index] ?? start))));
      },
    });
  });
}
