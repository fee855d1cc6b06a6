import { numConfidences } from "./drafter.js";

/** Share of what was counted that remains after each draft. */
const memoryOfOne = 0.9;
const memoryOfAll = 0.99;
/** Guesses that what is known of others stands for. */
const priorWeight = 2;
/** Before anything is known, by confidence. */
const firstRates = [0.4, 0.6, 0.75, 0.9];

/**
 * How often guesses come true: the chance that one does whose predecessors did, by the drafter's confidence. Newer drafts
 * count more, and where few have been seen, what holds for all sequences.
 */
export class AcceptanceRates {
  readonly #right = new Float64Array(numConfidences);
  readonly #wrong = new Float64Array(numConfidences);
  readonly #others: AcceptanceRates | undefined;

  /** With `others`, which are told of every draft too, the rates of one sequence. */
  constructor(others?: AcceptanceRates) {
    this.#others = others;
  }

  rate(confidence: number): number {
    const right = this.#right[confidence] ?? 0;
    const wrong = this.#wrong[confidence] ?? 0;
    const prior = this.#others?.rate(confidence) ?? firstRates[confidence] ?? 0;
    return (right + priorWeight * prior) / (right + wrong + priorWeight);
  }

  /** Takes note of a draft of `numGuessed` tokens, the first `numRight` of which came true. */
  observe(confidence: number, numGuessed: number, numRight: number): void {
    const memory = this.#others === undefined ? memoryOfAll : memoryOfOne;
    this.#right[confidence] = (this.#right[confidence] ?? 0) * memory + numRight;
    this.#wrong[confidence] = (this.#wrong[confidence] ?? 0) * memory + (numRight < numGuessed ? 1 : 0);
    this.#others?.observe(confidence, numGuessed, numRight);
  }
}
