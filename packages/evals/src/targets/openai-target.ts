import { asArray, asRecord, asString, definedFields } from "@octavo/protocol";
import type { Answer } from "../answers/answer.js";
import type { CaseParameters, EvalCase } from "../cases/eval-case.js";
import { OpenAiServer, type ServerSettings } from "../http/openai-server.js";
import type { ServerFailure } from "../http/server-failure.js";
import { AnswerBuilder } from "./answer-builder.js";
import { neighboursIn } from "./neighbours.js";
import type { AnswerOptions, Neighbour, Target } from "./target.js";

/** A server under test behind an OpenAI-compatible endpoint. Times in ms. */
export interface OpenAiTargetSettings extends ServerSettings {
  readonly name: string;
  /** Undefined: the first one that `/v1/models` lists. */
  readonly model?: string;
  /** For cases that do not decide them. */
  readonly parameters?: CaseParameters;
  /** Whether all answers are streamed, or none is, of whose pieces nothing is known then. Default: as each request says. */
  readonly stream?: boolean;
  /** How newer models of OpenAI want the limit to be called. Default `max_tokens`. */
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens";
  /** How a tenant is named to the server. Default `x-tenant-id`. */
  readonly tenantHeader?: string;
  /** Keys of tenants; they take the place of `apiKey`, and of the header. */
  readonly tenantKeys?: Readonly<Record<string, string>>;
  /** Whether to ask for Octavo's serving record; `auto` does where `/v1/models` says that the server is one. */
  readonly servingRecord?: "auto" | "always" | "never";
}

interface ServerFacts {
  readonly model: string | undefined;
  readonly isOctavo: boolean;
}

/** Between two questions to a server that did not say what it is. */
const retryMs = 1000;
/** Statuses of refusals that may pass in a moment: request timeout, too early, too many requests. */
const passingStatuses: readonly number[] = [408, 425, 429];

/** Any server that speaks OpenAI's chat completions. */
export class OpenAiTarget implements Target {
  readonly name: string;
  readonly server: OpenAiServer;
  readonly #settings: OpenAiTargetSettings;
  #facts: ServerFacts | undefined;
  #probing: Promise<ServerFacts | undefined> | undefined;
  /** On `performance.now()`'s clock. */
  #failedAtMs: number | undefined;

  /** @throws OctavoError `invalid_option` when the base URL is none */
  constructor(settings: OpenAiTargetSettings) {
    this.name = settings.name;
    this.#settings = settings;
    this.server = new OpenAiServer(settings);
  }

  async answer(evalCase: EvalCase, options: AnswerOptions): Promise<Answer> {
    const facts = await this.#learn(options.signal);
    const model = this.#settings.model ?? facts?.model;
    const tenant = options.tenant ?? evalCase.tenant;
    const identity = this.#identity(tenant);
    const body = this.#bodyOf(evalCase, options, model, facts?.isOctavo ?? false);
    const sentEpochMs = Date.now();
    const startMs = performance.now();
    let builder = new AnswerBuilder(startMs, undefined);
    const reply = await this.server.read(
      {
        path: "/chat/completions",
        body,
        signal: options.signal,
        ...identity,
        headers: { ...identity.headers, ...options.extraHeaders },
      },
      (headers) => (builder = new AnswerBuilder(startMs, headers["content-type"])),
    );
    const endedMs = builder.endedMs ?? performance.now();
    if (reply.ok) builder.finish();
    const failure = reply.ok ? builder.failure : reply.failure;
    return {
      caseId: evalCase.id,
      target: this.name,
      model: builder.model ?? model,
      ...(builder.responseId === undefined ? {} : { responseId: builder.responseId }),
      text: builder.text,
      reasoning: builder.reasoning,
      toolCalls: builder.toolCalls,
      finishReason: builder.finishReason,
      ...(builder.tokens.length === 0 ? {} : { tokens: builder.tokens }),
      ...(builder.logitsDigests === undefined ? {} : { logitsDigests: builder.logitsDigests }),
      usage: builder.usage,
      timing: {
        scheduledEpochMs: options.scheduledEpochMs ?? sentEpochMs,
        sentEpochMs,
        durationMs: endedMs - startMs,
        pieceMs: builder.pieceMs,
      },
      serving: builder.serving,
      headers: Object.fromEntries(Object.entries(reply.headers).filter(([name]) => isKept(name))),
      failure: failure === undefined ? undefined : plainFailure(failure),
    };
  }

  async metrics(signal: AbortSignal): Promise<string | undefined> {
    return this.server.text({ path: "/metrics", atRoot: true, signal, timeoutMs: 10_000 });
  }

  async neighbours(
    requestId: string,
    tenant: string | undefined,
    signal: AbortSignal,
  ): Promise<readonly Neighbour[] | undefined> {
    const path = `/requests/${encodeURIComponent(requestId)}/neighbours`;
    const reply = await this.server.json({ path, signal, timeoutMs: 10_000, ...this.#identity(tenant) });
    return reply.ok ? neighboursIn(reply.value) : undefined;
  }

  /** How the server knows the tenant: by a key of its own, or by the header. */
  #identity(tenant: string | undefined): {
    readonly headers?: Readonly<Record<string, string>>;
    readonly apiKey?: string;
  } {
    if (tenant === undefined) return {};
    const { tenantKeys, tenantHeader = "x-tenant-id" } = this.#settings;
    const apiKey = tenantKeys?.[tenant];
    return apiKey === undefined ? { headers: { [tenantHeader]: tenant } } : { apiKey };
  }

  /** The model that answers, as far as it is known or the server tells. Asked before, no answer has to wait for what the server is. */
  async modelName(signal: AbortSignal): Promise<string | undefined> {
    const facts = await this.#learn(signal);
    return this.#settings.model ?? facts?.model;
  }

  /**
   * Asks once what the server is. One that fails may only be starting, and is asked again: where requests can do without the
   * answer, beside them, since waiting for it would count as the server's latency.
   */
  async #learn(signal: AbortSignal): Promise<ServerFacts | undefined> {
    const isNeeded =
      (this.#settings.servingRecord ?? "auto") === "auto" || this.#settings.model === undefined;
    if (!isNeeded) return undefined;
    if (this.#facts !== undefined) return this.#facts;
    const canWait = this.#settings.model !== undefined && this.#failedAtMs !== undefined;
    if (canWait && performance.now() - this.#failedAtMs! < retryMs) return undefined;
    this.#probing ??= this.#probe().then((facts) => {
      this.#probing = undefined;
      this.#facts = facts;
      this.#failedAtMs = facts === undefined ? performance.now() : undefined;
      return facts;
    });
    if (canWait) return undefined;
    const facts = await this.#probing;
    signal.throwIfAborted();
    return facts;
  }

  async #probe(): Promise<ServerFacts | undefined> {
    // not under the caller's signal: other callers wait for the same answer
    const { signal } = new AbortController();
    const reply = await this.server.json({ path: "/models", signal, timeoutMs: 10_000 });
    if (!reply.ok) {
      // a server that has no list, or hides it, will not change its answer
      const status = reply.failure.httpStatus ?? 500;
      const isFinal = status < 500 && !passingStatuses.includes(status);
      return isFinal ? { model: undefined, isOctavo: false } : undefined;
    }
    const cards = asArray(asRecord(reply.value)["data"]).map(asRecord);
    return {
      model: asString(cards[0]?.["id"]),
      isOctavo: cards.some((card) => card["owned_by"] === "octavo"),
    };
  }

  #bodyOf(
    evalCase: EvalCase,
    options: AnswerOptions,
    model: string | undefined,
    isOctavo: boolean,
  ): Readonly<Record<string, unknown>> {
    const parameters = { ...this.#settings.parameters, ...definedFields(evalCase.parameters) };
    const record = this.#settings.servingRecord ?? "auto";
    const wantsRecord = record === "always" || (record === "auto" && isOctavo);
    const extra = {
      ...this.#settings.parameters?.extraBody,
      ...evalCase.parameters.extraBody,
      ...options.extraBody,
    };
    const octavo = {
      ...(wantsRecord ? { include_serving_record: true } : {}),
      ...(options.wantsDigests === true && isOctavo ? { include_logits_digest: true } : {}),
      ...asRecord(extra["octavo"]),
    };
    return {
      ...(model === undefined ? {} : { model }),
      messages: evalCase.messages,
      ...(evalCase.tools.length === 0 ? {} : { tools: evalCase.tools }),
      ...(parameters.toolChoice === undefined ? {} : { tool_choice: parameters.toolChoice }),
      ...(parameters.maxTokens === undefined
        ? {}
        : { [this.#settings.maxTokensField ?? "max_tokens"]: parameters.maxTokens }),
      ...definedFields({
        temperature: parameters.temperature,
        seed: parameters.seed,
        response_format: parameters.responseFormat,
      }),
      ...((this.#settings.stream ?? options.stream) === false
        ? {}
        : { stream: true, stream_options: { include_usage: true } }),
      ...extra,
      ...(Object.keys(octavo).length === 0 ? {} : { octavo }),
    };
  }
}

function isKept(headerName: string): boolean {
  return headerName.startsWith("x-") || headerName === "traceresponse";
}

/** A server to evaluate, any that speaks OpenAI's chat completions. */
export function openAiTarget(settings: OpenAiTargetSettings): OpenAiTarget {
  return new OpenAiTarget(settings);
}

function plainFailure({ code, httpStatus, message }: ServerFailure): Answer["failure"] {
  return { code, httpStatus, message };
}
