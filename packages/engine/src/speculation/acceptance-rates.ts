import { numConfidences } from "./drafter.js";

/** Decay of the counts per draft: of one sequence, and of all. */
const sequenceDecay = 0.9;
const globalDecay = 0.99;
/** Draft tokens that the prior, the rate over all sequences, counts as. */
const priorWeight = 2;
/** Rates before any draft was seen, by confidence class. */
const firstRates = [0.4, 0.6, 0.75, 0.9];

/**
 * Acceptance rates by the drafter's confidence: the chance that a draft token is accepted if those before it were. Recent drafts
 * count more; a sequence with few drafts leans on the rates of all sequences.
 */
export class AcceptanceRates {
  readonly #accepted = new Float64Array(numConfidences);
  readonly #rejected = new Float64Array(numConfidences);
  readonly #others: AcceptanceRates | undefined;

  /** With `others`, the rates of one sequence; `others` then records every draft too. */
  constructor(others?: AcceptanceRates) {
    this.#others = others;
  }

  rate(confidence: number): number {
    const accepted = this.#accepted[confidence] ?? 0;
    const rejected = this.#rejected[confidence] ?? 0;
    const prior = this.#others?.rate(confidence) ?? firstRates[confidence] ?? 0;
    return (accepted + priorWeight * prior) / (accepted + rejected + priorWeight);
  }

  /** What was seen counts no longer. */
  clear(): void {
    this.#accepted.fill(0);
    this.#rejected.fill(0);
  }

  /** Records a draft of `numDrafted` tokens, the first `numAccepted` of which were accepted. */
  observe(confidence: number, numDrafted: number, numAccepted: number): void {
    const decay = this.#others === undefined ? globalDecay : sequenceDecay;
    this.#accepted[confidence] = (this.#accepted[confidence] ?? 0) * decay + numAccepted;
    this.#rejected[confidence] =
      (this.#rejected[confidence] ?? 0) * decay + (numAccepted < numDrafted ? 1 : 0);
    this.#others?.observe(confidence, numDrafted, numAccepted);
  }
}
