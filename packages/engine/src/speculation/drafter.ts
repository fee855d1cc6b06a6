import type { RowSampling, StepPlan, StepResult, Vacating } from "@octavo/kernels";
import type { PlannedStep } from "../scheduler/step-budget.js";
import type { Sequence } from "../scheduler/sequence.js";

/** Confidence classes of drafts, 0 the least confident. The acceptance rate of each class is learnt. */
export const numConfidences = 4;

/** A sequence to draft tokens for. */
export interface DraftRequest {
  /** Draft tokens are appended to its `draft`, which is empty. */
  readonly sequence: Sequence;
  /** How its tokens are sampled; the index of the next one is `sequence.numOutputTokens`. */
  readonly sampling: RowSampling;
  /** At least 1. */
  readonly maxTokens: number;
  /** Set by the drafter: a class below `numConfidences`. */
  confidence: number;
}

/**
 * Proposes the next tokens of sequences. Drafts change speed and never output: every draft token is verified by sampling
 * from the model at its position. A drafter may keep state per sequence until `release`.
 */
export interface Drafter extends Disposable {
  /** Drafting takes a model's time, so draft lengths are chosen before drafting, not after. */
  readonly isCostly: boolean;
  /**
   * Appends to each sequence's draft. With a model, returns a promise of the milliseconds that drafting took, or of undefined where reading
   * earlier text was part of that; the sequences do not change meanwhile.
   */
  draft(requests: readonly DraftRequest[]): void | Promise<number | undefined>;
  /** Reads what a step computed, once its results are applied and before the next one is planned. Absent where text is all it reads. */
  follow?(step: PlannedStep, plan: StepPlan, result: StepResult): Promise<void>;
  /** Drops what is kept of all sequences: steps follow that it does not read. */
  forget?(): void;
  /** Drops what is kept of a sequence that is over. */
  release(sequence: Sequence): void;
  /** Between drafts: drops what is kept of all sequences, and frees its cache until `refill`. Absent where there is none. */
  vacate?(backend: Vacating): void;
  refill?(backend: Vacating): void;
}
