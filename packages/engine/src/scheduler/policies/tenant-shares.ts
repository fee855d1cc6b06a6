import { OctavoError } from "@octavo/protocol/errors";
import { IndexedHeap } from "../indexed-heap.js";
import { accountOf, laneOf, type Sequence } from "../sequence.js";
import { arrivedBefore, type WaitingLine } from "./scheduling-policy.js";

/** Cost of a prompt token and of an output token, which takes a step of its own (VTC's weights). */
const promptTokenCost = 1;
const outputTokenCost = 2;
/** At most this many tokens that a tenant got while it was alone are held against it. */
const maxDebt = 16_384;
/** Tenants without requests that are kept; the counters of the others are dropped. */
const maxIdle = 1024;

/** A tenant as the fair policy sees it. */
export class TenantShare {
  readonly tenant: string;
  weight = 1;
  /** Its virtual counter: the cost of the tokens it was given, divided by its weight. */
  served = 0;
  /** Its sequences in the scheduler. */
  numSequences = 0;
  /** Its waiting sequences, next first. */
  readonly waiting = new IndexedHeap<Sequence>(goesBefore);

  constructor(tenant: string) {
    this.tenant = tenant;
  }

  /** The lane of its next waiting sequence. */
  get lane(): number {
    const next = this.waiting.peek();
    return next === undefined ? Number.POSITIVE_INFINITY : laneOf(next);
  }
}

/** The order within a tenant: lane, preempted sequences first, earliest first-token deadline, arrival. */
function goesBefore(a: Sequence, b: Sequence): boolean {
  const lanes = laneOf(a) - laneOf(b);
  if (lanes !== 0) return lanes < 0;
  const begun = Number(b.numPreemptions > 0) - Number(a.numPreemptions > 0);
  if (begun !== 0) return begun < 0;
  const dueA = a.group.firstTokenDueMs ?? Number.POSITIVE_INFINITY;
  const dueB = b.group.firstTokenDueMs ?? Number.POSITIVE_INFINITY;
  return dueA === dueB ? arrivedBefore(a, b) : dueA < dueB;
}

/**
 * Tenants and what they were given: the virtual token counters of Sheng et al., "Fairness in Serving Large Language
 * Models" (OSDI 2024). Tokens from the cache cost nothing, as in Cao et al., "Locality-aware Fair Scheduling" (2025). A
 * tenant that becomes active is lifted to the least served active one, so that no tenant saves up for a burst. Waiting
 * sequences are ordered by these counters.
 */
export class TenantShares implements WaitingLine {
  readonly #shares = new Map<string, TenantShare>();
  readonly #active = new Set<TenantShare>();
  readonly #queued = new IndexedHeap<TenantShare>(isAheadOf);
  /** The latest counter of the least served tenant; never falls. */
  #floor = 0;
  #numWaiting = 0;

  get size(): number {
    return this.#numWaiting;
  }

  /** Tenants with sequences in the scheduler. */
  get active(): ReadonlySet<TenantShare> {
    return this.#active;
  }

  /** The sum of the active tenants' weights. */
  get activeWeight(): number {
    let sum = 0;
    for (const { weight } of this.#active) sum += weight;
    return sum;
  }

  /** Tenants that are kept. */
  get numTenants(): number {
    return this.#shares.size;
  }

  /** Tenants with waiting sequences. */
  get numQueuedTenants(): number {
    return this.#queued.size;
  }

  /** The tenant that is next among those with waiting sequences. */
  get next(): TenantShare | undefined {
    return this.#queued.peek();
  }

  *[Symbol.iterator](): IterableIterator<Sequence> {
    for (const share of this.#queued) yield* share.waiting;
  }

  of(sequence: Sequence): TenantShare {
    const share = this.#shares.get(accountOf(sequence).tenant);
    if (share === undefined)
      throw new OctavoError("internal_error", "fair policy: a sequence of a tenant that has left");
    return share;
  }

  /** A sequence comes to the scheduler. */
  enter(sequence: Sequence): void {
    const { tenant, weight = 1 } = accountOf(sequence);
    let share = this.#shares.get(tenant);
    if (share === undefined) {
      share = new TenantShare(tenant);
      this.#shares.set(tenant, share);
    }
    if (share.waiting.size === 0) this.#lift(share);
    share.weight = weight;
    share.numSequences += 1;
    this.#active.add(share);
  }

  /** A sequence has left the scheduler for good. */
  leave(sequence: Sequence): void {
    const share = this.of(sequence);
    share.numSequences -= 1;
    if (share.numSequences > 0) return;
    this.#active.delete(share);
    if (this.#active.size === 0) this.#floor = Math.max(this.#floor, share.served);
    // Moved to the end: dropped last.
    this.#shares.delete(share.tenant);
    this.#shares.set(share.tenant, share);
    if (this.#shares.size - this.#active.size > maxIdle) this.#forgetIdle();
  }

  add(sequence: Sequence): void {
    const share = this.of(sequence);
    share.waiting.add(sequence);
    this.#numWaiting += 1;
    if (share.waiting.size === 1) this.#queued.add(share);
    else this.#queued.update(share);
  }

  remove(sequence: Sequence): boolean {
    const share = this.#shares.get(accountOf(sequence).tenant);
    if (share === undefined || !share.waiting.remove(sequence)) return false;
    this.#numWaiting -= 1;
    if (share.waiting.size === 0) this.#queued.remove(share);
    else this.#queued.update(share);
    return true;
  }

  /** Charges a tenant for the next `numTokens` tokens of a sequence, except those computed before. */
  charge(sequence: Sequence, numTokens: number): void {
    const end = sequence.numComputed + sequence.numScheduled + numTokens;
    const start = Math.max(sequence.numCharged, 0);
    if (end <= start) return;
    const promptEnd = Math.min(end, sequence.numPromptTokens);
    const promptTokens = Math.max(0, promptEnd - start);
    const outputTokens = end - start - promptTokens;
    const share = this.of(sequence);
    share.served += (promptTokens * promptTokenCost + outputTokens * outputTokenCost) / share.weight;
    sequence.numCharged = end;
    this.#queued.update(share);
  }

  checkIntegrity(): void {
    this.#queued.checkIntegrity("fair policy's tenants");
    let numWaiting = 0;
    for (const share of this.#queued) {
      share.waiting.checkIntegrity(`fair policy's queue of ${share.tenant}`);
      numWaiting += share.waiting.size;
      for (const sequence of share.waiting) {
        if (sequence.status !== "waiting" || this.of(sequence) !== share)
          throw new OctavoError("internal_error", "fair policy: a sequence in a queue it should not be in");
      }
      if (share.waiting.size === 0 || share.numSequences < share.waiting.size)
        throw new OctavoError("internal_error", "fair policy: a tenant's sequences are miscounted");
    }
    if (numWaiting !== this.#numWaiting)
      throw new OctavoError("internal_error", "fair policy: waiting sequences are miscounted");
    if (this.#shares.size - this.#active.size > maxIdle)
      throw new OctavoError("internal_error", "fair policy: too many idle tenants are remembered");
  }

  #lift(share: TenantShare): void {
    let least = Number.POSITIVE_INFINITY;
    for (const other of this.#active) if (other !== share) least = Math.min(least, other.served);
    if (least !== Number.POSITIVE_INFINITY) this.#floor = Math.max(this.#floor, least);
    share.served = Math.max(share.served, this.#floor);
    if (share.numSequences === 0) share.served = Math.min(share.served, this.#floor + maxDebt);
  }

  #forgetIdle(): void {
    for (const [tenant, share] of this.#shares) {
      if (share.numSequences > 0) continue;
      this.#shares.delete(tenant);
      return;
    }
  }
}

/** By lane of the next sequence, then by virtual counter, then by arrival. */
function isAheadOf(a: TenantShare, b: TenantShare): boolean {
  if (a.lane !== b.lane) return a.lane < b.lane;
  if (a.served !== b.served) return a.served < b.served;
  const [nextA, nextB] = [a.waiting.peek(), b.waiting.peek()];
  return nextA !== undefined && nextB !== undefined && arrivedBefore(nextA, nextB);
}
