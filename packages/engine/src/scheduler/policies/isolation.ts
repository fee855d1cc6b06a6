import type { Sequence } from "../sequence.js";
import type { StepSize } from "./scheduling-policy.js";
import { StepCostModel, stepMs } from "./step-cost-model.js";
import type { TenantShare, TenantShares } from "./tenant-shares.js";

/** A step of a tenant below its share takes this many times what it would take without the others, at most. */
const maxStretch = 1.5;
/** A tenant is below its share with so much of the running sequences that are its due: with one beside another's two... */
const lowShare = 0.7;
/** ...unless it was served more than the others by so many tokens. */
const servedSlack = 2048;
/**
 * Prompt tokens that a step always leaves to the others, lest they starve: few, since where computing bounds a step, as on
 * CPUs, a dozen of them take as long as all that the tenant generates in it.
 */
const minPromptTokens = 4;
/** Share of the time that may be lost to steps which are shorter than they could be... */
const lossShare = 0.06;
/** ...saved up for so many steps of the usual length: a mean, of which so much remains after each step. */
const savedSteps = 500;
const memory = 0.99;

/** What a step leaves to those who have their share already. */
export interface StepLimit {
  readonly favoured: ReadonlySet<TenantShare>;
  /** Of the sequences that generate, so many. */
  readonly decodes: number;
  readonly promptTokens: number;
}

/**
 * Keeps steps short while a tenant far below its share has something in them: its tokens come once a step, so their pace
 * is the step's length, whoever makes it long. Others' prompts and tokens get what is left of `maxStretch` times the time
 * that the tenant's own work would take; of their sequences that generate, each then gets its turn. Short steps read the
 * weights for fewer tokens: what is lost that way is counted, and no more than `lossShare` of all time is spent on it.
 */
export class Isolation {
  readonly #shares: TenantShares;
  readonly #maxNumSeqs: number;
  readonly #model = new StepCostModel();
  /** Time that may still be lost, in ms. */
  #credit = 0;
  /** What steps without a limit take: those with one are short, and what is saved up must not shrink to a share of them. */
  #usualMs = 0;
  #isLimited = false;

  constructor(shares: TenantShares, maxNumSeqs: number) {
    this.#shares = shares;
    this.#maxNumSeqs = maxNumSeqs;
  }

  observe(step: StepSize, wallMs: number): void {
    const ms = this.#model.observe(step, wallMs);
    if (!this.#isLimited) this.#usualMs += (ms - this.#usualMs) * (this.#usualMs === 0 ? 1 : 1 - memory);
    this.#credit = Math.min(this.#credit + lossShare * ms, lossShare * this.#usualMs * savedSteps);
  }

  /** Undefined where the step needs no limit. */
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

  /** Tenants far below their share that have something to compute. */
  #favoured(running: readonly Sequence[]): Set<TenantShare> {
    const numRunning = new Map<TenantShare, number>();
    for (const sequence of running) {
      const share = this.#shares.of(sequence);
      numRunning.set(share, (numRunning.get(share) ?? 0) + 1);
    }
    // Not only whose turn it is: who has just come stands level with the least served, and behind them by arrival.
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

/** As many as there is time for, but at least `least`, and no more than there are. */
function limited(count: number, ms: number, msEach: number, least: number): number {
  const affordable = msEach > 0 ? Math.floor(ms / msEach) : least;
  return Math.min(count, Math.max(least, affordable));
}
