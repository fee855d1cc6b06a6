import { OctavoError } from "@octavo/protocol";
import { requireCount, requireLevel } from "../check.js";
import { betaQuantile } from "../distributions/beta.js";

/** Bets as if the true rate were this many times the allowed one: some for what is slight, some for what is gross. */
const multiples = [1.5, 3, 10] as const;

/**
 * Evidence that values exceed something more often than `rate`, such as gaps above the baseline's p99 (rate 0.01), looked at
 * after every observation. `value` is a capital that starts at 1 and is not expected to grow while the rate, given the past,
 * is at most the allowed one: by Ville's inequality it ever reaches 1 / alpha with probability alpha at most. It is the mean of
 * several bets, one of them on the share seen so far (Ramdas, Gruenwald, Vovk and Shafer 2023, "Game-theoretic statistics and
 * safe anytime-valid inference"; bets of Waudby-Smith and Ramdas 2024). Needs no distribution and no independence.
 */
export class EProcess {
  readonly #rate: number;
  readonly #logCapitals: Float64Array;
  #count = 0;
  #sum = 0;
  #greatestLog = 0;

  constructor({ rate }: { readonly rate: number }) {
    requireLevel("rate", rate);
    this.#rate = rate;
    this.#logCapitals = new Float64Array(multiples.length + 1);
  }

  /** Whether a value exceeded; or the share of a cluster's values that did, where these depend on each other. */
  observe(exceeded: boolean | number): void {
    const x = Number(exceeded);
    if (!(x >= 0 && x <= 1)) {
      throw new OctavoError("invalid_option", `exceeded is ${exceeded}; expected a share from 0 to 1.`, {
        param: "exceeded",
      });
    }
    const seen = (this.#sum + this.#rate) / (this.#count + 1);
    for (const [index, multiple] of [...multiples, seen / this.#rate].entries()) {
      this.#logCapitals[index]! += Math.log1p(this.#bet(multiple) * (x - this.#rate));
    }
    this.#sum += x;
    this.#count++;
    this.#greatestLog = Math.max(this.#greatestLog, this.#logValue());
  }

  /** The likelihood-ratio bet on `multiple` times the rate; capital stays above 0 whatever comes. */
  #bet(multiple: number): number {
    const supposed = Math.min(multiple * this.#rate, (1 + this.#rate) / 2);
    return Math.max(0, (supposed - this.#rate) / (this.#rate * (1 - this.#rate)));
  }

  #logValue(): number {
    let most = -Infinity;
    for (const log of this.#logCapitals) most = Math.max(most, log);
    let sum = 0;
    for (const log of this.#logCapitals) sum += Math.exp(log - most);
    return most + Math.log(sum / this.#logCapitals.length);
  }

  get count(): number {
    return this.#count;
  }

  /** Undefined before the first observation. */
  get observedRate(): number | undefined {
    return this.#count === 0 ? undefined : this.#sum / this.#count;
  }

  /** Evidence now: an e-value, at most the greatest finite number. */
  get value(): number {
    return Math.min(Number.MAX_VALUE, Math.exp(this.#logValue()));
  }

  /** Valid whenever it is read: one over the greatest value so far. */
  get pValue(): number {
    return Math.min(1, Math.exp(-this.#greatestLog));
  }
}

/**
 * How often values may exceed the `rank`-th smallest of `count` independent baseline values, at most, with this confidence:
 * the true rate of exceeding an order statistic is beta distributed. A baseline's observed p99 is exceeded more than 1 % of the
 * time every other time, so an EProcess takes this rate, not 1 - level. Throws `invalid_option` unless 1 <= rank <= count.
 */
export function exceedanceRateBound(
  { count, rank }: { readonly count: number; readonly rank: number },
  confidence: number,
): number {
  requireCount("count", count, 1);
  requireCount("rank", rank, 1);
  requireLevel("confidence", confidence);
  if (rank > count) {
    throw new OctavoError("invalid_option", `rank is ${rank} of ${count} values.`, { param: "rank" });
  }
  return betaQuantile(confidence, count - rank + 1, rank);
}
