import { type JsonFields } from "@octavo/protocol";
import { normalQuantile } from "@octavo/statistics";

/** What one call came to. Dollars. */
export interface CascadeOutcome {
  readonly cheapUsd: number;
  readonly strongUsd: number;
  /** What the strong model would have cost alone; undefined where it has no price. */
  readonly strongAloneUsd: number | undefined;
  /** Why the cheap answer was not taken; undefined where it was. */
  readonly reason: string | undefined;
}

export interface CascadePrice {
  /** Cost of machines reserved for the cheap model, used or not; its calls then cost nothing else. */
  readonly machineUsdPerHour: number | undefined;
}

const mostReasons = 100;

/** Whether answering by the cheap model first pays, counted over the calls of this process. */
export class CascadeAccount {
  readonly #startedMs: number;
  readonly #price: CascadePrice;
  #calls = 0;
  #escalated = 0;
  #cheapUsd = 0;
  #strongUsd = 0;
  #priced = 0;
  #savedUsd = 0;
  #savedSquares = 0;
  readonly #reasons = new Map<string, number>();

  constructor(startedMs: number, price: CascadePrice) {
    this.#startedMs = startedMs;
    this.#price = price;
  }

  add({ cheapUsd, strongUsd, strongAloneUsd, reason }: CascadeOutcome): void {
    this.#calls++;
    this.#cheapUsd += cheapUsd;
    this.#strongUsd += strongUsd;
    if (reason !== undefined) {
      this.#escalated++;
      if (this.#reasons.size < mostReasons || this.#reasons.has(reason))
        this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1);
    }
    if (strongAloneUsd === undefined) return;
    const paid = strongUsd + (this.#price.machineUsdPerHour === undefined ? cheapUsd : 0);
    const saved = strongAloneUsd - paid;
    this.#priced++;
    this.#savedUsd += saved;
    this.#savedSquares += saved * saved;
  }

  /** The verdict rests on the 95 % interval of what a call saves, less what the machines cost meanwhile. */
  summary(nowMs: number): JsonFields {
    const hours = Math.max(0, nowMs - this.#startedMs) / 3_600_000;
    const machineUsd = (this.#price.machineUsdPerHour ?? 0) * hours;
    const n = this.#priced;
    const mean = n === 0 ? 0 : this.#savedUsd / n;
    const variance = n < 2 ? 0 : Math.max(0, (this.#savedSquares - n * mean * mean) / (n - 1));
    const half = n < 2 ? Infinity : normalQuantile(0.975) * Math.sqrt(variance * n);
    const low = this.#savedUsd - half - machineUsd;
    const high = this.#savedUsd + half - machineUsd;
    return {
      calls: this.#calls,
      answered_by_cheap: this.#calls - this.#escalated,
      escalated: this.#escalated,
      escalation_rate: this.#calls === 0 ? null : this.#escalated / this.#calls,
      reasons: Object.fromEntries([...this.#reasons].toSorted((a, b) => b[1] - a[1])),
      hours,
      usd: {
        cheap_calls: this.#cheapUsd,
        strong_calls: this.#strongUsd,
        machines: machineUsd,
        saved: this.#savedUsd - machineUsd,
        saved_interval: n < 2 ? null : [low, high],
      },
      verdict: n < 30 ? "too few calls" : low > 0 ? "pays" : high < 0 ? "does not pay" : "undecided",
    };
  }
}
