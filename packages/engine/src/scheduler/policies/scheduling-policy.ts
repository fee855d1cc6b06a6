import type { Sequence } from "../sequence.js";

export const schedulingPolicyNames = ["fcfs", "priority", "fair"] as const;
export type SchedulingPolicyName = (typeof schedulingPolicyNames)[number];

/** What became of a waiting sequence that was to be admitted; `later`: others may go before it, `full`: none may. */
export type Admission = "admitted" | "later" | "full";

/** The step being planned, as a policy hands its tokens out. */
export interface StepPlanner {
  readonly running: readonly Sequence[];
  readonly maxNumSeqs: number;
  /** Prompts may be computed in pieces. */
  readonly isChunked: boolean;
  /** Tokens that prompts may still have of this step. */
  readonly promptRoom: number;
  /** What one prompt may have of it as long as others want some too. */
  readonly promptCap: number;
  /** Somebody ran out of blocks in this step: what is free now is for those who go on. */
  readonly isShortOfBlocks: boolean;
  /** Before the first `admit` of a step. */
  beginAdmission(): void;
  /** Admits a waiting sequence with up to `cap` of its tokens. */
  admit(sequence: Sequence, cap: number): Admission;
  /** Gives a running prompt that has nothing of the step yet up to `cap` tokens, out of others' blocks if need be. */
  give(sequence: Sequence, cap: number): number;
  /** Gives a running prompt up to `cap` more tokens where blocks are at hand. */
  extend(sequence: Sequence, cap: number): number;
  /** Ends the first pass, which few long prompts take part in; whether anybody had to leave it. */
  liftLongCap(): boolean;
  /** Makes a running sequence give its place and blocks back, for `by`. */
  preempt(sequence: Sequence, by: Sequence): void;
  /** Blocks that must fall free before a waiting sequence can be admitted. */
  missingBlocks(sequence: Sequence): number;
  /** Of them, those that preempting a running sequence would free. */
  blocksFreedBy(sequence: Sequence): number;
}

/** Sequences that wait to be admitted. */
export interface WaitingLine extends Iterable<Sequence> {
  readonly size: number;
  add(sequence: Sequence): void;
  /** False when the sequence does not wait. */
  remove(sequence: Sequence): boolean;
  /** Throws `internal_error` unless the line is in order. */
  checkIntegrity(): void;
}

/** What a step computed. */
export interface StepSize {
  readonly prefillTokens: number;
  readonly decodeTokens: number;
}

/** Who is served before whom. A scheduler has one of its own, which may remember what it did. */
export interface SchedulingPolicy {
  readonly name: SchedulingPolicyName;
  /** Kept by the scheduler: it adds who arrives and who was preempted, and removes who was admitted or left. */
  readonly waiting: WaitingLine;
  /**
   * Whether `a` keeps its blocks rather than `b` when a running sequence finds none: a strict total order, which may
   * change only with tokens that are computed for the first time, so that whoever changes it has made progress.
   */
  before(a: Sequence, b: Sequence): boolean;
  /** A sequence has come to the scheduler, and has left it for good. */
  enter(sequence: Sequence): void;
  leave(sequence: Sequence): void;
  /**
   * Of the running sequences that generate, those that get their token in this step of `budget` tokens, in order; prompts
   * may have `maxPromptTokens` of it beside them.
   */
  decodes(running: readonly Sequence[], budget: number, maxPromptTokens: number): readonly Sequence[];
  /** Hands the step's prompt tokens out, to running prompts and to waiting ones. */
  planPrompts(step: StepPlanner): void;
  /** The step computes `numTokens` more of a sequence; called as they are given, before `numScheduled` has them. */
  given(sequence: Sequence, numTokens: number): void;
  /** What a step cost: the time from its planning until its results were applied. */
  observe(step: StepSize, wallMs: number): void;
}

/** First come, first served; of a request's sequences the first. */
export function arrivedBefore(a: Sequence, b: Sequence): boolean {
  return a.group.order === b.group.order ? a.index < b.index : a.group.order < b.group.order;
}
