import type { IncomingHttpHeaders } from "node:http";
import { OctavoError } from "@octavo/protocol";
import { Pool } from "undici";
import type { GatewayTargetConfig } from "../config/schema.js";
import type { ModelPrice } from "../exchange/exchange.js";
import { OpenList, type ListMember } from "../exchange/open-list.js";
import type { LedgerUsage } from "../exchange/ledger-entry.js";
import { families } from "../families/families.js";
import type { WireFamily, WireRequest } from "../families/family.js";
import { Breaker } from "./breaker.js";
import { LatencyWindow } from "./latency-window.js";
import { type ProviderRow, providers } from "./providers.js";
import { parseAwsKey, signAws } from "./sigv4.js";
import { WorkMeter } from "./work-meter.js";

/** A call of a target that is under way. */
export interface DrainableCall extends ListMember {
  readonly tokens: number;
  /** Whether nothing of its answer has arrived, and being asked again elsewhere costs its place alone. */
  canMove(): boolean;
  /** Fails it as a call whose target has gone: another target is asked. */
  moveOn(): void;
}

/** A server that the gateway sends calls to: its connections, its health, and what it has shown of its speed. */
export class LiveTarget {
  readonly name: string;
  readonly config: GatewayTargetConfig;
  readonly row: ProviderRow;
  readonly family: WireFamily;
  readonly pool: Pool;
  readonly breaker: Breaker;
  /** To the first byte of an answer's content. */
  readonly firstByte = new LatencyWindow();
  readonly work = new WorkMeter();
  outstanding = 0;
  /** Tokens that calls under way may still have to compute: prompts less what is cached, and as much output as they may ask for. */
  outstandingTokens = 0;
  /** What the last probe said; undefined before the first, and where there are none. */
  isProbeOk: boolean | undefined;
  /** Until when the target asked to be left alone, as it does with 429. */
  restUntilMs = 0;
  readonly #origin: string;
  readonly #pathPrefix: string;
  readonly #headers: Readonly<Record<string, string>>;
  /** By what the family adds: most families add the same object to every call. */
  readonly #headerLists = new WeakMap<object, string[]>();
  readonly #prices = new Map<string, ModelPrice>();
  readonly #calls = new OpenList<DrainableCall>();
  #isLeaving = false;
  #onEmpty: (() => void) | undefined;
  /** A call is over. */
  onRelease: (() => void) | undefined;

  constructor(name: string, config: GatewayTargetConfig) {
    this.name = name;
    this.config = config;
    this.row = providers[config.provider];
    this.family = families[this.row.family];
    const url = new URL(config.url ?? this.row.url ?? "");
    this.#origin = url.origin;
    this.#pathPrefix = url.pathname === "/" ? "" : url.pathname.replace(/\/$/, "");
    this.#headers = { ...config.headers, ...this.#keyHeaders() };
    for (const [model, { input = 0, cached_input = input, output = 0 }] of Object.entries(config.models))
      if (input + output > 0) this.#prices.set(model, { input, cachedInput: cached_input, output });
    this.pool = new Pool(url.origin, {
      connections: config.connections,
      pipelining: 1,
      // the attempt keeps its own times, to the first byte and between bytes
      headersTimeout: 0,
      bodyTimeout: 0,
      connectTimeout: 5000,
      keepAliveTimeout: 30_000,
    });
    const { failures, error_rate, min_calls, window, open_for } = config.breaker;
    this.breaker = new Breaker({
      failures,
      errorRate: error_rate,
      minCalls: min_calls,
      windowMs: window,
      openForMs: open_for,
    });
  }

  /** What comes before `/chat/completions`; an address that ends in the API's version has it already. */
  get basePath(): string {
    const { basePath } = this.row;
    return this.#pathPrefix.endsWith(basePath) ? this.#pathPrefix : this.#pathPrefix + basePath;
  }

  get tenants(): ProviderRow["tenants"] {
    return this.row.tenants;
  }

  get isShared(): boolean {
    return this.config.shared_by_tenants;
  }

  get origin(): string {
    return this.#origin;
  }

  /** The path of a probe; undefined where outcomes of calls alone decide. */
  get probePath(): string | undefined {
    const { path } = this.config.probe;
    if (path === "off") return undefined;
    const found = path ?? this.row.probePath;
    return found === undefined ? undefined : this.#pathPrefix.replace(/\/v1$/, "") + found;
  }

  /** Whether a call may go there now. */
  admits(nowMs: number, share = 1): boolean {
    const { max_outstanding } = this.config;
    return (
      !this.#isLeaving &&
      this.isProbeOk !== false &&
      nowMs >= this.restUntilMs &&
      this.breaker.admits(nowMs) &&
      (max_outstanding === undefined || this.outstanding < Math.max(1, Math.floor(max_outstanding * share)))
    );
  }

  /** The target's own name of a model that clients know as `model`; undefined where it does not serve it. */
  modelName(model: string): string | undefined {
    const row = Object.hasOwn(this.config.models, model) ? this.config.models[model] : undefined;
    return row === undefined ? undefined : (row.name ?? model);
  }

  priceOf(model: string): ModelPrice | undefined {
    return this.#prices.get(model);
  }

  /** By which targets are compared: as configured, or a second's price at the measured speed. Undefined where neither is known. */
  expectedPriceOf(model: string): ModelPrice | undefined {
    const { gpu_second: perSecond } = this.config.models[model] ?? {};
    const { msPerToken } = this.work;
    if (perSecond === undefined) return this.priceOf(model);
    // dollars per million tokens
    const price = perSecond * (msPerToken ?? 0) * 1000;
    return { input: price, cachedInput: 0, output: price };
  }

  /** Names and values in turn, as undici takes them at the least cost. */
  headersFor(wire: WireRequest, nowMs: number): string[] {
    if (this.row.auth !== "sigv4") {
      let known = this.#headerLists.get(wire.headers);
      if (known === undefined)
        this.#headerLists.set(
          wire.headers,
          (known = Object.entries({ ...wire.headers, ...this.#headers }).flat()),
        );
      return known.slice();
    }
    const key = parseAwsKey(this.config.api_key ?? "");
    if (key === undefined)
      throw new OctavoError("target_failed", `the target ${this.name} has no key of the form ACCESS:SECRET`);
    const signed = signAws(key, {
      host: new URL(this.#origin).host,
      path: wire.path,
      body: wire.body,
      region: this.config.region ?? "us-east-1",
      service: "bedrock",
      nowMs,
    });
    return Object.entries({ ...wire.headers, ...this.#headers, ...signed }).flat();
  }

  /** As the target asked in `Retry-After`, within bounds; one second where it did not say. */
  rest(headers: IncomingHttpHeaders, nowMs: number): number {
    const asked = Number(headers["retry-after"]);
    const seconds = Number.isFinite(asked) && asked >= 0 ? Math.min(asked, 60) : 1;
    this.restUntilMs = Math.max(this.restUntilMs, nowMs + seconds * 1000);
    return seconds;
  }

  /** A call begins. */
  begin(call: DrainableCall): void {
    this.outstanding += 1;
    this.outstandingTokens += call.tokens;
    this.#calls.add(call);
  }

  /** It is over, however it ended. */
  end(call: DrainableCall): void {
    if (!this.#calls.remove(call)) return;
    this.outstanding -= 1;
    this.outstandingTokens -= call.tokens;
    this.onRelease?.();
    if (this.#calls.all.length === 0) this.#onEmpty?.();
  }

  /** Takes no more calls; resolves when none is left. Streams that have not begun, or with `cut` all calls, fail as if it had died. */
  async leave(how: "drain" | "cut"): Promise<void> {
    this.#isLeaving = true;
    // calls that move on leave the list
    const calls = this.#calls.all.slice();
    for (const call of calls) if (how === "cut" || call.canMove()) call.moveOn();
    if (this.#calls.all.length === 0) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  async close(): Promise<void> {
    await this.pool.destroy();
  }

  #keyHeaders(): Readonly<Record<string, string>> {
    const { api_key } = this.config;
    if (api_key === undefined || this.row.auth === "sigv4") return {};
    return this.row.auth === "bearer" ? { authorization: `Bearer ${api_key}` } : { [this.row.auth]: api_key };
  }
}

/** Dollars. */
export function dollarsOf(price: ModelPrice | undefined, usage: LedgerUsage): number {
  if (price === undefined) return 0;
  const { promptTokens, cachedTokens, completionTokens } = usage;
  const uncached = Math.max(0, promptTokens - cachedTokens);
  return (uncached * price.input + cachedTokens * price.cachedInput + completionTokens * price.output) / 1e6;
}
