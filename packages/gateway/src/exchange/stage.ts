import type { IncomingHttpHeaders } from "node:http";
import type { JsonFields } from "@octavo/protocol";
import type { z } from "zod";
import type { Exchange, GatewayCaller, ModelPrice, Operation, PlannedAttempt } from "./exchange.js";
import type { SharedStore } from "../store/shared-store.js";
import type { LedgerUsage } from "./ledger-entry.js";
import type { MaybePromise } from "./maybe-promise.js";

/**
 * One concern of the pipeline: keys, limits, budgets, guardrails, cache, rollouts, cascade. Stages run in the order of
 * `stages.ts`; an error thrown in one (an `OctavoError`) ends the exchange with that error.
 */
export interface Stage {
  /**
   * Runs before routing. May change `exchange.caller`, `exchange.body` and the ledger entry, or throw. What it returns takes
   * part in the rest of this exchange; a stage that returns nothing is done with it.
   */
  onRequest(exchange: Exchange): MaybePromise<StageHooks | undefined>;
  /** Who sends these headers, where an endpoint of the gateway's own asks. Throws `unauthorized`. */
  identify?(headers: IncomingHttpHeaders): MaybePromise<GatewayCaller>;
  /** Endpoints of the admin port, below `/admin/`. */
  readonly adminRoutes?: readonly AdminRoute[];
  /** Called when the gateway stops or its configuration is replaced; open exchanges have settled by then. */
  close?(): MaybePromise<void>;
}

/** What a stage does later in one exchange. */
export interface StageHooks {
  /** Answers without a target, such as from a cache; the stages after it are not asked. */
  readonly answer?: LocalAnswer;
  /** Replaces what routing planned; an empty list ends the exchange with `no_target`. */
  readonly onRoute?: (planned: readonly PlannedAttempt[]) => readonly PlannedAttempt[];
  /** Asked before every attempt after the first: a retry, a fallback, a hedge, an escalation. False where none may be made. */
  readonly onExtraAttempt?: () => MaybePromise<boolean>;
  /** Reads and may hold back or replace the answer's text before it leaves. */
  readonly filterText?: TextFilter;
  /**
   * Judges the whole answer of an attempt before any of it leaves, so a stream arrives at its end. Undefined accepts it; a
   * reason rejects it, and the next planned attempt is made. When none is left, the last answer is delivered.
   */
  readonly judgeAnswer?: (answer: WholeAnswer) => MaybePromise<string | undefined>;
  /** Whether `settle` wants the answer; collecting one costs time and memory. */
  readonly collectsAnswer?: boolean;
  /**
   * Runs once when the exchange is over, however it ended and whatever stage ended it: the ledger entry is complete.
   * `answer` is what the client got, where it got all of it and `collectsAnswer` asked for it.
   */
  readonly settle?: (answer: WholeAnswer | undefined) => MaybePromise<void>;
}

/** An answer made by the gateway. It is sent as a stream if the client asked for one. */
export interface LocalAnswer {
  readonly status: number;
  /** In OpenAI's shape of the operation, not streamed. */
  readonly json: JsonFields;
}

/** An answer of a target, in OpenAI's shape whatever the target speaks, put together if it was streamed. */
export interface WholeAnswer {
  readonly status: number;
  readonly json: JsonFields;
  readonly target: string;
  readonly model: string;
  readonly usage: LedgerUsage | undefined;
  readonly costUsd: number;
  readonly firstByteMs: number;
  readonly durationMs: number;
}

/** Which text of an answer: a choice's content, its reasoning, or the arguments of one of its tool calls. */
export interface TextChannel {
  readonly choice: number;
  readonly kind: "content" | "reasoning" | "arguments";
  /** Index of the tool call; arguments only. */
  readonly index: number;
}

/**
 * Follows the text of an answer in order, channel by channel. An error that it throws ends the answer: text that it held
 * back never leaves. Concatenated, what it returns is what the client reads.
 */
export interface TextFilter {
  /** Takes the next piece, returns what may leave now. */
  push(channel: TextChannel, text: string): MaybePromise<string>;
  /** The channel's text is complete: returns what was held back. */
  end(channel: TextChannel): MaybePromise<string>;
}

/** A call that the gateway makes for itself, such as a shadow's or a judge's. It takes part in no stage. */
export interface SideCall {
  readonly target: string;
  readonly model: string;
  readonly operation: Operation;
  /** In OpenAI's shape; `model` and `stream` are set by the gateway. */
  readonly body: JsonFields;
  readonly signal: AbortSignal | undefined;
}

/** What stages are given of the gateway. */
export interface StageContext {
  /** Milliseconds since 1970; never goes back. */
  readonly nowMs: () => number;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Throws the target's error where it does not answer with success. */
  readonly call: (call: SideCall) => Promise<WholeAnswer>;
  readonly priceOf: (target: string, model: string) => ModelPrice | undefined;
  /** What this instance shares with others. */
  readonly store: SharedStore;
  /** One line of the gateway's log, as JSON. Never pass prompts, answers or keys. */
  readonly log: (level: "info" | "warn" | "error", message: string, fields?: JsonFields) => void;
}

/** A stage as a row of `stages.ts`: its section of gateway.yaml and how it is made. */
export interface StageDefinition<Schema extends z.ZodType = z.ZodType> {
  /** Its key in gateway.yaml; without that key the stage does not run. */
  readonly name: string;
  readonly schema: Schema;
  create(config: z.output<Schema>, context: StageContext): MaybePromise<Stage>;
}

export interface AdminRoute {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below `/admin/`; a segment `*` takes any one value, handed over in `values`. */
  readonly path: string;
  handle(request: AdminRequest): MaybePromise<JsonFields>;
}

export interface AdminRequest {
  readonly values: readonly string[];
  readonly query: URLSearchParams;
  /** Undefined without a body. */
  readonly body: unknown;
}
