import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as fc from "fast-check";
import type { FaultKind } from "../../faults/fault.js";
import { type ModelEngineOptions, type ScheduleOutcome, runSchedule, soloSettings } from "./run-schedule.js";
import { type CaseLimits, type ScheduledRequest, scheduleCases } from "./schedule-cases.js";

/** A model to run under random schedules, on any backend. */
export interface ModelUnderTest {
  readonly parts: ModelEngineOptions;
  /** Tokens per step, at most; at least twice `maxModelLen`. */
  readonly maxStepTokens: number;
  /** Default true: temperature, penalties, bias. */
  readonly hasSampling?: boolean;
  dispose(): Promise<void> | void;
}

export interface ScheduleSuiteOptions {
  readonly numRuns: number;
  readonly seed?: number;
  readonly maxRequests?: number;
  /** Requests of the batch that is compared with each alone; default 32. */
  readonly batchSize?: number;
}

/**
 * Promise 1, the same tokens under any schedule, and promise 3, blocks are conserved: every request of a random schedule
 * (batches, chunk and block sizes, cache on and off, forced and natural preemptions, evictions and delays, policies, neighbours
 * that leave, accepted and rejected drafts) gets exactly what it gets alone, unchunked and without cache: token ids, text,
 * logprobs, embeddings, and logits to the last bit. Failures are shrunk and name their seed.
 */
export function scheduleProperties(
  name: string,
  openModel: () => Promise<ModelUnderTest> | ModelUnderTest,
  options: ScheduleSuiteOptions,
): void {
  describe(`same tokens under any schedule: ${name}`, () => {
    let model: ModelUnderTest;
    before(async () => {
      model = await openModel();
    });
    after(async () => {
      await model.dispose();
    });

    test("random schedules", async () => {
      const { parts } = model;
      assert(model.maxStepTokens >= 2 * parts.maxModelLen, "steps are too small for the suite");
      const limits: CaseLimits = {
        ...parts,
        maxRequests: options.maxRequests ?? 12,
        hasSampling: model.hasSampling ?? true,
      };
      const happened = new Set<FaultKind>();
      const property = fc.asyncProperty(scheduleCases(limits), async ({ requests, settings }) => {
        const expected: ScheduleOutcome[] = [];
        for (const request of requests) expected.push(await solo(parts, request));
        const outcomes = await runSchedule(parts, settings, requests, expected, (kind) => happened.add(kind));
        for (const [index, outcome] of outcomes.entries()) compare(expected[index]!, outcome);
      });
      await fc.assert(property, { numRuns: options.numRuns, seed: options.seed ?? 1 });
      // Fewer runs may meet none.
      if (options.numRuns >= 4)
        assert(happened.has("evict") && happened.has("preempt"), "no faults were injected");
    });

    const { batchSize = 32 } = options;
    test(`a batch of ${batchSize} against each alone`, async () => {
      const { parts } = model;
      const limits = { ...parts, maxRequests: batchSize, hasSampling: model.hasSampling ?? true };
      const [drawn] = fc.sample(scheduleCases(limits), { numRuns: 1, seed: batchSize });
      const requests = Array.from({ length: batchSize }, (_, index): ScheduledRequest => {
        const request = drawn!.requests[index % drawn!.requests.length]!;
        const promptTokens = [...request.promptTokens, index % parts.vocabSize];
        return { ...request, promptTokens, arrivalStep: 0, leaves: undefined };
      });
      const batch = {
        ...soloSettings(parts.maxModelLen),
        maxNumSeqs: 128,
        spareBlocks: batchSize * parts.maxModelLen,
        numStateSlots: 128,
      };
      const outcomes = await runSchedule(parts, batch, requests);
      for (const [index, request] of requests.entries())
        compare(await solo(parts, request), outcomes[index]!);
    });
  });
}

async function solo(parts: ModelEngineOptions, request: ScheduledRequest): Promise<ScheduleOutcome> {
  const [outcome] = await runSchedule(parts, soloSettings(parts.maxModelLen), [
    { ...request, arrivalStep: 0, leaves: undefined, priority: 0 },
  ]);
  return outcome!;
}

/** Everything must be equal; a prefix of it, for a reader that left. */
function compare(expected: ScheduleOutcome, actual: ScheduleOutcome): void {
  for (const [key, digest] of actual.logits)
    assert.equal(digest, expected.logits.get(key), `logits at ${key}`);
  if (!actual.isPartial) {
    assert.deepEqual({ ...actual, logits: undefined }, { ...expected, logits: undefined });
    for (const [index, digests] of (actual.logitsDigests ?? []).entries())
      assert.equal(digests.length, actual.sequences[index]?.tokens.length);
    assert.equal(actual.logits.size, expected.logits.size);
    return;
  }
  for (const [index, sequence] of actual.sequences.entries()) {
    const whole = expected.sequences[index]?.tokens.slice(0, sequence?.tokens.length);
    if (sequence !== undefined) assert.deepEqual(sequence.tokens, whole);
  }
  if (actual.promptLogprobs !== undefined) assert.deepEqual(actual.promptLogprobs, expected.promptLogprobs);
}
