import { OctavoError } from "@octavo/protocol";
import { requireFinite, requireLevel } from "../check.js";
import type { Interval } from "../estimate.js";

export interface BoundedMeanOptions {
  /** Values lie in this range; [0, 1] unless given. A difference of two scores lies in [-1, 1]. */
  readonly range?: Interval;
  /** What it narrows fastest for; its p values hold at every level. */
  readonly confidence?: number;
}

/** Greatest share of the capital that is bet against a candidate mean. */
const mostBet = 0.75;
/** Halvings of the range when an end is looked for. */
const halvings = 40;

/**
 * Confidence sequence for the mean of bounded values: with probability `confidence` it holds the mean after every
 * observation at once, so one may look as often as one likes and stop when one likes. Hedged betting (Waudby-Smith and Ramdas
 * 2024, "Estimating means of bounded random variables by betting", section 4): against each candidate mean a gambler bets that
 * values are higher, another that they are lower; a candidate is out once one of them has won 2 / alpha times his stake.
 * Needs no distribution and no independence, but each value must have the same mean given those before it.
 *
 * Keeps the values; an end of the interval takes 40 passes over them.
 */
export class BoundedMeanSequence {
  readonly #low: number;
  readonly #width: number;
  readonly #alpha: number;
  /** As shares of the range, and what was bet on each before it was seen. */
  readonly #values: number[] = [];
  readonly #bets: number[] = [];
  #sum = 0;
  #squares = 0.25;

  constructor({ range = [0, 1], confidence = 0.95 }: BoundedMeanOptions = {}) {
    requireFinite("range[0]", range[0]);
    requireFinite("range[1]", range[1]);
    requireLevel("confidence", confidence);
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
    const t = this.#values.length + 1;
    this.#bets.push(Math.sqrt((2 * Math.log(2 / this.#alpha)) / (this.#squares * Math.log(t + 1))));
    this.#values.push(x);
    this.#sum += x;
    const center = (0.5 + this.#sum) / (t + 1);
    this.#squares += (x - center) ** 2;
  }

  get count(): number {
    return this.#values.length;
  }

  /** Undefined before the first observation. */
  get mean(): number | undefined {
    return this.count === 0 ? undefined : this.#low + (this.#width * this.#sum) / this.count;
  }

  /** The whole range before anything is known. */
  get interval(): Interval {
    const limit = 2 / this.#alpha;
    // capital on higher values falls with the candidate, on lower ones it rises: what is out lies at the ends
    const low = lastWhere((candidate) => this.#wonOnHigher(candidate) >= limit);
    const high = 1 - lastWhere((distance) => this.#wonOnLower(1 - distance) >= limit);
    // less often than alpha, or because the mean moved, all candidates are out
    const [from, to] = low <= high ? [low, high] : [high, low];
    return [this.#low + this.#width * from, this.#low + this.#width * to];
  }

  /** p-value of "the mean is at most `value`": one-sided, and valid whenever it is read. */
  pValueAbove(value: number): number {
    const candidate = this.#candidateOf(value);
    return candidate < 0 ? 0 : candidate >= 1 ? 1 : 1 / this.#wonOnHigher(candidate);
  }

  /** p-value of "the mean is at least `value`": one-sided, and valid whenever it is read. */
  pValueBelow(value: number): number {
    const candidate = this.#candidateOf(value);
    return candidate > 1 ? 0 : candidate <= 0 ? 1 : 1 / this.#wonOnLower(candidate);
  }

  #candidateOf(value: number): number {
    requireFinite("value", value);
    return (value - this.#low) / this.#width;
  }

  /** Most that who bets on higher values than the candidate ever had, of a stake of 1. */
  #wonOnHigher(candidate: number): number {
    let capital = 1;
    let most = 1;
    for (let i = 0; i < this.#values.length; i++) {
      const bet = Math.min(this.#bets[i]!, mostBet / candidate);
      capital *= 1 + bet * (this.#values[i]! - candidate);
      if (capital > most) most = capital;
    }
    return most;
  }

  #wonOnLower(candidate: number): number {
    let capital = 1;
    let most = 1;
    for (let i = 0; i < this.#values.length; i++) {
      const bet = Math.min(this.#bets[i]!, mostBet / (1 - candidate));
      capital *= 1 - bet * (this.#values[i]! - candidate);
      if (capital > most) most = capital;
    }
    return most;
  }
}

/** The last place in [0, 1] up to which something holds, or 0 where it holds nowhere. */
function lastWhere(holds: (place: number) => boolean): number {
  let [last, first] = [0, 1];
  for (let step = 0; step < halvings; step++) {
    const middle = (last + first) / 2;
    if (holds(middle)) last = middle;
    else first = middle;
  }
  return last;
}
