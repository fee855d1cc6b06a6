import { BlockPool } from "../../kv-cache/block-pool.js";
import type { SchedulingPolicyName } from "../../scheduler/policies/scheduling-policy.js";
import { PrefillPacer } from "../../scheduler/prefill-pacer.js";
import { Scheduler } from "../../scheduler/scheduler.js";
import { Sequence, type SequenceGroup } from "../../scheduler/sequence.js";
import type { SimulatedRequest } from "./load.js";
import type { StepCosts } from "./step-costs.js";

export interface SimulationOptions {
  readonly policy: SchedulingPolicyName;
  readonly costs: StepCosts;
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number;
  readonly numBlocks: number;
  readonly maxPrefillStepMs?: number;
  /** Steps between checks of the scheduler's integrity; default never. */
  readonly checkEvery?: number;
}

/** Latencies of one request. */
export interface SimulatedOutcome {
  readonly tenant: string;
  readonly firstTokenMs: number;
  readonly e2eMs: number;
}

export interface SimulationResult {
  /** In order of arrival. */
  readonly outcomes: readonly SimulatedOutcome[];
  /** When the last request completed. */
  readonly endMs: number;
  /** Total duration of steps. */
  readonly busyMs: number;
  readonly numSteps: number;
  readonly numPreemptions: number;
  /** Durations of the steps that computed prompts beside generating sequences, ascending. */
  readonly mixedStepsMs: readonly number[];
}

const blockSize = 16;

/** A request in progress. */
interface Progress {
  readonly index: number;
  readonly request: SimulatedRequest;
  firstTokenMs: number;
}

/**
 * Runs a load through the scheduler in virtual time: each step takes what `costs` says and gives a token to every sequence that it
 * computes to the end. Deterministic on every machine. Prefix caching is off, so preempted sequences are recomputed in full.
 */
export function simulate(
  requests: readonly SimulatedRequest[],
  options: SimulationOptions,
): SimulationResult {
  const { policy, costs, maxNumSeqs, maxNumBatchedTokens, numBlocks, maxPrefillStepMs = 200 } = options;
  const scheduler = new Scheduler(new BlockPool(numBlocks, blockSize), {
    maxNumSeqs,
    maxNumBatchedTokens,
    enablePrefixCaching: false,
    enableChunkedPrefill: true,
    longPrefillTokenThreshold: Math.ceil(maxNumBatchedTokens / 4),
    maxLongPartialPrefills: policy === "fair" ? 2 : 0,
    policy,
  });
  const pacer = new PrefillPacer(maxPrefillStepMs);
  const longest = requests.reduce((most, { promptTokens }) => Math.max(most, promptTokens), 0);
  const prompt = new Int32Array(longest);
  const progress = new Map<Sequence, Progress>();
  const outcomes: SimulatedOutcome[] = [];
  const mixedStepsMs: number[] = [];
  let nowMs = 0;
  let busyMs = 0;
  let numSteps = 0;
  let numPreemptions = 0;
  let numArrived = 0;

  const arrive = (request: SimulatedRequest): void => {
    const sequences: Sequence[] = [];
    const { account } = request;
    const order = numArrived;
    const group: SequenceGroup = {
      requestId: `${order}`,
      order,
      priority: 0,
      cacheSalt: undefined,
      account,
      sequences,
    };
    const sequence = new Sequence(group, 0, prompt.subarray(0, request.promptTokens));
    sequences.push(sequence);
    progress.set(sequence, { index: order, request, firstTokenMs: 0 });
    scheduler.add(sequence);
    numArrived += 1;
  };

  while (numArrived < requests.length || progress.size > 0) {
    if (progress.size === 0) nowMs = Math.max(nowMs, requests[numArrived]?.arrivalMs ?? nowMs);
    for (
      let next = requests[numArrived];
      next !== undefined && next.arrivalMs <= nowMs;
      next = requests[numArrived]
    )
      arrive(next);
    const step = scheduler.schedule(pacer.maxTokens(scheduler.numGenerating));
    const computeMs = costs.of(step.prefillTokens, step.decodeTokens);
    pacer.observe(step, computeMs);
    scheduler.observe(step, computeMs);
    if (step.prefillTokens > 0 && step.decodeTokens > 0) mixedStepsMs.push(computeMs);
    nowMs += computeMs;
    busyMs += computeMs;
    numSteps += 1;
    numPreemptions += step.preempted.length;
    for (const sequence of step.sequences) {
      scheduler.commit(sequence);
      if (sequence.numComputed < sequence.numTokens) continue;
      sequence.tokens.push(0);
      const state = progress.get(sequence);
      if (state === undefined) continue;
      const { arrivalMs, account, outputTokens } = state.request;
      if (sequence.numOutputTokens === 1) state.firstTokenMs = nowMs - arrivalMs;
      if (sequence.numOutputTokens < outputTokens) continue;
      scheduler.remove(sequence);
      progress.delete(sequence);
      const { firstTokenMs } = state;
      outcomes[state.index] = { tenant: account.tenant, firstTokenMs, e2eMs: nowMs - arrivalMs };
    }
    if (options.checkEvery !== undefined && numSteps % options.checkEvery === 0) scheduler.checkIntegrity();
  }
  return {
    outcomes,
    endMs: nowMs,
    busyMs,
    numSteps,
    numPreemptions,
    mixedStepsMs: mixedStepsMs.toSorted((a, b) => a - b),
  };
}
