import { whenAborted } from "@octavo/protocol/abort";
import { OctavoError } from "@octavo/protocol";
import type { GatewayTargetConfig } from "../config/schema.js";
import { LiveTarget } from "../targets/live-target.js";

export interface TargetPoolOptions {
  readonly name: string;
  /** Calls that may wait while no member takes one; -1 is no limit. */
  readonly maxQueued: number;
}

export interface QueuedCall {
  /** On `performance.now()`'s clock. */
  readonly arrivedMs: number;
  /** That it may have to compute, prompt and output. */
  readonly tokens: number;
  /** False where it was asked for before, and failed or was moved. */
  readonly isFirst: boolean;
}

interface TokenTotals {
  readonly queued: number;
  readonly running: number;
  readonly arrived: number;
  readonly finished: number;
}

interface Waiter {
  readonly arrivedMs: number;
  readonly tokens: number;
  readonly canStart: () => boolean;
  readonly start: () => void;
}

/** A second's worth of memory about how fast calls end, for `Retry-After`. */
const rateHalfLifeMs = 10_000;

/**
 * Targets that come and go while the gateway runs, such as the replicas of a deployment. A call that no member takes now waits
 * here, not at a member, so that it goes to whichever is free first: one that was just started, too. Its owner adds and removes
 * members; reloads of the gateway do not touch them.
 */
export class TargetPool {
  readonly name: string;
  maxQueued: number;
  readonly #members = new Map<string, LiveTarget>();
  /** Members that were removed and still have calls. */
  readonly #leaving = new Set<LiveTarget>();
  /** By arrival. */
  readonly #waiters: Waiter[] = [];
  #arrivedTokens = 0;
  #endsPerMs = 0;
  #lastEndMs = 0;
  #isClosed = false;

  constructor({ name, maxQueued }: TargetPoolOptions) {
    this.name = name;
    this.maxQueued = maxQueued;
  }

  get members(): Iterable<LiveTarget> {
    return this.#members.values();
  }

  /** Those that were removed and still have calls, too. */
  get all(): readonly LiveTarget[] {
    return [...this.#members.values(), ...this.#leaving];
  }

  get numQueued(): number {
    return this.#waiters.length;
  }

  /** Calls at members, those of leaving ones included. */
  get numRunning(): number {
    return this.all.reduce((total, { outstanding }) => total + outstanding, 0);
  }

  /** Tokens that calls may have to compute: those that wait, those at members, those that came and those that are over. */
  get tokens(): TokenTotals {
    const queued = this.#waiters.reduce((total, { tokens }) => total + tokens, 0);
    const running = this.all.reduce((total, { outstandingTokens }) => total + outstandingTokens, 0);
    return {
      queued,
      running,
      arrived: this.#arrivedTokens,
      finished: this.#arrivedTokens - queued - running,
    };
  }

  member(name: string): LiveTarget | undefined {
    return this.#members.get(name);
  }

  /** Takes calls from now on. */
  add(name: string, config: GatewayTargetConfig): LiveTarget {
    const target = new LiveTarget(name, config);
    target.onRelease = () => {
      this.#noteEnd(performance.now());
      this.wake();
    };
    this.#members.set(name, target);
    this.wake();
    return target;
  }

  /**
   * Takes no more calls; resolves when the last one is over. Streams that have not begun move to other members at once, with
   * `cut` all of them do, continued where they can be.
   */
  async remove(name: string, how: "drain" | "cut"): Promise<void> {
    const target = this.#members.get(name);
    if (target === undefined) return;
    this.#members.delete(name);
    this.#leaving.add(target);
    await target.leave(how);
    this.#leaving.delete(target);
    await target.close();
  }

  /**
   * Resolves when `canStart` holds and it is this call's turn; what it says must start a call at once. Throws `overloaded` where
   * too many wait, and the signal's reason when it aborts.
   */
  async turn(
    { arrivedMs, tokens, isFirst }: QueuedCall,
    canStart: () => boolean,
    signal: () => AbortSignal,
  ): Promise<void> {
    if (isFirst) this.#arrivedTokens += tokens;
    if (this.#waiters.length === 0 && canStart()) return;
    const { maxQueued } = this;
    if (this.#isClosed) throw new OctavoError("shutting_down", "the deployment is shutting down");
    if (maxQueued >= 0 && this.#waiters.length >= maxQueued)
      throw new OctavoError("overloaded", `${this.name}: ${maxQueued} requests wait already`, {
        retryAfterSeconds: this.#retryAfterSeconds(),
      });
    const aborted = signal();
    aborted.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        forget();
      };
      const waiter: Waiter = {
        arrivedMs,
        tokens,
        canStart,
        start: () => {
          leave();
          resolve();
        },
      };
      const forget = whenAborted(aborted, () => {
        leave();
        reject(OctavoError.from(aborted.reason));
      });
      // a call that was moved here waits where it would have, had it waited from the beginning
      const at = this.#waiters.findIndex((other) => other.arrivedMs > arrivedMs);
      this.#waiters.splice(at === -1 ? this.#waiters.length : at, 0, waiter);
      // breakers and rests end without an event
      if (this.#waiters.length === 1) this.#watch();
    });
  }

  /** Room may have appeared: the first call that can start does. The next one is looked at after it has started. */
  wake(): void {
    const first = this.#waiters.find(({ canStart }) => canStart());
    if (first === undefined) return;
    first.start();
    setImmediate(() => this.wake());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#members.keys()].map((name) => this.remove(name, "cut")));
  }

  #watch(): void {
    const timer = setInterval(() => {
      if (this.#waiters.length === 0) clearInterval(timer);
      else this.wake();
    }, 100);
    timer.unref();
  }

  #noteEnd(nowMs: number): void {
    const elapsed = nowMs - this.#lastEndMs;
    const kept = 0.5 ** (elapsed / rateHalfLifeMs);
    this.#endsPerMs = this.#endsPerMs * kept + Math.LN2 / rateHalfLifeMs;
    this.#lastEndMs = nowMs;
  }

  #retryAfterSeconds(): number {
    if (this.#endsPerMs === 0) return 1;
    return Math.min(60, Math.max(1, Math.ceil(this.#waiters.length / this.#endsPerMs / 1000)));
  }
}
