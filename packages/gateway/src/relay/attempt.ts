import type { IncomingHttpHeaders } from "node:http";
import {
  asObject,
  asObjects,
  asRecord,
  asString,
  type JsonFields,
  OctavoError,
  parseJson,
} from "@octavo/protocol";
import { type AttemptReason, type AttemptRecord, beginAttempt } from "../exchange/ledger-entry.js";
import type { StreamPart, StreamReader, WireCall } from "../families/family.js";
import { dollarsOf, type LiveTarget, type DrainableCall } from "../targets/live-target.js";
import { usageOfAnswer } from "./answer-usage.js";
import { UpstreamCall, type UpstreamListener, type UpstreamTimeouts } from "./upstream-call.js";

export interface AttemptOptions {
  readonly target: LiveTarget;
  /** As clients name it; `call.model` is the target's own name. */
  readonly model: string;
  readonly call: WireCall;
  readonly reason: AttemptReason;
  readonly timeouts: UpstreamTimeouts;
  readonly maxAnswerBytes: number;
  readonly maxEventBytes: number;
  /** Tells the time since the exchange arrived. */
  readonly clock: { elapsedMs(): number };
  readonly nowMs: () => number;
  readonly predictedCachedTokens: number | undefined;
  /** That it may have to compute, prompt and output. */
  readonly expectedTokens: number;
  /** Names and values in turn. */
  readonly addedHeaders: readonly string[];
}

/** The target has begun to answer with success: from now on its answer is the client's, unless another attempt was faster. */
export type AttemptStart =
  | {
      readonly kind: "whole";
      readonly status: number;
      readonly json: JsonFields;
      /** As the target wrote it, where that is OpenAI's shape. */
      readonly text: string | undefined;
    }
  | { readonly kind: "stream"; readonly status: number };

/** Chunks that may wait for the client before the target is told to wait. */
const maxWaitingChunks = 32;

/** One call of one target: knows when the answer has begun, hands over its parts, and keeps the target's account. */
export class TargetAttempt implements DrainableCall, UpstreamListener {
  /** Among the calls of its target. */
  place = -1;
  readonly record: AttemptRecord;
  readonly target: LiveTarget;
  readonly model: string;
  readonly #options: AttemptOptions;
  readonly #upstream: UpstreamCall;
  readonly #startedMs: number;
  #start: AttemptStart | undefined;
  #ready: Promise<AttemptStart> | undefined;
  #resolve: ((start: AttemptStart) => void) | undefined;
  #reject: ((error: OctavoError) => void) | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #chunks: Buffer[] = [];
  #numBytes = 0;
  #reader: StreamReader | undefined;
  #parts: StreamPart[] = [];
  #hasBegun = false;
  #hasFinish = false;
  #isEnded = false;
  #isPaused = false;
  #failure: OctavoError | undefined;
  #wake: (() => void) | undefined;

  constructor(options: AttemptOptions) {
    const { target, call, reason } = options;
    this.#options = options;
    this.target = target;
    this.model = options.model;
    this.#startedMs = options.clock.elapsedMs();
    this.record = beginAttempt({
      target: target.name,
      model: call.model,
      reason,
      startedMs: this.#startedMs,
      predictedCachedTokens: options.predictedCachedTokens,
    });
    const wire = target.family.request(call);
    const sent = target.headersFor(wire, options.nowMs());
    sent.push(...options.addedHeaders);
    target.begin(this);
    target.breaker.begin(options.nowMs());
    target.work.begin(options.nowMs());
    this.#upstream = new UpstreamCall(
      target,
      {
        path: wire.path,
        headers: sent,
        body: wire.body,
      },
      options.timeouts,
      this,
    );
  }

  /** Rejects where it fails before it begins. Made for who asks: whoever does not wait for it does not want its failure. */
  get ready(): Promise<AttemptStart> {
    if (this.#ready !== undefined) return this.#ready;
    if (this.#start !== undefined) return Promise.resolve(this.#start);
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return (this.#ready = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    }));
  }

  onStart(status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
    this.record.status = status;
  }

  onData(chunk: Buffer): void {
    try {
      this.#takeBytes(chunk);
    } catch (thrown) {
      this.#refuse(thrown);
    }
  }

  onEnd(): void {
    try {
      this.#finish();
    } catch (thrown) {
      this.#refuse(thrown);
    }
  }

  onFailure(error: OctavoError): void {
    this.#fail(this.#hasBegun ? interrupted(error) : error);
  }

  /** Ends it because its answer is not wanted any more; says nothing of the target's health. */
  cancel(): void {
    if (this.record.outcome !== "pending") return;
    this.#upstream.cancel();
    this.target.breaker.abandon();
    this.#close("cancelled");
    this.#failure = new OctavoError("request_cancelled", "the attempt was cancelled");
    this.#reject?.(this.#failure);
    this.#wake?.();
  }

  get tokens(): number {
    return this.#options.expectedTokens;
  }

  canMove(): boolean {
    return this.#options.call.isStream && !this.#hasBegun;
  }

  moveOn(): void {
    this.#upstream.cancel();
    const error = new OctavoError("target_failed", "the target is leaving");
    this.#fail(this.#hasBegun ? interrupted(error) : error);
  }

  /** The next parts of a stream; undefined after its proper end. Throws what ended it otherwise. */
  async nextParts(): Promise<readonly StreamPart[] | undefined> {
    while (this.#parts.length === 0) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#isEnded) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    const parts = this.#parts;
    this.#parts = [];
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#upstream.resume();
    }
    return parts;
  }

  #takeBytes(chunk: Buffer): void {
    const isStream = this.#options.call.isStream && this.#status < 300;
    if (!isStream) {
      this.#numBytes += chunk.length;
      if (this.#numBytes > this.#options.maxAnswerBytes)
        throw new OctavoError(
          "target_answer_invalid",
          `the target's answer is larger than ${this.#options.maxAnswerBytes} bytes`,
        );
      this.#chunks.push(chunk);
      return;
    }
    this.#reader ??= this.#openReader();
    for (const part of this.#reader.push(chunk)) this.#take(part);
    if (!this.#hasBegun) return;
    this.#wake?.();
    if (this.#parts.length > maxWaitingChunks && !this.#isPaused) {
      this.#isPaused = true;
      this.#upstream.pause();
    }
  }

  #take(part: StreamPart): void {
    this.#parts.push(part);
    const { usage, isFinish, hasContent } = readPart(part.json);
    if (usage !== undefined) this.record.usage = usage;
    if (isFinish) this.#hasFinish = true;
    // a target may fail after it only said hello; the first content is what commits the client to it
    if (this.#hasBegun || !(hasContent || isFinish)) return;
    this.#begin({ kind: "stream", status: this.#status });
  }

  #openReader(): StreamReader {
    const { call, maxEventBytes } = this.#options;
    const { family } = this.target;
    const type = this.#headers["content-type"] ?? "";
    if (!type.startsWith(family.streamType))
      throw new OctavoError(
        "target_answer_invalid",
        `the target answered a streamed call with ${type === "" ? "no content type" : type.slice(0, 64)}`,
      );
    return family.reader(call, { maxEventBytes });
  }

  #finish(): void {
    if (this.#status >= 300) throw this.#refused();
    if (this.#options.call.isStream) this.#endStream();
    else this.#endWhole();
    this.#succeed();
    this.#wake?.();
  }

  #endStream(): void {
    if (!this.#hasBegun)
      throw new OctavoError("target_answer_invalid", "the target's stream ended without content");
    if (this.#reader?.isComplete !== true && !this.#hasFinish)
      throw new OctavoError("stream_interrupted", "the target's stream broke off before its end");
    this.#isEnded = true;
  }

  #endWhole(): void {
    const bytes = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks);
    const text = bytes?.toString("utf8") ?? "";
    const json = asObject(parseJson(text)?.value);
    if (json === undefined)
      throw new OctavoError("target_answer_invalid", "the target's answer is not a JSON object");
    const { call } = this.#options;
    const answer = this.target.family.answer(json, call);
    this.record.usage = usageOfAnswer(answer);
    this.#begin({
      kind: "whole",
      status: this.#status,
      json: answer,
      text: answer === json ? text : undefined,
    });
  }

  #begin(start: AttemptStart): void {
    this.#hasBegun = true;
    this.record.firstByteMs = this.#options.clock.elapsedMs();
    this.target.firstByte.record(this.record.firstByteMs - this.#startedMs);
    this.#start = start;
    this.#resolve?.(start);
  }

  /** What a status of 300 and above means; the message is the target's own. */
  #refused(): OctavoError {
    const { status, family, name } = {
      status: this.#status,
      family: this.target.family,
      name: this.target.name,
    };
    const body = parseJson(Buffer.concat(this.#chunks).toString("utf8"))?.value;
    const said = family.error(body).message?.slice(0, 2000);
    if (status === 429 || status === 529) {
      const seconds = this.target.rest(this.#headers, this.#options.nowMs());
      return new OctavoError("target_rate_limited", said ?? `the target ${name} is rate limited`, {
        retryAfterSeconds: seconds,
      });
    }
    if (clientsFault.has(status))
      return new OctavoError("target_rejected", said ?? `the target answered with status ${status}`, {
        ...(typeof asRecord(asRecord(body)["error"])["param"] === "string" && {
          param: String(asRecord(asRecord(body)["error"])["param"]),
        }),
        cause: { status },
      });
    return new OctavoError("target_failed", said ?? `the target answered with status ${status}`, {
      cause: { status },
    });
  }

  /** What the target sent cannot be used. */
  #refuse(thrown: unknown): void {
    const error = OctavoError.from(thrown);
    this.#upstream.cancel();
    this.#fail(this.#hasBegun && error.code !== "stream_interrupted" ? interrupted(error) : error);
  }

  #succeed(): void {
    if (this.record.outcome !== "pending") return;
    this.target.breaker.succeed(this.#options.nowMs());
    this.#close("ok");
  }

  #fail(error: OctavoError): void {
    if (this.record.outcome !== "pending") return;
    const { breaker } = this.target;
    // a request that is wrong, or a target that is busy, is no sign that it is broken
    if (error.code === "target_rejected") breaker.succeed(this.#options.nowMs());
    else if (error.code === "target_rate_limited") breaker.abandon();
    else breaker.fail(this.#options.nowMs());
    this.#failure = error;
    this.#close(error.code);
    this.#reject?.(error);
    this.#wake?.();
  }

  #close(outcome: AttemptRecord["outcome"]): void {
    const { record, target } = this;
    record.outcome = outcome;
    record.endedMs = this.#options.clock.elapsedMs();
    const { usage } = record;
    if (usage !== undefined) record.costUsd = dollarsOf(target.priceOf(this.model), usage);
    target.work.end(
      this.#options.nowMs(),
      usage === undefined ? 0 : usage.promptTokens - usage.cachedTokens + usage.completionTokens,
    );
    target.end(this);
  }
}

/** Statuses that say the request is wrong, whatever the target. */
const clientsFault: ReadonlySet<number> = new Set([400, 409, 413, 415, 422]);

function interrupted(cause: OctavoError): OctavoError {
  return new OctavoError("stream_interrupted", `the target's stream broke off: ${cause.message}`, { cause });
}

/** What the account needs of a chunk, or of a typed event of `/responses` and `/messages`. */
function readPart(json: JsonFields) {
  const choices = json["choices"];
  if (!Array.isArray(choices)) {
    const type = asString(json["type"]) ?? "";
    return {
      usage: usageOfAnswer(asObject(json["response"]) ?? asObject(json["message"]) ?? json),
      isFinish: type === "response.completed" || type === "message_delta",
      hasContent: type.endsWith(".delta") || type.endsWith("_delta"),
    };
  }
  let isFinish = false;
  let hasContent = false;
  for (const choice of asObjects(choices)) {
    if (choice["finish_reason"] !== undefined && choice["finish_reason"] !== null) isFinish = true;
    if (typeof choice["text"] === "string" && choice["text"] !== "") hasContent = true;
    for (const [field, value] of Object.entries(asRecord(choice["delta"])))
      if (field !== "role" && value !== null && value !== "") hasContent = true;
  }
  return { usage: usageOfAnswer(json), isFinish, hasContent };
}
