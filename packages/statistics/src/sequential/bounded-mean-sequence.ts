import { OctavoError } from "@octavo/protocol";
import { requireCount, requireFinite, requireLevel } from "../check.js";
import type { Interval } from "../estimate.js";

export interface BoundedMeanOptions {
  /** Values lie in this range; [0, 1] unless given. A difference of two scores lies in [-1, 1]. */
  readonly range?: Interval;
  readonly confidence?: number;
  /** Steps into which the range is cut; the interval's ends are on these. */
  readonly steps?: number;
}

/** Greatest share of the capital that is bet against a candidate mean. */
const mostBet = 0.5;

/**
 * Confidence sequence for the mean of bounded values: with probability `confidence` it holds the mean after every
 * observation at once, so one may look as often as one likes and stop when one likes. Hedged betting (Waudby-Smith and Ramdas
 * 2024, "Estimating means of bounded random variables by betting", section 4): against each candidate mean a gambler bets that
 * values are higher, another that they are lower; a candidate is out once one of them has won 2 / alpha times his stake.
 * Needs no distribution and no independence, but each value must have the same mean given those before it.
 */
export class BoundedMeanSequence {
  readonly #low: number;
  readonly #width: number;
  readonly #alpha: number;
  /** By candidate: capital of who bets on higher values, and on lower ones. */
  readonly #higher: Float64Array;
  readonly #lower: Float64Array;
  readonly #steps: number;
  #first = 0;
  #last: number;
  #count = 0;
  #sum = 0;
  #squares = 0.25;

  constructor({ range = [0, 1], confidence = 0.95, steps = 1000 }: BoundedMeanOptions = {}) {
    requireFinite("range[0]", range[0]);
    requireFinite("range[1]", range[1]);
    requireLevel("confidence", confidence);
    requireCount("steps", steps, 2);
    if (range[0] >= range[1]) {
      throw new OctavoError(
        "invalid_option",
        `range is [${range[0]}, ${range[1]}]; expected its lower end first.`,
        { param: "range" },
      );
    }
    this.#low = range[0];
    this.#width = range[1] - range[0];
    this.#alpha = 1 - confidence;
    this.#steps = steps;
    this.#last = steps;
    this.#higher = new Float64Array(steps + 1).fill(1);
    this.#lower = new Float64Array(steps + 1).fill(1);
  }

  /** Throws `invalid_option` outside the range: the guarantee rests on it. */
  observe(value: number): void {
    const x = (value - this.#low) / this.#width;
    if (!(x >= 0 && x <= 1)) {
      const range = `[${this.#low}, ${this.#low + this.#width}]`;
      throw new OctavoError("invalid_option", `value is ${value}; expected one in ${range}.`, {
        param: "value",
      });
    }
    const t = this.#count + 1;
    const bet = Math.sqrt((2 * Math.log(2 / this.#alpha)) / ((this.#squares / t) * t * Math.log(t + 1)));
    const limit = 2 / this.#alpha;
    // Capital on higher values falls with the candidate, on lower ones it rises: what is out lies at the ends.
    let first = this.#first;
    let last = this.#last;
    for (let i = this.#first; i <= this.#last; i++) {
      const candidate = i / this.#steps;
      const higher = this.#higher[i]! * (1 + Math.min(bet, mostBet / candidate) * (x - candidate));
      const lower = this.#lower[i]! * (1 - Math.min(bet, mostBet / (1 - candidate)) * (x - candidate));
      this.#higher[i] = higher;
      this.#lower[i] = lower;
      if (higher >= limit) first = Math.max(first, i);
      if (lower >= limit) last = Math.min(last, i);
    }
    // Less often than alpha all candidates are out; the last that were in then stand.
    if (first < last) {
      this.#first = first;
      this.#last = last;
    }
    this.#sum += x;
    this.#count = t;
    const center = (0.5 + this.#sum) / (t + 1);
    this.#squares += (x - center) ** 2;
  }

  get count(): number {
    return this.#count;
  }

  /** Undefined before the first observation. */
  get mean(): number | undefined {
    return this.#count === 0 ? undefined : this.#low + (this.#width * this.#sum) / this.#count;
  }

  /** The whole range before anything is known; it never widens. */
  get interval(): Interval {
    const at = (step: number) => this.#low + (this.#width * step) / this.#steps;
    return [at(this.#first), at(this.#last)];
  }
}
