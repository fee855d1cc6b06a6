import type { StepSize } from "./scheduling-policy.js";

/** Share of what earlier steps said that remains after each one. */
const memory = 0.98;
/** Steps before which nothing is believed. */
const fewestSteps = 8;
/** A step that takes longer than this many times what was expected says more of the machine than of the step. */
const mostSurprise = 3;
/** A little belief that cost is in proportion to size, for loads whose steps are all alike. */
const ridge = 1e-3;

/** The cost of a step by its size, in ms. */
export interface StepCost {
  /** Of any step: reading the weights. */
  readonly base: number;
  readonly perPromptToken: number;
  readonly perDecode: number;
}

/**
 * Learns what steps cost: `base + perPromptToken * p + perDecode * d`, by least squares over the steps seen, newer ones
 * counting more. A part that would come out negative is nothing.
 */
export class StepCostModel {
  /** Sums over the steps of 1, p, d, p², p·d, d², ms, p·ms and d·ms. */
  readonly #sums = new Float64Array(9);
  #numSteps = 0;
  #cost: StepCost | undefined;

  /** Undefined until enough was seen. */
  get cost(): StepCost | undefined {
    return this.#numSteps < fewestSteps ? undefined : this.#cost;
  }

  observe({ prefillTokens: p, decodeTokens: d }: StepSize, computeMs: number): void {
    const expected = this.cost && stepMs(this.cost, p, d);
    const ms = expected === undefined ? computeMs : Math.min(computeMs, mostSurprise * expected);
    const sums = this.#sums;
    const seen = [1, p, d, p * p, p * d, d * d, ms, p * ms, d * ms];
    for (let index = 0; index < sums.length; index += 1) sums[index] = sums[index]! * memory + seen[index]!;
    this.#numSteps += 1;
    this.#cost = this.#fit();
  }

  #fit(): StepCost {
    const [n = 0, p = 0, d = 0, pp = 0, pd = 0, dd = 0, y = 0, py = 0, dy = 0] = this.#sums;
    let usesP = pp > 0;
    let usesD = dd > 0;
    for (;;) {
      // The slopes around the means, then what is left as the base.
      const varP = usesP ? pp - (p * p) / n + ridge * pp : 0;
      const varD = usesD ? dd - (d * d) / n + ridge * dd : 0;
      const covPd = usesP && usesD ? pd - (p * d) / n : 0;
      const covP = usesP ? py - (p * y) / n + ridge * py : 0;
      const covD = usesD ? dy - (d * y) / n + ridge * dy : 0;
      const determinant = (usesP ? varP : 1) * (usesD ? varD : 1) - covPd * covPd;
      const perPromptToken = usesP ? (covP * (usesD ? varD : 1) - covPd * covD) / determinant : 0;
      const perDecode = usesD ? (covD * (usesP ? varP : 1) - covPd * covP) / determinant : 0;
      const base = (y - perPromptToken * p - perDecode * d) / n;
      if (usesP && perPromptToken < 0) usesP = false;
      else if (usesD && perDecode < 0) usesD = false;
      else return { base: Math.max(0, base), perPromptToken, perDecode };
    }
  }
}

/** What a step costs. */
export function stepMs(cost: StepCost, promptTokens: number, decodes: number): number {
  return cost.base + cost.perPromptToken * promptTokens + cost.perDecode * decodes;
}
