import { OctavoError } from "@octavo/protocol";
import { type AttemptRecord, beginAttempt } from "../exchange/ledger-entry.js";
import type { Exchange, PlannedAttempt } from "../exchange/exchange.js";
import type { StageContext, WholeAnswer } from "../exchange/stage.js";

export interface RaceResult {
  readonly arm: "primary" | "canary";
  readonly answer: WholeAnswer;
  /** Whether the other arm had failed before; else it was cancelled. */
  readonly loserFailed: boolean;
}

/** Asks both arms and takes the first that answers; the other is cancelled. Undefined where both fail. */
export async function raceArms(
  arms: Readonly<Record<RaceResult["arm"], PlannedAttempt>>,
  exchange: Exchange,
  { call }: StageContext,
): Promise<RaceResult | undefined> {
  const { operation, ledger, signal } = exchange;
  const { fields } = exchange.body;
  const startedMs = exchange.elapsedMs();
  const recordOf = ({ target, model }: PlannedAttempt): AttemptRecord =>
    beginAttempt({ target, model, reason: "first", startedMs, predictedCachedTokens: undefined });
  const records = { primary: recordOf(arms.primary), canary: recordOf(arms.canary) };
  ledger.attempts.push(records.primary, records.canary);
  const ends = { primary: new AbortController(), canary: new AbortController() };
  const failed = new Set<RaceResult["arm"]>();
  const ask = async (arm: RaceResult["arm"]): Promise<{ arm: RaceResult["arm"]; answer: WholeAnswer }> => {
    try {
      const answer = await call({
        ...arms[arm],
        operation,
        body: fields,
        signal: AbortSignal.any([signal, ends[arm].signal]),
      });
      const record = records[arm];
      record.outcome = "ok";
      record.endedMs = exchange.elapsedMs();
      record.firstByteMs = startedMs + answer.firstByteMs;
      record.status = answer.status;
      record.usage = answer.usage;
      record.costUsd = answer.costUsd;
      return { arm, answer };
    } catch (error) {
      failed.add(arm);
      records[arm].outcome = ends[arm].signal.aborted ? "cancelled" : OctavoError.from(error).code;
      records[arm].endedMs = exchange.elapsedMs();
      throw error;
    }
  };
  try {
    const { arm, answer } = await Promise.any([ask("primary"), ask("canary")]);
    const loser = arm === "primary" ? "canary" : "primary";
    const loserFailed = failed.has(loser);
    ends[loser].abort();
    ledger.winner = records[arm];
    ledger.usage = answer.usage;
    return { arm, answer, loserFailed };
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}
