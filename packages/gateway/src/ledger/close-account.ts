import type { Exchange } from "../exchange/exchange.js";

/** Adds up what the attempts cost so far: once before an answer says it, and again when all attempts have ended. */
export function closeAccount(exchange: Exchange): void {
  const { ledger } = exchange;
  ledger.durationMs = exchange.elapsedMs();
  let costUsd = 0;
  for (const attempt of ledger.attempts) costUsd += attempt.costUsd;
  ledger.costUsd = costUsd;
  ledger.usage = ledger.winner?.usage;
}
