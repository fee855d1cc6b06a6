import {
  BlockPool,
  defaultLongPrefillTokenThreshold,
  PrefillPacer,
  Scheduler,
  Sequence,
  type SequenceGroup,
} from "@octavo/engine/scheduling";
import type { TargetState } from "@octavo/gateway/parts";
import type { SimulatedHost } from "./simulated-hosts.js";
import type { ClusterCosts, SimulatedCall } from "./step-costs.js";

export interface CallTimes {
  readonly call: SimulatedCall;
  firstTokenS: number;
  endS: number;
  /** Between two tokens. */
  longestGapS: number;
  lastTokenS: number;
}

/** Blocks of 16 tokens, as the engine's default. */
const blockSize = 16;

/**
 * A replica in virtual time: the engine's own scheduler plans each step, and the step takes what the costs say. It is a target of the
 * gateway's routing, too.
 */
export class SimulatedReplica implements TargetState {
  readonly target: string;
  readonly model = "m";
  readonly weight = 1;
  readonly firstByteMs = undefined;
  readonly price = undefined;
  readonly cachedTokens = undefined;
  readonly maxOngoing: number;
  outstanding = 0;
  outstandingTokens = 0;
  isLeaving = false;
  /** When the step under way ends; infinite while there is none. */
  stepEndS = Number.POSITIVE_INFINITY;
  readonly host: SimulatedHost;
  readonly #costs: ClusterCosts;
  readonly #scheduler: Scheduler;
  readonly #pacer = new PrefillPacer(200);
  readonly #outcomes = new Map<Sequence, CallTimes>();
  #step: readonly Sequence[] = [];
  #order = 0;

  constructor(name: string, costs: ClusterCosts, maxOngoing: number, host: SimulatedHost) {
    this.target = name;
    this.host = host;
    this.maxOngoing = maxOngoing;
    this.#costs = costs;
    const { max_num_seqs, max_num_batched_tokens, num_blocks } = costs;
    this.#scheduler = new Scheduler(new BlockPool(num_blocks, blockSize), {
      maxNumSeqs: max_num_seqs,
      maxNumBatchedTokens: max_num_batched_tokens,
      enablePrefixCaching: false,
      enableChunkedPrefill: true,
      longPrefillTokenThreshold: defaultLongPrefillTokenThreshold(max_num_batched_tokens),
      policy: "fcfs",
    });
  }

  get admits(): boolean {
    return !this.isLeaving && this.outstanding < this.maxOngoing;
  }

  /** `prompt`: any tokens, at least as many as the call has. */
  add(outcome: CallTimes, prompt: Int32Array, nowS: number): void {
    const { promptTokens, outputTokens } = outcome.call;
    this.outstanding += 1;
    this.outstandingTokens += promptTokens + outputTokens;
    const sequences: Sequence[] = [];
    const group: SequenceGroup = {
      requestId: "",
      order: this.#order,
      priority: 0,
      cacheSalt: undefined,
      sequences,
    };
    this.#order += 1;
    const sequence = new Sequence(group, 0, prompt.subarray(0, promptTokens));
    sequences.push(sequence);
    this.#outcomes.set(sequence, outcome);
    this.#scheduler.add(sequence);
    if (this.stepEndS < Number.POSITIVE_INFINITY) return;
    this.host.numBusy += 1;
    this.#plan(nowS);
  }

  /** The step is over: tokens are there, requests end, the next step begins. Returns those that ended. */
  endStep(ended: CallTimes[]): void {
    const nowS = this.stepEndS;
    const seenS = nowS + this.#costs.request_overhead_ms / 1000;
    const scheduler = this.#scheduler;
    for (const sequence of this.#step) {
      scheduler.commit(sequence);
      if (sequence.numComputed < sequence.numTokens) continue;
      sequence.tokens.push(0);
      const outcome = this.#outcomes.get(sequence);
      if (outcome === undefined) continue;
      if (sequence.numOutputTokens === 1) outcome.firstTokenS = seenS;
      else outcome.longestGapS = Math.max(outcome.longestGapS, nowS - outcome.lastTokenS);
      outcome.lastTokenS = nowS;
      if (sequence.numOutputTokens < outcome.call.outputTokens) continue;
      outcome.endS = seenS;
      scheduler.remove(sequence);
      this.#outcomes.delete(sequence);
      this.outstanding -= 1;
      this.outstandingTokens -= outcome.call.promptTokens + outcome.call.outputTokens;
      ended.push(outcome);
    }
    this.#plan(nowS);
  }

  #plan(nowS: number): void {
    if (this.#outcomes.size === 0) {
      this.host.numBusy -= 1;
      this.stepEndS = Number.POSITIVE_INFINITY;
      this.#step = [];
      return;
    }
    const step = this.#scheduler.schedule(this.#pacer.maxTokens(this.#scheduler.numGenerating));
    const costs = this.#costs;
    const neighbours = this.host.numBusy - 1;
    const ms =
      (costs.base_ms + costs.per_sequence_ms * step.decodeTokens) *
        (1 + costs.neighbour_slowdown * neighbours) +
      costs.per_prompt_token_ms * step.prefillTokens * (1 + costs.neighbour_prompt_slowdown * neighbours) +
      costs.per_request_ms * step.admitted.length;
    this.#pacer.observe(step, ms);
    this.#scheduler.observe(step, ms);
    // the scheduler's list serves the next step too
    this.#step = step.sequences.slice();
    this.stepEndS = nowS + ms / 1000;
  }
}
