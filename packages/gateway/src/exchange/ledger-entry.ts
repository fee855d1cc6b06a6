import type { ErrorCode } from "@octavo/protocol";

/** Token counts of an answer, as its target reported them. */
export interface LedgerUsage {
  readonly promptTokens: number;
  /** Prompt tokens found in the target's prefix cache. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
}

/** Why an attempt was made. */
export type AttemptReason = "first" | "retry" | "fallback" | "hedge" | "resume" | "escalation";

/** One call of one target on behalf of an exchange. Times in ms since the exchange arrived. */
export interface AttemptRecord {
  readonly target: string;
  /** As it was asked of the target. */
  readonly model: string;
  readonly reason: AttemptReason;
  readonly startedMs: number;
  firstByteMs: number | undefined;
  endedMs: number | undefined;
  /** "pending" until it has ended; "cancelled" where another attempt won or the client left. */
  outcome: "pending" | "ok" | "cancelled" | ErrorCode;
  /** HTTP status of the target; undefined where it did not answer. */
  status: number | undefined;
  usage: LedgerUsage | undefined;
  costUsd: number;
  /** Prompt tokens that the gateway expected the target's prefix cache to have; undefined where it does not predict. */
  predictedCachedTokens: number | undefined;
}

/** The record of an attempt that has just begun. */
export function beginAttempt(
  begun: Pick<AttemptRecord, "target" | "model" | "reason" | "startedMs" | "predictedCachedTokens">,
): AttemptRecord {
  // field by field: a copy by spread has a new hidden class with every field that follows
  return {
    target: begun.target,
    model: begun.model,
    reason: begun.reason,
    startedMs: begun.startedMs,
    predictedCachedTokens: begun.predictedCachedTokens,
    firstByteMs: undefined,
    endedMs: undefined,
    outcome: "pending",
    status: undefined,
    usage: undefined,
    costUsd: 0,
  };
}

export interface GuardrailRecord {
  readonly rule: string;
  readonly direction: "request" | "response";
  /** `failed`: the rule could not be evaluated; it then let the call through or blocked it as configured. */
  readonly action: "flag" | "redact" | "block" | "failed";
  readonly detail: string | undefined;
}

/** A cheap answer that was not good enough, and what asking a better model cost. */
export interface EscalationRecord {
  readonly from: string;
  readonly to: string;
  readonly reason: string;
  readonly cheapCostUsd: number;
  readonly costDeltaUsd: number;
}

/**
 * What happened to one call: the only account that headers, metrics, spans, logs, budgets and rollouts read. Stages write
 * into it as they run; after the exchange has settled it no longer changes.
 */
export interface LedgerEntry {
  readonly requestId: string;
  traceId: string;
  /** Milliseconds since 1970. */
  readonly arrivedEpochMs: number;
  readonly operation: string;
  /** As the client named it; the target's own name is in the attempt. */
  requestedModel: string;
  isStream: boolean;
  /** Tenant that pays and owns the data; undefined while callers have no identity. */
  tenant: string | undefined;
  /** Id of the key, never the key. */
  keyId: string | undefined;
  route: string | undefined;
  strategy: string | undefined;
  readonly attempts: AttemptRecord[];
  /** The attempt whose answer the client got. */
  winner: AttemptRecord | undefined;
  usage: LedgerUsage | undefined;
  /** Cost of all attempts: hedges and failed attempts cost too. */
  costUsd: number;
  cache: "off" | "bypass" | "miss" | "hit" | "semantic-hit";
  readonly guardrails: GuardrailRecord[];
  /** Which arm of which rollout the call was dealt to. */
  cohort: { readonly rollout: string; readonly arm: string } | undefined;
  escalation: EscalationRecord | undefined;
  finishReason: string | undefined;
  /** Status of the answer to the client; 0 while there is none. */
  status: number;
  errorCode: ErrorCode | undefined;
  /** From arrival to the first byte of the answer, and to its end. */
  firstByteMs: number | undefined;
  durationMs: number | undefined;
}

export interface LedgerStart {
  readonly requestId: string;
  readonly traceId: string;
  readonly arrivedEpochMs: number;
  readonly operation: string;
}

export function openLedgerEntry(start: LedgerStart): LedgerEntry {
  return {
    requestId: start.requestId,
    traceId: start.traceId,
    arrivedEpochMs: start.arrivedEpochMs,
    operation: start.operation,
    requestedModel: "",
    isStream: false,
    tenant: undefined,
    keyId: undefined,
    route: undefined,
    strategy: undefined,
    attempts: [],
    winner: undefined,
    usage: undefined,
    costUsd: 0,
    cache: "off",
    guardrails: [],
    cohort: undefined,
    escalation: undefined,
    finishReason: undefined,
    status: 0,
    errorCode: undefined,
    firstByteMs: undefined,
    durationMs: undefined,
  };
}
