import { z } from "zod";

/** Raises the least number of replicas at a time of day, before what is known to come. */
const prewarm = z.strictObject({
  /** UTC, `HH:MM`. */
  at: z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, "expected a time such as 08:55, in UTC"),
  duration_s: z.number().gt(0),
  replicas: z.int().min(1),
});

/** Instead of Ray's rule: scales by the wait that is predicted, within the same `min_replicas` and `max_replicas`. */
export const sloSchema = z.strictObject({
  /** What a request may wait for its first token. */
  ttft_ms: z.number().gt(0),
  /** Room for bursts, as a share of the tokens that arrive. */
  headroom: z.number().min(0).max(10).default(0.25),
  /** Replicas go when they were not wanted for so long. */
  downscale_hold_s: z.number().min(0).default(60),
  prewarm: z.array(prewarm).default([]),
});

export type SloConfig = z.output<typeof sloSchema>;

/** What a deployment has to do and has done; tokens are those that requests may have to compute, prompts and outputs. */
export interface TokenCounts {
  readonly queued: number;
  /** At replicas. */
  readonly running: number;
  /** Since the start. */
  readonly arrived: number;
  /** Since the start. */
  readonly finished: number;
}

export interface SloInput {
  readonly config: SloConfig;
  readonly minReplicas: number;
  readonly maxReplicas: number;
  readonly numReady: number;
  readonly target: number;
  readonly tokens: TokenCounts;
  readonly nowS: number;
  /** Milliseconds since 1970. */
  readonly epochMs: number;
}

/** Arrivals are followed over seconds, so that a burst is seen at once and one request is none. */
const rateHalfLifeS = 4;
/** What a replica computes changes with the mix of requests, over minutes. */
const capacityHalfLifeS = 30;
/** The queue that has built up is worked off within so many times the bound on the first token. */
const drainFactor = 2;

/**
 * Follows the tokens that arrive and those that busy replicas finish, and wants as many replicas as keep up with the first, with
 * headroom, and work the queue off in time. Up at once; down to what was wanted most within the hold.
 */
export class SloPolicy {
  /** Tokens per second of one busy replica; undefined before it was measured. */
  #capacity: number | undefined;
  #rate = 0;
  #last: { readonly nowS: number; readonly arrived: number; readonly finished: number } | undefined;
  #shownTokens = 0;
  #shownS = 0;
  readonly #wanted: { readonly atS: number; readonly replicas: number }[] = [];

  /** `capacity`: tokens per second of one replica, where step costs say it before any was measured. */
  constructor(capacity?: number) {
    this.#capacity = capacity;
  }

  get capacity(): number | undefined {
    return this.#capacity;
  }

  /** Seconds that a request which comes now is predicted to wait in the queue. */
  predictedWaitS({ queued }: TokenCounts, numReady: number): number {
    return this.#capacity === undefined || numReady === 0 ? 0 : queued / (this.#capacity * numReady);
  }

  decide(input: SloInput): number {
    const { config, minReplicas, maxReplicas, numReady, target, tokens, nowS } = input;
    this.#measure(input);
    const least = Math.max(minReplicas, prewarmed(config, input.epochMs));
    const clip = (replicas: number): number => Math.max(least, Math.min(maxReplicas, replicas));
    const needed = clip(this.#needed(config, tokens, numReady));
    this.#wanted.push({ atS: nowS, replicas: needed });
    while ((this.#wanted[0]?.atS ?? nowS) < nowS - config.downscale_hold_s) this.#wanted.shift();
    const most = this.#wanted.reduce((sofar, { replicas }) => Math.max(sofar, replicas), 0);
    return needed > target ? needed : clip(Math.min(target, most));
  }

  #needed({ headroom, ttft_ms }: SloConfig, tokens: TokenCounts, numReady: number): number {
    const isAsked = tokens.queued + tokens.running > 0;
    // nothing is known yet: one replica measures what one can do
    if (this.#capacity === undefined) return isAsked ? Math.max(1, numReady) : 0;
    const forRate = (this.#rate * (1 + headroom)) / this.#capacity;
    const forQueue = tokens.queued / (this.#capacity * drainFactor * (ttft_ms / 1000));
    // a rate decays without end; below a hundredth of a replica nothing is asked any more
    return forRate < 0.01 && !isAsked ? 0 : Math.ceil(forRate + forQueue);
  }

  #measure({ tokens, numReady, nowS }: SloInput): void {
    const last = this.#last;
    this.#last = { nowS, arrived: tokens.arrived, finished: tokens.finished };
    const dt = last === undefined ? 0 : nowS - last.nowS;
    if (last === undefined || dt <= 0) return;
    const kept = 0.5 ** (dt / rateHalfLifeS);
    this.#rate = this.#rate * kept + ((tokens.arrived - last.arrived) / dt) * (1 - kept);
    // only replicas that have more to do than they can show what they can do
    if (numReady === 0 || tokens.queued === 0) return;
    const shown = (tokens.finished - last.finished) / dt / numReady;
    const weight = 1 - 0.5 ** (dt / capacityHalfLifeS);
    this.#capacity =
      this.#capacity === undefined
        ? this.#firstShown(shown, dt)
        : this.#capacity + weight * (shown - this.#capacity);
  }

  /** A few seconds of work, as requests finish in lumps. */
  #firstShown(shown: number, dt: number): number | undefined {
    this.#shownTokens += shown * dt;
    this.#shownS += dt;
    return this.#shownS < 2 || this.#shownTokens === 0 ? undefined : this.#shownTokens / this.#shownS;
  }
}

/** The most that an entry whose time it is asks for. */
function prewarmed({ prewarm: entries }: SloConfig, epochMs: number): number {
  const secondOfDay = (epochMs / 1000) % 86_400;
  let most = 0;
  for (const { at, duration_s, replicas } of entries) {
    const [hours = 0, minutes = 0] = at.split(":").map(Number);
    const since = (secondOfDay - hours * 3600 - minutes * 60 + 86_400) % 86_400;
    if (since < duration_s) most = Math.max(most, replicas);
  }
  return most;
}
