import type { Sequence } from "../sequence.js";
import type { StepSize } from "./scheduling-policy.js";
import { StepCostModel, stepMs } from "./step-cost-model.js";
import type { TenantShare, TenantShares } from "./tenant-shares.js";

/** A step with a favoured tenant takes at most this multiple of what it would take without the others. */
const maxStretch = 1.5;
/** A tenant is favoured below this fraction of its due share of the running sequences... */
const lowShare = 0.7;
/** ...unless it was served this many more tokens than the others. */
const servedSlack = 2048;
/**
 * Prompt tokens that a step always leaves to the others, so that they do not starve: few, since on CPUs a dozen of them take as
 * long as all that the favoured tenant generates in the step.
 */
const minPromptTokens = 4;
/** Fraction of all time that short steps may lose... */
const lossShare = 0.06;
/** ...accumulated over at most this many steps of the usual length, a running mean with this decay per step. */
const savedSteps = 500;
const decay = 0.99;

/** What a step leaves to tenants that are not favoured. */
export interface StepLimit {
  readonly favoured: ReadonlySet<TenantShare>;
  /** Generating sequences. */
  readonly decodes: number;
  readonly promptTokens: number;
}

/**
 * Keeps steps short while a tenant far below its share has work in them: it gets one token per step, so its speed is the
 * step's length, whichever request makes it long. The others' prompts and tokens share what is left of `maxStretch` times the duration
 * of the tenant's own work; their generating sequences take turns. Short steps read the weights for fewer tokens: that loss is
 * accounted for and kept below `lossShare` of all time.
 */
export class Isolation {
  readonly #shares: TenantShares;
  readonly #maxNumSeqs: number;
  readonly #model = new StepCostModel();
  /** Milliseconds that may still be lost. */
  #credit = 0;
  /** Mean duration of steps without a limit; limited steps are short and must not shrink the accumulated time. */
  #usualMs = 0;
  #isLimited = false;

  constructor(shares: TenantShares, maxNumSeqs: number) {
    this.#shares = shares;
    this.#maxNumSeqs = maxNumSeqs;
  }

  observe(step: StepSize, wallMs: number): void {
    const ms = this.#model.observe(step, wallMs);
    if (!this.#isLimited) this.#usualMs += (ms - this.#usualMs) * (this.#usualMs === 0 ? 1 : 1 - decay);
    this.#credit = Math.min(this.#credit + lossShare * ms, lossShare * this.#usualMs * savedSteps);
  }

  /** The limit of the next step; undefined if it needs none. */
  limit(running: readonly Sequence[], maxPromptTokens: number): StepLimit | undefined {
    const limit = this.#limit(running, maxPromptTokens);
    this.#isLimited = limit !== undefined;
    return limit;
  }

  #limit(running: readonly Sequence[], maxPromptTokens: number): StepLimit | undefined {
    const { cost } = this.#model;
    if (cost === undefined || this.#shares.active.size < 2) return undefined;
    const favoured = this.#favoured(running);
    if (favoured.size === 0) return undefined;
    const own = { prompts: 0, decodes: 0 };
    const others = { prompts: 0, decodes: 0 };
    for (const sequence of running) {
      const side = favoured.has(this.#shares.of(sequence)) ? own : others;
      if (sequence.isDecoding) side.decodes += 1;
      else side.prompts += sequence.numTokens - sequence.numComputed;
    }
    let numOwnWaiting = 0;
    for (const { waiting } of favoured) {
      own.prompts += waiting.peek()?.numTokens ?? 0;
      numOwnWaiting += waiting.size;
    }
    if (this.#shares.size > numOwnWaiting && running.length < this.#maxNumSeqs)
      others.prompts = maxPromptTokens;
    own.prompts = Math.min(own.prompts, maxPromptTokens);
    others.prompts = Math.min(others.prompts, maxPromptTokens);

    const spare = (maxStretch - 1) * stepMs(cost, own.prompts, own.decodes);
    const forDecodes = others.prompts > 0 ? spare / 2 : spare;
    const decodes = limited(others.decodes, forDecodes, cost.perDecode, 1);
    const forPrompts = spare - decodes * cost.perDecode;
    const promptTokens = limited(others.prompts, forPrompts, cost.perPromptToken, minPromptTokens);
    const whole = others.decodes * cost.perDecode + others.prompts * cost.perPromptToken;
    const done = decodes * cost.perDecode + promptTokens * cost.perPromptToken;
    if (done >= whole) return undefined;
    const lostMs = cost.base * (1 - done / whole);
    if (lostMs > this.#credit) return undefined;
    this.#credit -= lostMs;
    return { favoured, decodes, promptTokens };
  }

  /** Tenants far below their share that have work. */
  #favoured(running: readonly Sequence[]): Set<TenantShare> {
    const numRunning = new Map<TenantShare, number>();
    for (const sequence of running) {
      const share = this.#shares.of(sequence);
      numRunning.set(share, (numRunning.get(share) ?? 0) + 1);
    }
    // Not only the tenant that is next: one that has just come ties with the least served and is behind it by arrival.
    const lane = this.#shares.next?.lane;
    for (const share of this.#shares.active)
      if (share.waiting.size > 0 && share.lane === lane && !numRunning.has(share)) numRunning.set(share, 0);
    const due = running.length / this.#shares.activeWeight;
    const low: TenantShare[] = [];
    let minServed = Number.POSITIVE_INFINITY;
    for (const [share, count] of numRunning) {
      if (count <= lowShare * due * share.weight) low.push(share);
      else minServed = Math.min(minServed, share.served);
    }
    const favoured = new Set<TenantShare>();
    if (minServed === Number.POSITIVE_INFINITY) return favoured;
    for (const share of low) if (share.served <= minServed + servedSlack) favoured.add(share);
    return favoured;
  }
}

/** How many of `count` fit into `ms`, at least `atLeast`. */
function limited(count: number, ms: number, msEach: number, atLeast: number): number {
  const affordable = msEach > 0 ? Math.floor(ms / msEach) : atLeast;
  return Math.min(count, Math.max(atLeast, affordable));
}
