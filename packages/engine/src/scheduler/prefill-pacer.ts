import type { StepSize } from "./policies/scheduling-policy.js";

/** Least relative error of a measured step, and relative change of what is estimated from one step to the next. */
const noise = 0.05;
const drift = 0.05;
/** Steps over which the error is averaged: a machine that other work shares has more of it. */
const noiseSteps = 32;
/** Beyond it, steps say too little for a bound to be kept. */
const mostNoise = 0.15;
/** Standard deviations that a step's expected time stays below the target. */
const margin = 2;

/** More than any step holds. */
const mostTokens = 2 ** 20;

/** A value for each part of a step's time: the step itself, each generating sequence, each prompt token. */
type Parts = [step: number, decode: number, prompt: number];

/**
 * Limits how long prompts delay the next tokens of generating sequences: gives the number of prompt tokens with which a step
 * is expected to stay within `targetMs`, its error included. Only steps that compute something beside prompts are learned from,
 * since long pieces of a prompt that is computed alone cost less a token than the small ones that are bounded here. A Kalman
 * filter follows the cost of each part (a random walk): what was not measured lately is uncertain, so pieces begin with a token
 * and grow as their cost becomes known.
 */
export class PrefillPacer {
  readonly #targetMs: number;
  /** Estimated ms of each part, and the covariance of their errors. */
  readonly #costs: Parts = [0, 0, 0];
  readonly #covariance: [Parts, Parts, Parts];
  /** Relative variance of measured steps around what was expected. */
  #noiseVariance = noise ** 2;
  /** Prompt tokens of the measured step that had most of them, and of the last one that had any. */
  #mostMeasured = 0;
  #lastMeasured = 0;

  /** 0 ms means no limit. */
  constructor(targetMs: number) {
    this.#targetMs = targetMs;
    const unknown = targetMs ** 2;
    // Until it is seen what a prompt token costs, a step's time is rather that of the step.
    this.#covariance = [
      [unknown, 0, 0],
      [0, unknown, 0],
      [0, 0, unknown / 256],
    ];
  }

  /**
   * Prompt tokens that the next step may compute beside `decodes` generating sequences, at least one. Where a step takes the target
   * without any, it is lengthened by no more than steps differ among themselves.
   */
  maxTokens(decodes: number): number {
    if (this.#targetMs === 0) return Number.POSITIVE_INFINITY;
    const target = this.#targetMs;
    const withoutMs = this.#expected([1, decodes, 0]);
    const surelyWithoutMs = withoutMs - margin * Math.sqrt(this.#variance([1, decodes, 0]));
    const unnoticedMs = withoutMs + noise * Math.max(0, surelyWithoutMs);
    const leastMs = withoutMs < target ? Math.min(target, unnoticedMs) : unnoticedMs;
    const last = this.#lastMeasured;
    const lastMs = this.#surely([1, decodes, last]);
    const fits = (tokens: number): boolean => {
      const step: Parts = [1, decodes, tokens];
      const surelyMs = this.#surely(step);
      // However a measured step's time divides into parts, twice the tokens take at most twice as long.
      const mostMs = tokens > last ? Math.min(surelyMs, (lastMs * tokens) / last) : surelyMs;
      return mostMs <= target || this.#expected(step) <= leastMs;
    };
    let fitting = 1;
    let excess = this.#mostKnown(decodes) + 1;
    while (excess - fitting > 1) {
      const middle = Math.floor((fitting + excess) / 2);
      if (fits(middle)) fitting = middle;
      else excess = middle;
    }
    return fitting;
  }

  /** Records a step's cost. */
  observe({ prefillTokens, decodeTokens }: StepSize, ms: number): void {
    if (this.#targetMs === 0 || decodeTokens === 0) return;
    const costs = this.#costs;
    const covariance = this.#covariance;
    const step: Parts = [1, decodeTokens, prefillTokens];
    for (const part of [0, 1, 2] as const) {
      // A part that cost nothing so far may come to cost something.
      const least = step[part] === 0 ? 0 : (noise * ms) / step[part];
      covariance[part][part] += (drift * Math.max(least, costs[part])) ** 2;
    }
    const error = ms - this.#expected(step);
    const variance = this.#variance(step) + 1e-6;
    this.#noteNoise((error / Math.max(ms, 1e-3)) ** 2);
    const weights = covariance.map((row) => dot(row, step) / variance);
    for (const [row, weight] of weights.entries()) {
      const part = row as 0 | 1 | 2;
      costs[part] += weight * error;
      for (const column of [0, 1, 2] as const)
        covariance[part][column] -= weight * (weights[column] ?? 0) * variance;
    }
    // No part takes less than nothing, and no number of prompt tokens is free; what cannot fall further takes no more of the error.
    for (const part of [0, 1, 2] as const) {
      const least = part === 2 && prefillTokens > 0 ? (noise * ms) / (4 * prefillTokens) : 0;
      if (costs[part] >= least) continue;
      costs[part] = least;
      for (const other of [0, 1, 2] as const)
        if (other !== part) covariance[part][other] = covariance[other][part] = 0;
    }
    this.#mostMeasured = Math.max(this.#mostMeasured, prefillTokens);
    if (prefillTokens > 0) this.#lastMeasured = prefillTokens;
  }

  /** A step that is far off says little of the others: it may have met what happens once, or ended it. */
  #noteNoise(relativeSquare: number): void {
    const seen = Math.min(relativeSquare, 4 * this.#noiseVariance);
    const average = this.#noiseVariance + (seen - this.#noiseVariance) / noiseSteps;
    this.#noiseVariance = Math.min(mostNoise ** 2, Math.max(noise ** 2, average));
  }

  /** Costs may grow in proportion to tokens beyond those that were measured: small pieces are often computed while weights are read. */
  #mostKnown(decodes: number): number {
    const known = this.#mostMeasured;
    const expectedMs = this.#expected([1, decodes, known]);
    const proportional = Math.floor((known * this.#targetMs) / Math.max(expectedMs, 1e-3));
    return Math.min(mostTokens, Math.max(known + 1, proportional));
  }

  #expected(step: Parts): number {
    return dot(this.#costs, step);
  }

  #surely(step: Parts): number {
    return this.#expected(step) + margin * Math.sqrt(this.#variance(step));
  }

  /** Of a step's time around the expected one. */
  #variance(step: Parts): number {
    const [a, b, c] = this.#covariance;
    return (
      dot([dot(a, step), dot(b, step), dot(c, step)], step) + this.#noiseVariance * this.#expected(step) ** 2
    );
  }
}

function dot(a: Parts, b: Parts): number {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
