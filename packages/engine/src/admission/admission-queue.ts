import { OctavoError } from "@octavo/protocol/errors";
import type { RequestBatch } from "../api.js";
import type { Account } from "../scheduler/account.js";
import { DrainRate } from "./drain-rate.js";

/** A request as the queue sees it. */
export interface QueuedRequest {
  readonly account: Account;
  readonly numPromptTokens: number;
}

export interface WaitingRequest extends QueuedRequest {
  readonly timeline: { readonly queuedMs: number };
}

/** 0 means no limit, except for `maxRequests`. */
export interface QueueBounds {
  readonly maxRequests: number;
  readonly maxTokens: number;
  readonly maxRequestsPerTenant: number;
  readonly maxTokensPerTenant: number;
  /** When the queue is full, a tenant with more waiting requests gives way to one with fewer. */
  readonly isShared: boolean;
}

interface TenantQueue<Request> {
  readonly requests: Set<Request>;
  numTokens: number;
  readonly drain: DrainRate;
}

/** Tenants without waiting requests whose completion rate is kept. */
const maxIdleTenants = 1024;

/** Limits what waits for admission, and says in each refusal when to retry. */
export class AdmissionQueue<Request extends WaitingRequest> {
  readonly #bounds: QueueBounds;
  readonly #waiting = new Set<Request>();
  readonly #tenants = new Map<string, TenantQueue<Request>>();
  readonly #drain = new DrainRate();
  #numTokens = 0;
  #latestBatch: RequestBatch | undefined;

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Tenants that are kept. */
  get numTenants(): number {
    return this.#tenants.size;
  }

  /**
   * Checks whether a request may wait; `freeSlots` sequences can start in the next step and do not count. If the queue is full of
   * requests that are less urgent, or of a tenant with more of them, returns the one to displace; otherwise throws `queue_full`.
   * A batch whose first request was accepted is accepted whole.
   */
  check(
    newcomer: QueuedRequest,
    freeSlots: number,
    batch: RequestBatch | undefined,
    nowMs = performance.now(),
  ): Request | undefined {
    if (batch !== undefined && batch === this.#latestBatch) return undefined;
    this.#latestBatch = undefined;
    this.#checkTenant(newcomer, freeSlots, nowMs);
    const displaced = this.#hasRoom(newcomer, freeSlots) ? undefined : this.#displacedBy(newcomer, nowMs);
    this.#latestBatch = batch;
    return displaced;
  }

  enter(request: Request): void {
    this.#waiting.add(request);
    this.#numTokens += request.numPromptTokens;
    const tenant = this.#tenant(request);
    tenant.requests.add(request);
    tenant.numTokens += request.numPromptTokens;
  }

  leave(request: Request): void {
    if (!this.#waiting.delete(request)) return;
    this.#numTokens -= request.numPromptTokens;
    const tenant = this.#tenant(request);
    tenant.requests.delete(request);
    tenant.numTokens -= request.numPromptTokens;
    this.#forgetIdle();
  }

  /** How long the oldest request has been waiting; 0 when none is. */
  oldestWaitingMs(nowMs: number): number {
    const oldest = this.#waiting.values().next().value;
    return oldest === undefined ? 0 : nowMs - oldest.timeline.queuedMs;
  }

  /** Work resumes after an idle time: completion rates from before it no longer apply. */
  noteWork(): void {
    this.#drain.forget();
    for (const tenant of this.#tenants.values()) tenant.drain.forget();
  }

  noteFinished(request: Request, nowMs: number): void {
    this.#drain.note(nowMs);
    this.#tenant(request).drain.note(nowMs);
    this.#forgetIdle();
  }

  /** The error of a request that is displaced by another. */
  displacement(request: Request, nowMs = performance.now()): OctavoError {
    return new OctavoError(
      "queue_full",
      "The queue is full, and this request was displaced by one of a more urgent lane or of a tenant with fewer waiting. Try again later.",
      { retryAfterSeconds: this.#retryAfterSeconds(request, nowMs) },
    );
  }

  #tenant({ account: { tenant } }: QueuedRequest): TenantQueue<Request> {
    let queue = this.#tenants.get(tenant);
    if (queue === undefined) {
      queue = { requests: new Set(), numTokens: 0, drain: new DrainRate() };
      this.#tenants.set(tenant, queue);
    }
    return queue;
  }

  #checkTenant(newcomer: QueuedRequest, freeSlots: number, nowMs: number): void {
    const { account, numPromptTokens } = newcomer;
    const maxRequests = account.maxQueuedRequests ?? this.#bounds.maxRequestsPerTenant;
    const maxTokens = account.maxQueuedTokens ?? this.#bounds.maxTokensPerTenant;
    const queue = this.#tenants.get(account.tenant);
    if (queue === undefined) return;
    const { requests, numTokens } = queue;
    const isFull = maxRequests > 0 && requests.size >= maxRequests + freeSlots;
    const isHeavy = maxTokens > 0 && requests.size > freeSlots && numTokens + numPromptTokens > maxTokens;
    if (!isFull && !isHeavy) return;
    const bound = isFull
      ? `${requests.size} requests of this tenant are waiting`
      : `this tenant's waiting requests have ${numTokens} prompt tokens, with this one ${numTokens + numPromptTokens}`;
    const limit = isFull ? "which is its limit" : `more than its limit of ${maxTokens}`;
    throw new OctavoError("queue_full", `${bound}, ${limit}. Try again later.`, {
      retryAfterSeconds: this.#retryAfterSeconds(newcomer, nowMs),
    });
  }

  #hasRoom({ numPromptTokens }: QueuedRequest, freeSlots: number): boolean {
    const { maxRequests, maxTokens } = this.#bounds;
    if (this.#waiting.size >= maxRequests + freeSlots) return false;
    return (
      maxTokens === 0 || this.#waiting.size <= freeSlots || this.#numTokens + numPromptTokens <= maxTokens
    );
  }

  /** The newest request of the least urgent lane, then of the tenant with most waiting; throws `queue_full` if that is the newcomer. */
  #displacedBy(newcomer: QueuedRequest, nowMs: number): Request {
    const ownLane = newcomer.account.lane ?? 0;
    const ownCount = this.#tenants.get(newcomer.account.tenant)?.requests.size ?? 0;
    let chosen: Request | undefined;
    let chosenLane = ownLane;
    let chosenCount = 0;
    for (const request of this.#waiting) {
      const lane = request.account.lane ?? 0;
      const count = this.#bounds.isShared
        ? (this.#tenants.get(request.account.tenant)?.requests.size ?? 0)
        : 0;
      const mayGo = lane > ownLane || (lane === ownLane && count > ownCount + 1);
      if (!mayGo || lane < chosenLane || (lane === chosenLane && count < chosenCount)) continue;
      chosen = request;
      chosenLane = lane;
      chosenCount = count;
    }
    // Displacing one request may not make enough room for a long prompt.
    if (chosen !== undefined && this.#fitsAfter(chosen, newcomer)) return chosen;
    throw new OctavoError(
      "queue_full",
      `${this.#waiting.size} requests are waiting, which is the limit. Try again later.`,
      { retryAfterSeconds: this.#drain.secondsFor(this.#waiting.size, nowMs) },
    );
  }

  #fitsAfter(displaced: Request, { numPromptTokens }: QueuedRequest): boolean {
    const { maxTokens } = this.#bounds;
    return maxTokens === 0 || this.#numTokens - displaced.numPromptTokens + numPromptTokens <= maxTokens;
  }

  /** Estimated time to drain the tenant's waiting requests, at its own completion rate if known, else at the engine's. */
  #retryAfterSeconds(request: QueuedRequest, nowMs: number): number {
    const queue = this.#tenants.get(request.account.tenant);
    return queue?.drain.isKnown === true
      ? queue.drain.secondsFor(queue.requests.size, nowMs)
      : this.#drain.secondsFor(this.#waiting.size, nowMs);
  }

  #forgetIdle(): void {
    if (this.#tenants.size <= maxIdleTenants + this.#waiting.size) return;
    for (const [tenant, { requests }] of this.#tenants) {
      if (requests.size > 0) continue;
      this.#tenants.delete(tenant);
      return;
    }
  }
}
