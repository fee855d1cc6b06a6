import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { performance } from "node:perf_hooks";
import { OctavoError } from "@octavo/protocol";
import type { TraceContext } from "@octavo/tracing";
import type { RouteChoice, TargetRouter } from "../routing/router.js";
import { routingFacts, type RoutingFacts } from "../routing/request-facts.js";
import {
  anonymousCaller,
  type Exchange,
  type GatewayCaller,
  type ModelPrice,
  type Operation,
} from "./exchange.js";
import { type LedgerEntry, openLedgerEntry } from "./ledger-entry.js";
import { RequestBody } from "./request-body.js";

export interface ExchangeStart {
  readonly id: string;
  readonly trace: TraceContext;
  readonly operation: Operation;
  readonly headers: IncomingHttpHeaders;
  readonly response: ServerResponse;
}

/** An exchange over HTTP. The route is looked up when somebody first needs it, after stages may have set the caller. */
export class LiveExchange implements Exchange {
  readonly id: string;
  readonly trace: TraceContext;
  readonly operation: Operation;
  readonly headers: IncomingHttpHeaders;
  readonly response: ServerResponse;
  readonly ledger: LedgerEntry;
  caller: GatewayCaller = anonymousCaller;
  /** Set once the body is here, before the first stage. */
  body!: RequestBody;
  /** Router of the configuration that the exchange began with; set with the body. */
  router!: TargetRouter;
  /** On `performance.now()`'s clock; the sweep over exchanges ends it then. */
  dueMs = Number.POSITIVE_INFINITY;
  /** On `performance.now()`'s clock. */
  readonly arrivedMs = performance.now();
  #abort: AbortController | undefined;
  #reason: OctavoError | undefined;
  #choice: RouteChoice | undefined;
  #facts: RoutingFacts | undefined;

  constructor({ id, trace, operation, headers, response }: ExchangeStart) {
    this.id = id;
    this.trace = trace;
    this.operation = operation;
    this.headers = headers;
    this.response = response;
    this.ledger = openLedgerEntry({
      requestId: id,
      traceId: trace.traceId,
      arrivedEpochMs: Date.now(),
      operation,
    });
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#reason !== undefined) this.#abort.abort(this.#reason);
    }
    return this.#abort.signal;
  }

  /** Why the exchange was ended early; undefined while it goes on. */
  get abortReason(): OctavoError | undefined {
    return this.#reason;
  }

  /**
   * What is cancelled at once when the exchange is ended early. Not a closure: V8 makes a function that is assigned to a
   * property in the old generation, where it keeps the whole exchange until the next full collection.
   */
  cancelled: { cancel(): void } | undefined;
  /** Its place in the list of open exchanges. */
  place = -1;

  abort(reason: OctavoError): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#abort?.abort(reason);
    this.cancelled?.cancel();
  }

  elapsedMs(): number {
    return performance.now() - this.arrivedMs;
  }

  get facts(): RoutingFacts {
    this.#facts ??= routingFacts(
      this.operation,
      this.body.fields,
      this.body.bytes.length,
      this.headers,
      this.caller,
    );
    return this.#facts;
  }

  /** The route; throws `model_not_found`. */
  get choice(): RouteChoice {
    this.#choice ??= this.router.choose(this.facts, this.body.fields, this.headers);
    return this.#choice;
  }

  promptTokensAtMost(): number {
    // a byte is at most one token in every byte-level vocabulary; the fields' names pay for the template
    return this.body.bytes.length;
  }

  highestPrice(): ModelPrice | undefined {
    return this.router.highestPrice(this.choice, this.facts);
  }
}
