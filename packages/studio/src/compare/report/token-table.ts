import type { TokenDivergence } from "../forcing/divergence.js";

/** Every scored token of a comparison, as columns. */
export class ScoredTokenTable {
  /** Index of the data line's conversation. */
  readonly cluster: number[] = [];
  /** Number of the answer, over all conversations. */
  readonly answer: number[] = [];
  /** Index into `roles`. */
  readonly role: number[] = [];
  /** Place in its answer. */
  readonly position: number[] = [];
  readonly kl: number[] = [];
  readonly baselineLoss: number[] = [];
  readonly variantLoss: number[] = [];
  /** The two models' most likely tokens differ. */
  readonly isFlip: boolean[] = [];
  readonly isBaselineRight: boolean[] = [];
  readonly isVariantRight: boolean[] = [];
  #isIdentical = true;

  get length(): number {
    return this.kl.length;
  }

  /** All logits of all tokens were equal. */
  get isIdentical(): boolean {
    return this.#isIdentical;
  }

  add(place: TokenPlace, target: number, compared: TokenDivergence): void {
    this.cluster.push(place.cluster);
    this.answer.push(place.answer);
    this.role.push(place.role);
    this.position.push(place.position);
    this.kl.push(compared.kl);
    this.baselineLoss.push(compared.baselineLoss);
    this.variantLoss.push(compared.variantLoss);
    this.isFlip.push(compared.baselineTop !== compared.variantTop);
    this.isBaselineRight.push(compared.baselineTop === target);
    this.isVariantRight.push(compared.variantTop === target);
    this.#isIdentical &&= compared.isIdentical;
  }
}

export interface TokenPlace {
  readonly cluster: number;
  readonly answer: number;
  readonly role: number;
  readonly position: number;
}
