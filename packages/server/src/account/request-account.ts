import type { IncomingHttpHeaders } from "node:http";
import { type Account, defaultTenant, type EngineObserver, type FinishedRequest } from "@octavo/engine";
import {
  type CapturedContent,
  type LlmRequestFacts,
  type OutputTimes,
  requestFacts,
  type TraceContext,
} from "@octavo/tracing";
import { tagOf } from "../http/caller.js";
import type { TenantResolver } from "../tenants/tenant-resolver.js";
import type { CheckedKey, OwnerId } from "../tenants/ownership.js";
import { ContentCapture, type ContentPolicy } from "./content-capture.js";
import { slowestOf } from "./serving-facts.js";

/** A sampled trace that a request belongs to. */
export interface RequestTrace {
  readonly context: TraceContext;
  readonly parentSpanId: string | undefined;
  /** Undefined if its spans have no content. */
  readonly content?: ContentPolicy | undefined;
}

/**
 * The evidence of one HTTP request: its tenant, what its span says, and what the engine computed for it. It travels in the
 * request's context; each engine request made for it carries it as `owner`, and `accountObserver` brings the results back.
 */
export class RequestAccount {
  /** Undefined when tracing is off or the request is not sampled. */
  readonly trace: RequestTrace | undefined;
  /** A valid API key that came with it. */
  readonly key: CheckedKey | undefined;
  /** The `user` field of the body, once read. */
  user: string | undefined;
  /** The model as the body names it. */
  model: string | undefined;
  /** Request fields for the span; only of a sampled request. */
  facts: LlmRequestFacts = {};
  spanUserId: string | undefined;
  /** The id in the answer's body. */
  responseId: string | undefined;
  /** Tokens of its prompts as far as they were counted: of one that cannot fit, at least as many. */
  countedTokens = 0;
  /** The engine works on after the answer, as for background responses: the span does not wait for it. */
  outlivesAnswer = false;
  /** Engine requests made for this one that have finished. */
  readonly finished: FinishedRequest[] = [];
  /** Share of the backend's time, in ms. */
  computeMs = 0;
  readonly #headers: IncomingHttpHeaders;
  readonly #tenants: TenantResolver;
  #content: ContentCapture | undefined;
  #feature: string | undefined;
  #numQueued = 0;
  #numSettled = 0;
  #settledCallbacks: (() => void)[] = [];

  constructor(
    headers: IncomingHttpHeaders,
    tenants: TenantResolver,
    { key, trace }: { readonly key?: CheckedKey | undefined; readonly trace?: RequestTrace | undefined } = {},
  ) {
    this.key = key;
    this.#headers = headers;
    this.#tenants = tenants;
    this.#feature = tagOf(headers["x-octavo-feature"]);
    this.trace = trace;
  }

  /** Tenant, lane and shares, from the headers, the key and the body as far as they are known. */
  get charged(): Account {
    return this.#tenants.accountOf({ headers: this.#headers, key: this.key, user: this.user });
  }

  /**
   * Whose the things are that it stores or asks for. The body's `user` has no part in it: requests that fetch and cancel have no
   * body.
   */
  get ownerId(): OwnerId {
    return this.#tenants.ownerOf({ headers: this.#headers, key: this.key });
  }

  /** Undefined for the default tenant. */
  get tenant(): string | undefined {
    const { tenant } = this.charged;
    return tenant === defaultTenant ? undefined : tenant;
  }

  /** Collects content for the span; undefined if none is kept of this tenant or this trace. */
  get content(): ContentCapture | undefined {
    const tenants = this.trace?.content?.tenants;
    if (tenants === undefined) return undefined;
    if (tenants.length > 0 && !tenants.includes(this.charged.tenant)) return undefined;
    this.#content ??= new ContentCapture();
    return this.#content;
  }

  get capturedContent(): CapturedContent | undefined {
    const policy = this.trace?.content;
    return policy === undefined ? undefined : this.#content?.captured(policy);
  }

  get feature(): string | undefined {
    return this.#feature;
  }

  /** Reads facts from a body, never its content. The header's feature wins over `metadata.feature`. */
  describe(body: object): void {
    const fields: Readonly<Record<string, unknown>> = { ...body };
    const { model, metadata, user } = fields;
    if (typeof model === "string") this.model = model;
    if (typeof metadata === "object" && metadata !== null && "feature" in metadata)
      this.#feature ??= tagOf(metadata.feature);
    if (this.trace === undefined) return;
    this.facts = requestFacts("encoding_format" in fields ? "embeddings" : "chat", fields);
    if (typeof user === "string") this.spanUserId = user.slice(0, 128);
  }

  /** An engine request with this owner is being queued. */
  queued(): void {
    this.#numQueued += 1;
  }

  /** The engine refused that request: it will never settle. */
  refused(): void {
    this.#numQueued -= 1;
    this.#checkSettled();
  }

  settled(computeMs: number): void {
    this.computeMs += computeMs;
    this.#numSettled += 1;
    this.#checkSettled();
  }

  /** Calls back once the engine computes nothing more for this request, at once if it already does not. */
  whenSettled(callback: () => void): void {
    this.#settledCallbacks.push(callback);
    this.#checkSettled();
  }

  /** Whether the engine was given work. */
  get hasWork(): boolean {
    return this.#numQueued > 0;
  }

  /** The engine aborted one of its requests. */
  get wasAborted(): boolean {
    return this.finished.some(({ reasons }) => reasons.includes("abort"));
  }

  /** The finished engine request that took longest. */
  get slowest(): FinishedRequest | undefined {
    return slowestOf(this.finished);
  }

  /** Times of each engine request that gave tokens. */
  get outputs(): readonly OutputTimes[] {
    return this.finished.flatMap(({ record, usage, maxSequenceTokens = usage.completionTokens }) => {
      const { timeToFirstTokenMs, decodeMs } = record;
      if (timeToFirstTokenMs === undefined || maxSequenceTokens === 0) return [];
      const timePerOutputTokenMs = maxSequenceTokens === 1 ? undefined : decodeMs / (maxSequenceTokens - 1);
      return [{ timeToFirstTokenMs, timePerOutputTokenMs }];
    });
  }

  #checkSettled(): void {
    if (this.#numSettled !== this.#numQueued) return;
    const callbacks = this.#settledCallbacks;
    this.#settledCallbacks = [];
    for (const callback of callbacks) callback();
  }
}

/** Delivers the engine's results to the accounts that own its requests. */
export const accountObserver: EngineObserver = {
  onFinished: (request) => {
    if (request.owner instanceof RequestAccount) request.owner.finished.push(request);
  },
  onSettled: ({ owner, kernelMs }) => {
    if (owner instanceof RequestAccount) owner.settled(kernelMs);
  },
};
