import type { JsonFields } from "@octavo/protocol";
import {
  type Exchange,
  type GatewayCaller,
  anonymousCaller,
  type ModelPrice,
} from "../../exchange/exchange.js";
import { openLedgerEntry } from "../../exchange/ledger-entry.js";
import { RequestBody } from "../../exchange/request-body.js";
import type { SideCall, StageContext, WholeAnswer } from "../../exchange/stage.js";
import { EmbeddedStore } from "../../store/embedded-store.js";
import type { SharedStore } from "../../store/shared-store.js";

export interface SampleExchange {
  readonly caller?: Partial<GatewayCaller>;
  readonly body?: JsonFields;
  readonly headers?: Exchange["headers"];
  readonly operation?: Exchange["operation"];
  readonly price?: ModelPrice;
  readonly promptTokens?: number;
}

let exchanges = 0;

/** A call as the pipeline hands it to stages. */
export function sampleExchange({
  caller,
  body = {},
  headers = {},
  operation = "chat",
  price,
  promptTokens = 10,
}: SampleExchange = {}): Exchange {
  const fields = { model: "m", messages: [{ role: "user", content: "Hello" }], ...body };
  const id = `req-${++exchanges}`;
  const ledger = openLedgerEntry({ requestId: id, traceId: id, arrivedEpochMs: 0, operation });
  ledger.requestedModel = fields.model;
  return {
    id,
    operation,
    headers,
    body: new RequestBody(Buffer.from(JSON.stringify(fields))),
    signal: new AbortController().signal,
    ledger,
    caller: { ...anonymousCaller, ...caller },
    elapsedMs: () => 0,
    promptTokensAtMost: () => promptTokens,
    highestPrice: () => price,
  };
}

export interface SampleContext {
  readonly store?: SharedStore;
  readonly nowMs?: () => number;
  readonly random?: () => number;
  readonly call?: (call: SideCall) => Promise<WholeAnswer>;
  readonly price?: ModelPrice;
}

/** What stages are given, with a log that can be read. */
export function sampleContext(given: SampleContext = {}): StageContext & { readonly logged: string[] } {
  const nowMs = given.nowMs ?? ((): number => Date.now());
  const logged: string[] = [];
  return {
    nowMs,
    logged,
    random: given.random ?? Math.random,
    store: given.store ?? new EmbeddedStore({ nowMs }),
    call: given.call ?? ((): Promise<WholeAnswer> => Promise.reject(new TypeError("no calls here"))),
    priceOf: () => given.price,
    log: (level, message, fields = {}) => {
      logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
    },
  };
}

/** A chat answer with this text. */
export function sampleAnswer(text: string, changes: Partial<WholeAnswer> = {}): WholeAnswer {
  return {
    status: 200,
    json: {
      id: "chatcmpl-1",
      object: "chat.completion",
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
    },
    target: "t",
    model: "m",
    usage: { promptTokens: 10, cachedTokens: 0, completionTokens: 5 },
    costUsd: 0,
    firstByteMs: 10,
    durationMs: 100,
    ...changes,
  };
}
