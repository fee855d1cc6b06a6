import type { Sequence } from "../sequence.js";

/** Values of `schedulingPolicy`: by arrival, by priority, fairly between tenants. */
export const schedulingPolicyNames = ["fcfs", "priority", "fair"] as const;
/** `fcfs`, first come first served; `priority`; or `fair`, shares by tenant. */
export type SchedulingPolicyName = (typeof schedulingPolicyNames)[number];

/** The result of trying to admit a waiting sequence; `later`: others may still be admitted, `full`: none may. */
export type Admission = "admitted" | "later" | "full";

/** The step being planned, as a policy sees it. */
export interface StepPlanner {
  readonly running: readonly Sequence[];
  readonly maxNumSeqs: number;
  /** Chunked prefill is on. */
  readonly isChunked: boolean;
  /** Prompt tokens left in this step. */
  readonly promptRoom: number;
  /** Tokens that one prompt may take while others want some too. */
  readonly promptCap: number;
  /** A running sequence found no blocks in this step: free blocks are kept for running sequences. */
  readonly isShortOfBlocks: boolean;
  /** Call before the first `admit` of a step. */
  beginAdmission(): void;
  /** Admits a waiting sequence and gives it up to `cap` tokens. */
  admit(sequence: Sequence, cap: number): Admission;
  /** Gives a running prompt its first tokens of the step, up to `cap`, preempting others for blocks if necessary. */
  give(sequence: Sequence, cap: number): number;
  /** Gives a running prompt up to `cap` more tokens, if there are free blocks. */
  extend(sequence: Sequence, cap: number): number;
  /** Ends the first pass, which limits long prompts. Returns whether any of them had to wait. */
  liftLongCap(): boolean;
  /** Preempts a running sequence in favour of `by`. */
  preempt(sequence: Sequence, by: Sequence): void;
  /** Blocks that must become free before a waiting sequence can be admitted. */
  missingBlocks(sequence: Sequence): number;
  /** Blocks that preempting a running sequence would free. */
  blocksFreedBy(sequence: Sequence): number;
}

/** The sequences waiting for admission. */
export interface WaitingLine extends Iterable<Sequence> {
  readonly size: number;
  add(sequence: Sequence): void;
  /** False if the sequence is not waiting. */
  remove(sequence: Sequence): boolean;
  /** Throws `internal_error` unless the line is in order. */
  checkIntegrity(): void;
}

/** What a step computed. */
export interface StepSize {
  readonly prefillTokens: number;
  readonly decodeTokens: number;
}

/** Decides which sequences run first. Each scheduler has its own, which may keep state. */
export interface SchedulingPolicy {
  readonly name: SchedulingPolicyName;
  /** Maintained by the scheduler, which adds sequences that arrive or are preempted and removes those admitted or ended. */
  readonly waiting: WaitingLine;
  /**
   * Whether `b` is preempted rather than `a` when blocks run out: a strict total order, which may change only with tokens
   * that are computed for the first time, so that every change means progress.
   */
  before(a: Sequence, b: Sequence): boolean;
  /** A sequence has come to the scheduler; `leave`: it has left for good. */
  enter(sequence: Sequence): void;
  leave(sequence: Sequence): void;
  /**
   * The generating sequences that get their token in this step of `budget` tokens, in order; prompts may take up to
   * `maxPromptTokens` beside them.
   */
  decodes(running: readonly Sequence[], budget: number, maxPromptTokens: number): readonly Sequence[];
  /** Distributes the step's prompt tokens among running and waiting sequences. */
  planPrompts(step: StepPlanner): void;
  /** Called when a sequence is given `numTokens` of a step, before `numScheduled` counts them. */
  given(sequence: Sequence, numTokens: number): void;
  /** Called with the duration of a step, from its planning until its results were applied. */
  observe(step: StepSize, wallMs: number): void;
}

/** The order of arrival; within a request, of its sequences. */
export function arrivedBefore(a: Sequence, b: Sequence): boolean {
  return a.group.order === b.group.order ? a.index < b.index : a.group.order < b.group.order;
}
