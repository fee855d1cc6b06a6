import { OctavoError } from "@octavo/protocol";
import type { Exchange } from "../exchange/exchange.js";
import type { LedgerEntry } from "../exchange/ledger-entry.js";
import { completionTokensAtMost, unboundedCall } from "../limits/completion-tokens.js";
import type { BudgetConfig } from "./budget-config.js";

/** Amounts of budgets are whole: nanodollars, and microseconds of targets' work. */
const perUnit = { dollars: 1e9, gpu_seconds: 1e6 } as const;

export function ceilingOf({ dollars, gpu_seconds: seconds }: BudgetConfig): number {
  return Math.floor(dollars === undefined ? seconds! * perUnit.gpu_seconds : dollars * perUnit.dollars);
}

/** What a call can cost at most. Throws where nothing bounds it, or nothing says what it costs. */
export function worstCase(budget: BudgetConfig, exchange: Exchange): number {
  if (budget.dollars === undefined) return Math.ceil(budget.gpu_seconds_per_call * perUnit.gpu_seconds);
  const price = exchange.highestPrice();
  if (price === undefined) {
    if (budget.unpriced === "free") return 0;
    throw new OctavoError(
      "invalid_request",
      `${budget.name} counts dollars, and ${exchange.ledger.requestedModel} has no price.`,
      { param: "model" },
    );
  }
  const completion = completionTokensAtMost(exchange);
  if (completion === Infinity) throw unboundedCall(budget.name);
  const input = Math.max(price.input, price.cachedInput);
  // dollars per million tokens are microdollars per token
  return Math.ceil((exchange.promptTokensAtMost() * input + completion * price.output) * 1000);
}

/** What a call did cost, rounded up: all of its attempts. */
export function actualCost(budget: BudgetConfig, ledger: LedgerEntry): number {
  if (budget.dollars !== undefined) return Math.ceil(ledger.costUsd * perUnit.dollars - 1e-6);
  let milliseconds = 0;
  for (const { startedMs, endedMs } of ledger.attempts)
    if (endedMs !== undefined) milliseconds += endedMs - startedMs;
  return Math.ceil(milliseconds * 1000);
}

/** Amounts as people read them. */
export function shownAmount(budget: BudgetConfig, amount: number): string {
  return budget.dollars === undefined
    ? `${(amount / perUnit.gpu_seconds).toFixed(1)} GPU seconds`
    : `$${(amount / perUnit.dollars).toFixed(4)}`;
}
