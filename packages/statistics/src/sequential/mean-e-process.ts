import { OctavoError } from "@octavo/protocol";
import { requireFinite, requireLevel } from "../check.js";
import type { Interval } from "../estimate.js";

/** Shares of the capital that are bet, and how the first capital is divided among them. */
const bets = [
  { share: 0.15, weight: 0.15 },
  { share: 0.3, weight: 0.35 },
  { share: 0.45, weight: 0.35 },
  { share: 0.65, weight: 0.15 },
] as const;

/** All that a `MeanEProcess` knows: plain numbers, to be stored and added to another's. */
export interface MeanEvidence {
  readonly count: number;
  readonly sum: number;
  readonly sumOfSquares: number;
  /** Logarithm of what each bet's capital has become. */
  readonly logCapitals: readonly number[];
}

/** Before the first observation. */
export const noMeanEvidence: MeanEvidence = {
  count: 0,
  sum: 0,
  sumOfSquares: 0,
  logCapitals: bets.map(() => 0),
};

export interface MeanEProcessOptions {
  /** The mean that is to be refuted, between -1 and 1, both excluded. */
  readonly mean: number;
  /** `below`: evidence grows where the true mean is less; `above`: where it is more. */
  readonly side: "below" | "above";
}

/**
 * Evidence that the mean of values in [-1, 1], such as paired differences of scores, lies below, or above, a given one. `value`
 * is a capital that starts at 1 and is not expected to grow while it does not: it ever reaches 1 / alpha with probability alpha
 * at most, however often one looks (Ville's inequality; Waudby-Smith and Ramdas 2024, section 4). The stakes are fixed shares
 * of the capital, chosen before anything is seen. So the order of values does not matter, and evidence that several observers
 * gathered of different values is added up.
 */
export class MeanEProcess {
  readonly #mean: number;
  readonly #sign: 1 | -1;
  readonly #scale: number;
  #evidence: MeanEvidence;

  constructor({ mean, side }: MeanEProcessOptions, evidence: MeanEvidence = noMeanEvidence) {
    if (!(mean > -1 && mean < 1)) {
      throw new OctavoError("invalid_option", `mean is ${mean}; expected one between -1 and 1.`, {
        param: "mean",
      });
    }
    requireEvidence(evidence);
    this.#mean = mean;
    this.#sign = side === "above" ? 1 : -1;
    // the most that one value can cost: capital stays above 0 whatever comes
    this.#scale = 1 / (1 + this.#sign * mean);
    this.#evidence = evidence;
  }

  /** Throws `invalid_option` outside [-1, 1]: the guarantee rests on it. */
  observe(value: number): void {
    if (!(value >= -1 && value <= 1)) {
      throw new OctavoError("invalid_option", `value is ${value}; expected one from -1 to 1.`, {
        param: "value",
      });
    }
    const gain = this.#sign * (value - this.#mean) * this.#scale;
    const { count, sum, sumOfSquares, logCapitals } = this.#evidence;
    this.#evidence = {
      count: count + 1,
      sum: sum + value,
      sumOfSquares: sumOfSquares + value * value,
      logCapitals: logCapitals.map((log, index) => log + Math.log1p(bets[index]!.share * gain)),
    };
  }

  /** Adds what another process with the same options gathered of other values. */
  add(other: MeanEvidence): void {
    requireEvidence(other);
    const { count, sum, sumOfSquares, logCapitals } = this.#evidence;
    this.#evidence = {
      count: count + other.count,
      sum: sum + other.sum,
      sumOfSquares: sumOfSquares + other.sumOfSquares,
      logCapitals: logCapitals.map((log, index) => log + other.logCapitals[index]!),
    };
  }

  get evidence(): MeanEvidence {
    return this.#evidence;
  }

  get count(): number {
    return this.#evidence.count;
  }

  /** Evidence now: an e-value, at most the greatest finite number. */
  get value(): number {
    const logs = this.#evidence.logCapitals;
    const most = Math.max(...logs);
    const sum = bets.reduce((all, { weight }, index) => all + weight * Math.exp(logs[index]! - most), 0);
    return Math.min(Number.MAX_VALUE, Math.exp(most + Math.log(sum)));
  }
}

/** Throws `invalid_option`: a stored state that was damaged must not pass for evidence. */
function requireEvidence({ count, sum, sumOfSquares, logCapitals }: MeanEvidence): void {
  for (const [name, value] of Object.entries({ count, sum, sumOfSquares })) requireFinite(name, value);
  if (logCapitals.length !== bets.length) {
    throw new OctavoError(
      "invalid_option",
      `logCapitals has ${logCapitals.length} entries; expected ${bets.length}.`,
      { param: "logCapitals" },
    );
  }
  for (const [index, value] of logCapitals.entries()) requireFinite(`logCapitals[${index}]`, value);
}

/**
 * Asymptotic confidence sequence for the mean of what was observed (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024,
 * "Time-uniform central limit theory and asymptotic confidence sequences", theorem 2.2), narrowest near `tightestAt` values.
 * For showing how large an effect is: the e-process decides. Undefined below two values.
 */
export function asymptoticMeanSequence(
  { count, sum, sumOfSquares }: MeanEvidence,
  {
    confidence = 0.95,
    tightestAt = 500,
  }: { readonly confidence?: number; readonly tightestAt?: number } = {},
): Interval | undefined {
  requireLevel("confidence", confidence);
  if (count < 2) return undefined;
  const alpha = 1 - confidence;
  const mean = sum / count;
  const variance = Math.max(0, (sumOfSquares - count * mean * mean) / (count - 1));
  // equation (10) there: the parameter for which the interval is narrowest at that count
  const logAlpha = -2 * Math.log(alpha);
  const rhoSquared = (logAlpha + Math.log(logAlpha + 1)) / tightestAt;
  const scaled = count * rhoSquared + 1;
  const half = Math.sqrt(
    (2 * variance * scaled * Math.log(Math.sqrt(scaled) / alpha)) / (count * count * rhoSquared),
  );
  return [Math.max(-1, mean - half), Math.min(1, mean + half)];
}
