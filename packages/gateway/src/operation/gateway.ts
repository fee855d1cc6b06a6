import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { performance } from "node:perf_hooks";
import { isDeepStrictEqual } from "node:util";
import { OctavoError, readBody } from "@octavo/protocol";
import { childContext, parseTraceContext } from "@octavo/tracing";
import type { GatewayConfig } from "../config/schema.js";
import { anonymousCaller, type GatewayCaller, type Operation } from "../exchange/exchange.js";
import { requireUnambiguous } from "../exchange/ambiguous-names.js";
import { LiveExchange } from "../exchange/live-exchange.js";
import { OpenList } from "../exchange/open-list.js";
import { RequestBody } from "../exchange/request-body.js";
import type { StageContext, StageHooks, WholeAnswer } from "../exchange/stage.js";
import { accessLine, AccessLog } from "../ledger/access-log.js";
import { closeAccount } from "../ledger/close-account.js";
import { GatewayMetrics } from "../ledger/gateway-metrics.js";
import { GatewaySpans } from "../ledger/gateway-spans.js";
import type { AnswerWriting } from "../relay/send-whole.js";
import { sendFailure } from "../relay/send-whole.js";
import type { TargetPool } from "../routing/target-pool.js";
import { openStore } from "../store/store-config.js";
import { runCall } from "./run-call.js";
import { GatewayRuntime } from "./runtime.js";
import { makeSideCall } from "./side-call.js";

/** What a gateway runs on beside its configuration. */
export interface GatewayOptions {
  readonly config: GatewayConfig;
  /** Targets that come and go, by the names that routes give them; their owner closes them. */
  readonly pools?: ReadonlyMap<string, TargetPool>;
  /** From 0 to below 1; default Math.random. */
  readonly random?: () => number;
}

/** How exactly total timeouts are kept. */
const sweepMs = 100;
const requestIdPattern = /^[\w.:-]{1,128}$/;

/**
 * Answers calls with the configuration of the moment. HTTP connections are the listener's, so that tests and a cluster's worker
 * can bring their own.
 */
export class Gateway {
  #runtime: GatewayRuntime;
  readonly #log: AccessLog;
  readonly #spans: GatewaySpans;
  readonly #context: StageContext;
  readonly #random: () => number;
  readonly #open = new OpenList<LiveExchange>();
  readonly #retiring = new Set<Promise<void>>();
  readonly #idle = new Set<() => void>();
  readonly #sweep: NodeJS.Timeout;
  readonly #pools: ReadonlyMap<string, TargetPool>;
  readonly metrics: GatewayMetrics;
  #isDraining = false;

  private constructor(
    runtime: GatewayRuntime,
    log: AccessLog,
    spans: GatewaySpans,
    context: StageContext,
    pools: ReadonlyMap<string, TargetPool>,
    bind: (gateway: Gateway) => void,
  ) {
    this.#runtime = runtime;
    this.#log = log;
    this.#spans = spans;
    this.#context = context;
    this.#pools = pools;
    this.#random = context.random;
    this.metrics = new GatewayMetrics(
      () => this.#runtime.router.everyTarget(),
      () => this.#open.all.length,
      context.nowMs,
    );
    bind(this);
    this.#sweep = setInterval(() => this.#endOverdue(), sweepMs).unref();
  }

  /** Throws `invalid_option` for what only shows when it is opened: a log that cannot be written, a folder without a tokenizer. */
  static async open({ config, pools = new Map(), random = Math.random }: GatewayOptions): Promise<Gateway> {
    const log = new AccessLog(config.access_log);
    const store = await openStore(config.store, nowMs);
    let gateway: Gateway | undefined;
    const context: StageContext = {
      nowMs,
      random,
      store,
      call: (call) => makeSideCall(call, gateway?.runtime, nowMs),
      priceOf: (target, model) => gateway?.runtime.router.target(target)?.priceOf(model),
      log: (level, event, fields) => log.add({ time: new Date().toISOString(), level, event, ...fields }),
    };
    const runtime = await GatewayRuntime.open(config, context, undefined, pools).catch(
      async (thrown: unknown) => {
        await store.close();
        throw thrown;
      },
    );
    return new Gateway(runtime, log, new GatewaySpans(config.tracing), context, pools, (made) => {
      gateway = made;
    });
  }

  get runtime(): GatewayRuntime {
    return this.#runtime;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  get numOpen(): number {
    return this.#open.all.length;
  }

  /** From now on calls follow this configuration; those under way end with the one they began with. Throws, and changes nothing. */
  async reload(config: GatewayConfig): Promise<void> {
    const before = this.#runtime;
    if (!isDeepStrictEqual(config.store, before.config.store))
      throw new OctavoError(
        "invalid_option",
        "store: what is counted there cannot move; restart the gateway",
        {
          param: "store",
        },
      );
    try {
      const next = await GatewayRuntime.open(config, this.#context, before, this.#pools);
      this.#runtime = next;
      this.metrics.reloaded("ok");
      const retired = before.retire(next).finally(() => this.#retiring.delete(retired));
      this.#retiring.add(retired);
      this.#context.log("info", "reloaded");
    } catch (thrown) {
      this.metrics.reloaded("refused");
      throw thrown;
    }
  }

  /** Answers one request of an endpoint of `operationPaths`. Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse, operation: Operation): Promise<void> {
    const runtime = this.#runtime;
    const { config } = runtime;
    const parent = parseTraceContext(request.headers.traceparent, request.headers.tracestate);
    const sentId = request.headers["x-request-id"];
    const exchange = new LiveExchange({
      id: typeof sentId === "string" && requestIdPattern.test(sentId) ? sentId : randomUUID(),
      trace: childContext(parent, this.#spans.sampleRatio),
      operation,
      headers: request.headers,
      response,
    });
    const writing: AnswerWriting = {
      prefixes: config.answer_headers.prefixes,
      inLastEvent: config.answer_headers.in_last_event,
      stallMs: config.limits.stall_timeout,
    };
    const hooks: StageHooks[] = [];
    const share = runtime.bodies.share();
    let answer: WholeAnswer | undefined;
    runtime.enter();
    this.#open.add(exchange);
    response.once("close", () => {
      if (!response.writableFinished)
        exchange.abort(new OctavoError("request_cancelled", "the client closed the connection"));
    });
    try {
      if (this.#isDraining)
        throw new OctavoError("shutting_down", "the gateway is shutting down", { retryAfterSeconds: 1 });
      exchange.body = new RequestBody(
        await readBody(request, response, { maxBytes: config.limits.max_body, share }),
      );
      // what is judged must be what the target reads
      if (runtime.stages.length > 0) requireUnambiguous(exchange.body.bytes, exchange.body.fields);
      this.#describe(exchange, runtime);
      answer = await runCall(
        exchange,
        { runtime, writing, nowMs: this.#context.nowMs, random: this.#random },
        hooks,
      );
    } catch (thrown) {
      this.#fail(exchange, writing, exchange.abortReason ?? thrown, request);
    } finally {
      closeAccount(exchange);
      if (hooks.length > 0) await this.#settle(exchange, hooks, answer);
      this.#record(exchange, parent?.spanId);
      share.release();
      runtime.leave();
    }
  }

  /** Who sends these headers; nobody in particular where no stage checks keys. Throws `unauthorized`. */
  async callerOf(headers: IncomingHttpHeaders): Promise<GatewayCaller> {
    for (const { stage } of this.#runtime.stages)
      if (stage.identify !== undefined) return await stage.identify(headers);
    return anonymousCaller;
  }

  /** Waits for calls under way, at most so long; then ends them. */
  async drain(timeoutMs: number): Promise<void> {
    this.#isDraining = true;
    if (this.#open.all.length > 0) {
      await new Promise<void>((resolve) => {
        const finish = (): void => {
          clearTimeout(timer);
          this.#idle.delete(finish);
          resolve();
        };
        const timer = setTimeout(finish, timeoutMs);
        this.#idle.add(finish);
      });
    }
    const reason = new OctavoError("shutting_down", "the gateway is shutting down and ended this call");
    for (const exchange of this.#open.all) exchange.abort(reason);
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep);
    await this.#runtime.retire(undefined);
    await Promise.all(this.#retiring);
    await this.#context.store.close();
    await this.#spans.close();
    await this.#log.close();
  }

  /** One sweep over all calls costs less than a timer for each. */
  #endOverdue(): void {
    const now = performance.now();
    for (const exchange of this.#open.all)
      if (now > exchange.dueMs)
        exchange.abort(
          new OctavoError("deadline_exceeded", "the call took longer than its route's total timeout"),
        );
  }

  /** What the ledger knows before the first stage. */
  #describe(exchange: LiveExchange, runtime: GatewayRuntime): void {
    const { fields } = exchange.body;
    const { model } = fields;
    if (typeof model !== "string" || model === "")
      throw new OctavoError("invalid_request", "model: expected the name of a model", { param: "model" });
    if (fields["stream"] !== undefined && fields["stream"] !== null && typeof fields["stream"] !== "boolean")
      throw new OctavoError("invalid_request", "stream: expected true or false", { param: "stream" });
    exchange.ledger.requestedModel = model.slice(0, 256);
    exchange.ledger.isStream = fields["stream"] === true;
    exchange.router = runtime.router;
  }

  #fail(exchange: LiveExchange, writing: AnswerWriting, thrown: unknown, request: IncomingMessage): void {
    const error = publicError(thrown);
    if (error.code === "internal_error")
      this.#context.log("error", "internal_error", {
        request_id: exchange.id,
        message: String(error.cause instanceof Error ? error.cause.stack : error.cause),
      });
    // what a client goes on sending after its answer is not read
    if (!request.complete) exchange.response.shouldKeepAlive = false;
    sendFailure(exchange, writing, error);
    if (exchange.ledger.status === 0) exchange.ledger.status = error.status;
  }

  async #settle(
    exchange: LiveExchange,
    hooks: readonly StageHooks[],
    answer: WholeAnswer | undefined,
  ): Promise<void> {
    for (const { settle, collectsAnswer } of hooks) {
      if (settle === undefined) continue;
      try {
        const settling = settle(collectsAnswer === true ? answer : undefined);
        if (settling instanceof Promise) await settling;
      } catch (thrown) {
        this.#context.log("error", "settle_failed", {
          request_id: exchange.id,
          message: OctavoError.from(thrown).message,
        });
      }
    }
  }

  /** The exchange is over: nothing changes its account any more. */
  #record(exchange: LiveExchange, parentSpanId: string | undefined): void {
    const { ledger } = exchange;
    this.metrics.record(ledger);
    this.#spans.record(exchange, parentSpanId);
    if (this.#log.isOn) this.#log.add(accessLine(ledger));
    this.#open.remove(exchange);
    if (this.#open.all.length === 0) for (const finish of this.#idle) finish();
  }
}

/** Wall-clock time that never goes back. */
function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** The text of a foreign error may hold addresses or data: it goes to the log alone. */
function publicError(thrown: unknown): OctavoError {
  if (thrown instanceof OctavoError) return thrown;
  return new OctavoError("internal_error", "an internal error occurred; the gateway's log has it", {
    cause: thrown,
  });
}
