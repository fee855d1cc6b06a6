import type { IncomingHttpHeaders } from "node:http";
import type { LedgerEntry } from "./ledger-entry.js";
import type { RequestBody } from "./request-body.js";

/** What a call asks for; each has an endpoint under `/v1`. */
export type Operation = "chat" | "completions" | "embeddings" | "responses" | "messages" | "rerank" | "score";

/** Dollars per million tokens. */
export interface ModelPrice {
  readonly input: number;
  /** Input tokens that the target had cached. */
  readonly cachedInput: number;
  readonly output: number;
}

/** The caller. Without a stage that checks keys, everybody is this one. */
export interface GatewayCaller {
  readonly keyId: string | undefined;
  readonly tenant: string | undefined;
  /** Models the caller may name; undefined allows all. */
  readonly models: readonly string[] | undefined;
  /** For limits, budgets and conditional routes. */
  readonly tags: readonly string[];
}

/** Who calls where no keys are configured. */
export const anonymousCaller: GatewayCaller = {
  keyId: undefined,
  tenant: undefined,
  models: undefined,
  tags: [],
};

/** A target that may answer, with the name it knows the model by. */
export interface PlannedAttempt {
  readonly target: string;
  readonly model: string;
}

/** One call from its arrival until it is settled. Stages run over it one after the other. */
export interface Exchange {
  readonly id: string;
  readonly operation: Operation;
  /** As the client sent them; hop-by-hop ones and the client's key are never forwarded. */
  readonly headers: IncomingHttpHeaders;
  readonly body: RequestBody;
  /** Aborts when the client goes away or the exchange runs out of time. */
  readonly signal: AbortSignal;
  readonly ledger: LedgerEntry;
  caller: GatewayCaller;
  /** Milliseconds since the exchange arrived. */
  elapsedMs(): number;
  /** Bytes of the request: an upper bound of its text's tokens, so that a reservation by it is never too small. */
  promptTokensAtMost(): number;
  /** The highest price per token among the targets that may answer; undefined where none has a price. */
  highestPrice(): ModelPrice | undefined;
}
