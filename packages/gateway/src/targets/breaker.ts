export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failures: number;
  /** Share of failures in `windowMs` that opens it, once `minCalls` calls ended in it. */
  readonly errorRate: number;
  readonly minCalls: number;
  readonly windowMs: number;
  /** How long it stays open before one call may probe the target. */
  readonly openForMs: number;
}

export type BreakerState = "closed" | "open" | "half-open";

/** Slices of the window: its error rate forgets in steps of a tenth. */
const numSlices = 10;

/**
 * A circuit breaker of one target: closed, open after failures, then half open for exactly one call, whose end closes or
 * reopens it. The time is an argument everywhere, so that it runs in simulations as it runs in the gateway.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  #openedAtMs: number | undefined;
  #isProbing = false;
  #failuresInARow = 0;
  readonly #calls = new Float64Array(numSlices);
  readonly #failed = new Float64Array(numSlices);
  #slice = 0;
  /** Told when it opens by a failure, and when its probe closes it (undefined). */
  onChange: ((openedAtMs: number | undefined) => void) | undefined;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  get openForMs(): number {
    return this.#options.openForMs;
  }

  /** As another instance found the target: in trouble as of this moment, or well again. Nobody is told of it. */
  follow(openedAtMs: number | undefined): void {
    if (this.#isProbing) return;
    if (openedAtMs !== undefined) this.#openedAtMs = openedAtMs;
    else if (this.#openedAtMs !== undefined) this.#close();
  }

  state(nowMs: number): BreakerState {
    if (this.#openedAtMs === undefined) return "closed";
    return this.#isProbing || nowMs - this.#openedAtMs >= this.#options.openForMs ? "half-open" : "open";
  }

  /** Whether a call could begin now. */
  admits(nowMs: number): boolean {
    return this.#openedAtMs === undefined || (!this.#isProbing && this.state(nowMs) === "half-open");
  }

  /** A call begins: in the half-open state it is the probe, and others wait for its end. False where it must not begin. */
  begin(nowMs: number): boolean {
    if (!this.admits(nowMs)) return false;
    if (this.#openedAtMs !== undefined) this.#isProbing = true;
    return true;
  }

  succeed(nowMs: number): void {
    this.#count(nowMs, 0);
    this.#failuresInARow = 0;
    if (!this.#isProbing) return;
    this.#close();
    this.onChange?.(undefined);
  }

  /** Returns true where this failure opened it. */
  fail(nowMs: number): boolean {
    this.#count(nowMs, 1);
    this.#failuresInARow += 1;
    if (this.#isProbing || (this.#openedAtMs === undefined && this.#isTooMuch())) {
      this.#isProbing = false;
      this.#openedAtMs = nowMs;
      this.onChange?.(nowMs);
      return true;
    }
    return false;
  }

  /** A call ended without saying anything of the target: its client left, or another attempt won. */
  abandon(): void {
    this.#isProbing = false;
  }

  #close(): void {
    this.#openedAtMs = undefined;
    this.#isProbing = false;
    this.#failuresInARow = 0;
    this.#calls.fill(0);
    this.#failed.fill(0);
  }

  #isTooMuch(): boolean {
    const { failures, errorRate, minCalls } = this.#options;
    if (this.#failuresInARow >= failures) return true;
    const calls = this.#calls.reduce((total, count) => total + count, 0);
    return calls >= minCalls && this.#failed.reduce((total, count) => total + count, 0) / calls >= errorRate;
  }

  #count(nowMs: number, failed: number): void {
    const slice = Math.floor((nowMs / this.#options.windowMs) * numSlices);
    const stale = Math.min(numSlices, slice - this.#slice);
    for (let step = 1; step <= stale; step += 1) {
      this.#calls[(this.#slice + step) % numSlices] = 0;
      this.#failed[(this.#slice + step) % numSlices] = 0;
    }
    if (stale >= numSlices) {
      this.#calls.fill(0);
      this.#failed.fill(0);
    }
    this.#slice = Math.max(this.#slice, slice);
    const at = this.#slice % numSlices;
    this.#calls[at] = (this.#calls[at] ?? 0) + 1;
    this.#failed[at] = (this.#failed[at] ?? 0) + failed;
  }
}
