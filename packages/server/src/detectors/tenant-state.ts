import { EDetector } from "./e-detector.js";
import { ReasonTally } from "./reason-tally.js";
import { LatencySketch, RollingSketch } from "./latency-sketch.js";

/** What a tenant waits for. */
export type WaitKind = "first_token" | "inter_token";
export const waitKinds: readonly WaitKind[] = ["first_token", "inter_token"];

/** An alert resolves after this many comparable slices without an excess: at least five minutes. */
const quietSlices = 20;
/** A slice with fewer waits counts as if it had this many. */
const fullSlice: Readonly<Record<WaitKind, number>> = { first_token: 1, inter_token: 16 };

/** A tenant's waits in the current slice, and how many were too long. */
class WaitCounts {
  count = 0;
  long = 0;
  /** The part of `long` caused by the request itself. */
  own = 0;

  add(isLong: boolean, own: number): void {
    this.count += 1;
    if (isLong) this.long += 1;
    this.own += own;
  }

  clear(): void {
    this.count = 0;
    this.long = 0;
    this.own = 0;
  }
}

/** State of one tenant: counts of a slice, two tests, and latencies of a few minutes. */
export class TenantState {
  readonly waits: Readonly<Record<WaitKind, WaitCounts>> = {
    first_token: new WaitCounts(),
    inter_token: new WaitCounts(),
  };
  /** Its recent waits, a subset of those of all tenants. */
  readonly usual: Readonly<Record<WaitKind, LatencySketch>> = {
    first_token: new LatencySketch(),
    inter_token: new LatencySketch(),
  };
  /** Longer waits are too long; undefined with too few samples. */
  readonly limitMs: Record<WaitKind, number | undefined> = {
    first_token: undefined,
    inter_token: undefined,
  };
  /** The limit comes from the other tenants, with enough samples. */
  readonly isComparable: Record<WaitKind, boolean> = { first_token: false, inter_token: false };
  readonly requests: RollingSketch;
  readonly tally = new ReasonTally(quietSlices);
  readonly #tests: Readonly<Record<WaitKind, EDetector>> = {
    first_token: new EDetector(),
    inter_token: new EDetector(),
  };
  #firing: WaitKind | undefined;
  #quiet = 0;
  silentSlices = 0;

  constructor(windowMinutes: number) {
    this.requests = new RollingSketch(windowMinutes);
  }

  get isFiring(): boolean {
    return this.#firing !== undefined;
  }

  get evidence(): number {
    return Math.max(this.#tests.first_token.value, this.#tests.inter_token.value);
  }

  /** Compares the slice with all tenants', its own included; `allowed` is the tolerated difference in the share of long waits. */
  test(
    kind: WaitKind,
    all: { readonly count: number; readonly long: number },
    allowed: number,
    alarmAt: number,
  ): void {
    const { count, long, own } = this.waits[kind];
    const others = all.count - count;
    if (!this.isComparable[kind] || count === 0 || others === 0) return;
    const share = (long - own) / Math.max(fullSlice[kind], count);
    const excess = share - (all.long - long) / others - allowed;
    this.#tests[kind].observe(excess, 1 + allowed);
    if (excess > 0 && this.#firing === kind) this.#quiet = 0;
    if (this.#firing === undefined && this.#tests[kind].value >= alarmAt) {
      this.#firing = kind;
      this.#quiet = 0;
    }
  }

  endSlice(isMinute: boolean): void {
    const isSilent = waitKinds.every((kind) => this.waits[kind].count === 0);
    const hadFiringKind = this.#firing !== undefined && this.waits[this.#firing].count > 0;
    this.silentSlices = isSilent ? this.silentSlices + 1 : 0;
    for (const kind of waitKinds) this.waits[kind].clear();
    if (isMinute) this.requests.rotate();
    this.tally.rotate();
    if (this.#firing === undefined || !hadFiringKind) return;
    this.#quiet += 1;
    if (this.#quiet < quietSlices) return;
    this.#firing = undefined;
    for (const kind of waitKinds) this.#tests[kind].reset();
  }
}
