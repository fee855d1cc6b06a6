import type { IncomingHttpHeaders } from "node:http";
import type { FinishedRequest } from "@octavo/engine";
import type { OutputTimes } from "@octavo/tracing";
import { featureOf, tagOf, tenantOf } from "../http/caller.js";

/** What one exchange is charged: filled while it is answered and, where its client left early, for a little longer. */
export class RequestAccount {
  /** As the header says it, until it is known whether that counts. */
  tenant: string | undefined;
  #feature: string | undefined;
  /** As the request names it. */
  #model: string | undefined;
  readonly #byEngineId: Map<string, RequestAccount>;
  #numAdopted = 0;
  #numSettled = 0;
  computeMs = 0;
  inputTokens = 0;
  cachedTokens = 0;
  outputTokens = 0;
  /** Of its requests, the one that took longest. */
  slowest: FinishedRequest | undefined;
  /** Of each of its requests that gave tokens. */
  readonly outputs: OutputTimes[] = [];
  /** The engine gave one of its requests up. */
  wasAborted = false;
  /** Called when nothing more will be computed for it. */
  onSettled: (() => void) | undefined;

  constructor(headers: IncomingHttpHeaders, byEngineId: Map<string, RequestAccount>) {
    this.tenant = tenantOf(headers);
    this.#feature = featureOf(headers);
    this.#byEngineId = byEngineId;
  }

  get feature(): string | undefined {
    return this.#feature;
  }

  get model(): string | undefined {
    return this.#model;
  }

  /** Whether it made the engine work. */
  get hasWork(): boolean {
    return this.#numAdopted > 0;
  }

  get isSettled(): boolean {
    return this.#numSettled === this.#numAdopted;
  }

  /** Takes what a body says of itself; a header's feature wins over `metadata.feature`. */
  describe(body: { readonly model?: unknown; readonly metadata?: unknown }): void {
    if (typeof body.model === "string") this.#model = body.model;
    const { metadata } = body;
    if (typeof metadata === "object" && metadata !== null && "feature" in metadata)
      this.#feature ??= tagOf(metadata.feature);
  }

  /** A request of the engine that is made for this one. */
  adopt(engineRequestId: string): void {
    this.#numAdopted += 1;
    this.#byEngineId.set(engineRequestId, this);
  }

  /** The engine refused it. */
  disown(engineRequestId: string): void {
    if (!this.#byEngineId.delete(engineRequestId)) return;
    this.#numAdopted -= 1;
    if (this.isSettled) this.onSettled?.();
  }

  finished(request: FinishedRequest): void {
    const { usage, reasons, record, maxSequenceTokens = usage.completionTokens } = request;
    if (this.slowest === undefined || record.e2eMs > this.slowest.record.e2eMs) this.slowest = request;
    this.inputTokens += usage.promptTokens;
    this.cachedTokens += usage.cachedTokens;
    this.outputTokens += usage.completionTokens;
    if (reasons.includes("abort")) this.wasAborted = true;
    if (record.timeToFirstTokenMs === undefined || maxSequenceTokens === 0) return;
    this.outputs.push({
      timeToFirstTokenMs: record.timeToFirstTokenMs,
      timePerOutputTokenMs: maxSequenceTokens === 1 ? undefined : record.decodeMs / (maxSequenceTokens - 1),
    });
  }

  settled(engineRequestId: string, computeMs: number): void {
    this.#byEngineId.delete(engineRequestId);
    this.computeMs += computeMs;
    this.#numSettled += 1;
    if (this.isSettled) this.onSettled?.();
  }
}

/** The signal of an exchange names its account, as it names its trace. */
const accounts = new WeakMap<AbortSignal, RequestAccount>();

export function bindAccount(signal: AbortSignal, account: RequestAccount | undefined): void {
  if (account !== undefined) accounts.set(signal, account);
}

export function accountOf(signal: AbortSignal): RequestAccount | undefined {
  return accounts.get(signal);
}
