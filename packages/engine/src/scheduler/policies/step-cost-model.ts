import type { StepSize } from "./scheduling-policy.js";

/** Steps before the first estimate. */
const minSteps = 8;
/** Steps are clipped to this multiple of the estimate: beyond, the machine was busy with something else. */
const maxSurprise = 3;
/** Length of the running mean over steps of one size. */
const maxSteps = 16;
/** A size last seen this many steps ago counts half. */
const halfLife = 8192;
/** Steps after which the fit is renewed, at the latest. */
const maxUnseen = 16;
/** A slight prior for cost proportional to size, for loads whose steps are all alike. */
const ridge = 1e-3;
/** Sizes are bucketed by bit length, up to this: 0, 1, 2 to 3, 4 to 7... */
const maxBits = 15;

/** The cost of a step by its size, in ms. */
export interface StepCost {
  /** Fixed cost of any step: reading the weights and everything around the computation. */
  readonly base: number;
  readonly perPromptToken: number;
  readonly perDecode: number;
}

/** Means over steps of about one size. */
interface Seen {
  count: number;
  lastStep: number;
  promptTokens: number;
  decodes: number;
  ms: number;
}

/**
 * Learns the cost of steps as `base + perPromptToken * p + perDecode * d`, by least squares over means of steps of about one
 * size. A size counts however rare it is: under a load of nearly equal steps, the latest of them alone would not tell the cost
 * of small ones. Errors are relative to the cost, so that small steps are estimated as well as large ones. Negative
 * coefficients are set to 0.
 */
export class StepCostModel {
  readonly #seen = new Map<number, Seen>();
  #numSteps = 0;
  /** After which the fit was made. */
  #fittedSteps = 0;
  #cost: StepCost | undefined;

  /** Undefined until enough steps were observed. */
  get cost(): StepCost | undefined {
    if (this.#numSteps < minSteps) return undefined;
    const unseen = this.#numSteps - this.#fittedSteps;
    if (unseen >= Math.min(maxUnseen, this.#fittedSteps / 8)) {
      this.#cost = this.#fit();
      this.#fittedSteps = this.#numSteps;
    }
    return this.#cost;
  }

  /** Records a step; returns its duration, clipped if it is implausible. */
  observe({ prefillTokens, decodeTokens }: StepSize, wallMs: number): number {
    this.#numSteps += 1;
    const key = bits(prefillTokens) * (maxBits + 1) + bits(decodeTokens);
    let seen = this.#seen.get(key);
    if (seen === undefined) {
      seen = { count: 0, lastStep: 0, promptTokens: 0, decodes: 0, ms: 0 };
      this.#seen.set(key, seen);
    }
    const expected = seen.count > 0 ? seen.ms : this.#cost && stepMs(this.#cost, prefillTokens, decodeTokens);
    const ms = Math.min(wallMs, maxSurprise * (expected ?? wallMs));
    seen.count = Math.min(seen.count + 1, maxSteps);
    seen.lastStep = this.#numSteps;
    seen.promptTokens += (prefillTokens - seen.promptTokens) / seen.count;
    seen.decodes += (decodeTokens - seen.decodes) / seen.count;
    seen.ms += (ms - seen.ms) / seen.count;
    return ms;
  }

  #fit(): StepCost {
    let [n, p, d, pp, pd, dd, y, py, dy] = [0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (const { count, lastStep, promptTokens, decodes, ms } of this.#seen.values()) {
      const weight = (count * 2 ** ((lastStep - this.#numSteps) / halfLife)) / Math.max(ms * ms, 1e-12);
      n += weight;
      p += weight * promptTokens;
      d += weight * decodes;
      pp += weight * promptTokens * promptTokens;
      pd += weight * promptTokens * decodes;
      dd += weight * decodes * decodes;
      y += weight * ms;
      py += weight * promptTokens * ms;
      dy += weight * decodes * ms;
    }
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

/** The estimated duration of a step in ms. */
export function stepMs(cost: StepCost, promptTokens: number, decodes: number): number {
  return cost.base + cost.perPromptToken * promptTokens + cost.perDecode * decodes;
}

function bits(count: number): number {
  return Math.min(maxBits, 32 - Math.clz32(count));
}
