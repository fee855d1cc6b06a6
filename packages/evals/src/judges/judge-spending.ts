import { asNumber, asRecord } from "@octavo/protocol";

export interface SpendingLimits {
  /** Requests to the judge, retries and repairs included. */
  readonly maxCalls?: number;
  /** Needs `usdPerMillionTokens`: answers in flight when it is reached are still paid. */
  readonly maxCostUsd?: number;
  readonly usdPerMillionTokens?: { readonly input: number; readonly output: number };
}

/** What a judge's endpoint has been asked, and whether it may be asked more. */
export class JudgeSpending {
  readonly #limits: SpendingLimits;
  #calls = 0;
  #costUsd = 0;

  constructor(limits: SpendingLimits) {
    this.#limits = limits;
  }

  /** Why no further call is allowed; undefined where one is. */
  refusal(): string | undefined {
    const { maxCalls, maxCostUsd } = this.#limits;
    if (maxCalls !== undefined && this.#calls >= maxCalls)
      return `it was called ${this.#calls} times, as often as is allowed (max_calls)`;
    if (maxCostUsd !== undefined && this.#costUsd >= maxCostUsd)
      return `its answers cost $${this.#costUsd.toFixed(4)} of the $${maxCostUsd} allowed (max_cost_usd)`;
    return undefined;
  }

  called(): void {
    this.#calls++;
  }

  /** @param usage of a chat completion */
  answered(usage: unknown): void {
    const { prompt_tokens: input, completion_tokens: output } = asRecord(usage);
    const prices = this.#limits.usdPerMillionTokens ?? { input: 0, output: 0 };
    this.#costUsd += ((asNumber(input) ?? 0) * prices.input + (asNumber(output) ?? 0) * prices.output) / 1e6;
  }
}
