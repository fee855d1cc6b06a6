import { type AlertReason, alertReasons, type ReasonShare } from "./alert.js";
import { RollingSums } from "./rolling-sums.js";

const indexOf: Readonly<Record<AlertReason, number>> = Object.fromEntries(
  alertReasons.map((reason, index) => [reason, index]),
) as Record<AlertReason, number>;

/** Reasons for slowness in the latest time slices, weighted by cost. */
export class ReasonTally {
  readonly #sums: RollingSums;
  /** The costliest request of the latest slices. */
  #worst: { readonly requestId: string; readonly weight: number } | undefined;
  #worstAge = 0;
  readonly #numSlices: number;

  constructor(numSlices: number) {
    this.#sums = new RollingSums(alertReasons.length, numSlices);
    this.#numSlices = numSlices;
  }

  add(reason: AlertReason, weight: number, requestId: string): void {
    this.#sums.add(indexOf[reason], weight);
    if (this.#worst === undefined || weight > this.#worst.weight) {
      this.#worst = { requestId, weight };
      this.#worstAge = 0;
    }
  }

  rotate(): void {
    this.#sums.rotate();
    this.#worstAge += 1;
    if (this.#worstAge >= this.#numSlices) this.#worst = undefined;
  }

  /** Greatest first; empty if nothing was added. */
  shares(): readonly ReasonShare[] {
    const sums = alertReasons.map((reason) => ({ reason, weight: this.#sums.total(indexOf[reason]) }));
    const whole = sums.reduce((sum, { weight }) => sum + weight, 0);
    if (whole <= 0) return [];
    return sums
      .filter(({ weight }) => weight > 0)
      .map(({ reason, weight }) => ({ reason, share: weight / whole }))
      .toSorted((a, b) => b.share - a.share);
  }

  get worstRequestId(): string | undefined {
    return this.#worst?.requestId;
  }
}
