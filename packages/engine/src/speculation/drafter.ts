import type { RowSampling } from "@octavo/kernels";
import type { Sequence } from "../scheduler/sequence.js";

/** Classes of guesses by how sure a drafter is of them: 0 is the least sure. What they are worth is learnt. */
export const numConfidences = 4;

/** A sequence whose next tokens are to be guessed. */
export interface Guess {
  /** Guesses are appended to its `draft`, which is empty. */
  readonly sequence: Sequence;
  /** How its tokens are drawn; the index of the next one is `sequence.numOutputTokens`. */
  readonly sampling: RowSampling;
  /** Guesses at most; at least 1. */
  readonly most: number;
  /** Set by the drafter: a class below `numConfidences`. */
  confidence: number;
}

/**
 * Guesses what sequences will say next. What it guesses changes speed alone: every guess is checked by sampling from
 * the model at its place. It may keep things per sequence until `release`.
 */
export interface Drafter extends Disposable {
  /** How many guesses are worth making is decided before they are made, not after: making them takes the time of a model. */
  readonly isCostly: boolean;
  /**
   * Appends to each sequence's draft. Where a backend computes, a promise of the milliseconds that the guesses took, reading
   * what came before apart; nothing else happens to the sequences meanwhile.
   */
  guess(guesses: readonly Guess[]): void | Promise<number>;
  /** The sequence is over. */
  release(sequence: Sequence): void;
}
