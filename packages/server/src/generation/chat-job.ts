import { randomUUID } from "node:crypto";
import type { GenerationEvent, GenerationRequest, SamplingParams, SequenceDelta } from "@octavo/engine";
import {
  type ChatAnswerMessage,
  type ChatCompletionRequest,
  type ChatDelta,
  type ChatFinishReason,
  OctavoError,
} from "@octavo/protocol";
import type { WireExchange } from "@octavo/tracing";
import type { CapturedSequence } from "../account/content-capture.js";
import { nowSeconds, type Service } from "../service.js";
import { ChatOutput, type ChatReader, messageOf } from "@octavo/engine/chat";
import { chatPrompt } from "./chat-prompt.js";
import { placedImages, refuseCutImages } from "./image-parts.js";
import { promptLimit } from "./encode-prompt.js";
import { resolveMaxTokens, truncatePrompt } from "./context-length.js";
import { emittedTokens } from "./emitted-tokens.js";
import { compileConstraint, outputConstraint } from "./output-constraint.js";
import { type Caller, type SequenceResult, startGenerations } from "./run.js";
import { inIntervals } from "./stream-interval.js";
import { engineRequestId } from "./serving-records.js";
import { toSamplingParams } from "./sampling.js";

/** A queued chat request: what every way of answering needs. */
export interface ChatJob {
  readonly id: string;
  /** The engine's id of the request. */
  readonly requestId: string;
  readonly created: number;
  readonly model: string;
  readonly request: ChatCompletionRequest;
  readonly promptTokens: Int32Array;
  readonly params: SamplingParams;
  readonly role: string;
  /** Text returned before the answer: with `echo`, the message that is continued. */
  readonly echoText: string;
  /** A parser for one of the request's sequences; undefined if the text is the content. */
  createReader(): ChatReader | undefined;
  readonly events: AsyncIterable<GenerationEvent>;
}

/** A validated and rendered chat request that is not queued yet. */
export interface PreparedChat {
  readonly job: Omit<ChatJob, "events">;
  readonly generation: GenerationRequest;
}

/** Validates a request, renders its prompt and queues it. The engine's refusals are thrown here, before anything is answered. */
export async function startChat(
  service: Service,
  request: ChatCompletionRequest,
  caller: Caller,
): Promise<ChatJob> {
  const [job] = await startChats(service, [await prepareChat(service, request, caller)], caller);
  if (job === undefined) throw new OctavoError("internal_error", "the chat was not started");
  return job;
}

/** Queues chats, all or none. */
export async function startChats(
  service: Service,
  chats: readonly PreparedChat[],
  caller: Caller,
): Promise<readonly ChatJob[]> {
  const batch = {};
  const requests = chats.map(({ generation }, index) => {
    const requestId = engineRequestId(caller.octavoId, index, chats.length);
    return { ...generation, requestId, batch };
  });
  const started = await startGenerations(service.model.engine, requests, caller);
  return started.flatMap((events, index) => {
    const chat = chats[index];
    if (chat === undefined) return [];
    const { job } = chat;
    // the conversations of a batch would run together on its one span
    const content = chats.length === 1 ? caller.account.content : undefined;
    const watched = content?.watch(events, (sequences) => chatExchange(job, sequences));
    return [{ ...job, events: inIntervals(watched ?? events, job.request) }];
  });
}

export async function prepareChat(
  service: Service,
  request: ChatCompletionRequest,
  caller: Caller,
): Promise<PreparedChat> {
  const served = service.servedModel(request.model);
  service.checkPriority(request.priority);
  const { model, config } = service;
  const format = outputConstraint(request);
  const prompt = await chatPrompt(model, request, config, caller, {
    maxTokens: promptLimit(model, request),
    media: service.media,
  });
  refuseCutImages(prompt, request);
  const promptTokens = truncatePrompt(
    prompt.tokens,
    request.truncate_prompt_tokens,
    request.truncation_side,
    model.engine.maxModelLen,
  );
  const requested = request.max_completion_tokens ?? request.max_tokens ?? undefined;
  const field = typeof request.max_completion_tokens === "number" ? "max_completion_tokens" : "max_tokens";
  const budget = { requested, fallback: model.generation.maxNewTokens, field };
  const output = new ChatOutput(
    service.formats,
    model.tokenizer,
    request,
    prompt.text,
    config.enableReasoningContent,
  );
  const { keptSpecialTokens } = output;
  const thinking = output.thinkingBudget(request.thinking_token_budget);
  const constraint = output.constraint(format);
  const plainParams = toSamplingParams(request, {
    defaults: model.generation,
    vocabSize: model.tokenizer.vocabSize,
    maxModelLen: model.engine.maxModelLen,
    numPromptTokens: promptTokens.length,
    maxLogprobs: config.maxLogprobs,
    maxTokens: resolveMaxTokens(promptTokens.length, model.engine.maxModelLen, budget, "messages"),
    logprobs: request.logprobs === true ? (request.top_logprobs ?? 0) : undefined,
    logprobsField: "top_logprobs",
    promptLogprobs: request.prompt_logprobs ?? undefined,
  });
  const params = keptSpecialTokens === undefined ? plainParams : { ...plainParams, keptSpecialTokens };
  const terms = service.termsOf(caller.account, request);
  const constrained =
    constraint === undefined
      ? {}
      : await compileConstraint(model.engine, constraint, terms.account.tenant, caller.signal);
  const images = await placedImages(model, prompt, terms.account, caller);
  const generation: GenerationRequest = {
    kind: "generate",
    images,
    requestId: caller.octavoId,
    promptTokens,
    params,
    adapter: served.adapter,
    ...constrained,
    ...(thinking === undefined ? {} : { thinking }),
    arrivalMs: caller.arrivalMs,
    ...(request.cache_salt ? { cacheSalt: request.cache_salt } : {}),
    ...(request.priority ? { priority: request.priority } : {}),
    ...(request.octavo?.include_logits_digest === true && { wantLogitsDigests: true }),
    ...emittedTokens(request.octavo),
    ...service.faultsOf(request.octavo),
    ...terms,
  };
  const job = {
    id: `chatcmpl-${request.request_id ?? randomUUID()}`,
    requestId: caller.octavoId,
    created: nowSeconds(),
    model: served.name,
    request,
    promptTokens,
    params,
    role: answerRole(request, config.responseRole),
    echoText: echoText(request),
    createReader: () => output.createReader(promptTokens, params, constraint !== undefined),
  };
  return { job, generation };
}

export interface ChatAnswer {
  readonly message: ChatAnswerMessage;
  readonly reader: ChatReader | undefined;
}

/** What a chat asked and answered so far, for its span. */
function chatExchange(job: PreparedChat["job"], sequences: readonly CapturedSequence[]): WireExchange {
  const choices = sequences.map(({ text, finishReason: reason }) => {
    const { message, reader } = readWholeAnswer(job, { text, tokens: [] });
    const isWhole = reason === "stop" || reason === "length";
    return { message, finish_reason: isWhole ? finishReason(reason, reader) : reason };
  });
  return { kind: "chat", request: job.request, answer: { choices } };
}

/** The whole answer of one sequence. */
export function readWholeAnswer(
  job: PreparedChat["job"],
  sequence: Pick<SequenceResult, "text" | "tokens">,
): ChatAnswer {
  const reader = job.createReader();
  return { message: messageOf(job.role, job.echoText, readDelta(reader, sequence, true)), reader };
}

/** Chat deltas of an increment of one sequence. */
export function readDelta(
  reader: ChatReader | undefined,
  { text, tokens }: Pick<SequenceDelta, "text" | "tokens">,
  isLast: boolean,
): readonly ChatDelta[] {
  if (reader === undefined) return text === "" ? [] : [{ content: text }];
  const parts = reader.push(text, tokens);
  return isLast ? [...parts, ...reader.finish()] : parts;
}

export function finishReason(reason: "stop" | "length", reader: ChatReader | undefined): ChatFinishReason {
  return reader?.finishReason(reason) ?? reason;
}

/** The total of all sequences; undefined if reasoning is not separated. */
export function reasoningTokens(readers: readonly (ChatReader | undefined)[]): number | undefined {
  const counts = readers.map((reader) => reader?.reasoningTokens);
  return counts.reduce((total, count) => (count === undefined ? total : (total ?? 0) + count), undefined);
}

/** The role of generated messages: the configured one, or that of the message being continued. */
function answerRole(request: ChatCompletionRequest, responseRole: string): string {
  return request.continue_final_message === true
    ? (request.messages.at(-1)?.role ?? responseRole)
    : responseRole;
}

function echoText(request: ChatCompletionRequest): string {
  const last = request.messages.at(-1);
  if (request.echo !== true || request.continue_final_message !== true || last === undefined) return "";
  if (typeof last.content === "string") return last.content;
  return (last.content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}
