import { randomUUID } from "node:crypto";
import {
  chatCompletionRequest,
  OctavoError,
  usageInfo,
  type ChatAnswerMessage,
  type ChatChoice,
  type ChatCompletion,
  type ChatCompletionRequest,
  type ChatFinishReason,
} from "@octavo/protocol";
import { ChatOutput, type ChatReader, messageOf } from "../generation/chat-output.js";
import { chatPrompt } from "../generation/chat-prompt.js";
import { resolveMaxTokens, truncatePrompt } from "../generation/context-length.js";
import { chatLogprobs, promptLogprobs } from "../generation/logprobs.js";
import { collectGeneration, type SequenceResult, startGeneration } from "../generation/run.js";
import { toSamplingParams } from "../generation/sampling.js";
import type { RequestContext } from "../http/request-context.js";
import { jsonWithLists, made, sendJsonPieces } from "../http/json-pieces.js";
import { nowSeconds, type Service } from "../service.js";
import { streamChat } from "./chat-stream.js";

/** A chat request made ready: what both ways of answering need. */
export interface ChatJob {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly request: ChatCompletionRequest;
  readonly promptTokens: Int32Array;
  readonly n: number;
  readonly role: string;
  /** Text put before the answer: with `echo`, the last message when the assistant is to continue it. */
  readonly echoText: string;
  /** A reader for one of the request's sequences; undefined where text is content as it is. */
  createReader(): ChatReader | undefined;
}

/** POST /v1/chat/completions */
export async function handleChat(service: Service, context: RequestContext): Promise<void> {
  const request = await service.readRequest(context, chatCompletionRequest);
  service.checkModel(request.model);
  service.checkPriority(request.priority);
  checkCombinations(request);
  const { model, config } = service;
  const prompt = await chatPrompt(model, request, config, context.signal);
  const promptTokens = truncatePrompt(
    prompt.tokens,
    request.truncate_prompt_tokens,
    request.truncation_side,
    model.engine.maxModelLen,
  );
  const requested = request.max_completion_tokens ?? request.max_tokens ?? undefined;
  const field = typeof request.max_completion_tokens === "number" ? "max_completion_tokens" : "max_tokens";
  const budget = { requested, fallback: model.generation.maxNewTokens, field };
  const output = new ChatOutput(service.formats, model.tokenizer, request, prompt.text);
  const { keptSpecialTokens } = output;
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
  const events = await startGeneration(
    model.engine,
    {
      kind: "generate",
      requestId: randomUUID(),
      promptTokens,
      params,
      arrivalMs: context.arrivalMs,
      ...(request.cache_salt ? { cacheSalt: request.cache_salt } : {}),
      ...(request.priority ? { priority: request.priority } : {}),
    },
    context.signal,
  );
  const job: ChatJob = {
    id: `chatcmpl-${request.request_id ?? randomUUID()}`,
    created: nowSeconds(),
    model: service.modelNames[0],
    request,
    promptTokens,
    n: params.n,
    role: answerRole(request, config.responseRole),
    echoText: echoText(request),
    createReader: () => output.createReader(promptTokens, params),
  };
  if (request.stream === true) {
    await streamChat(service, context, job, events);
    return;
  }
  const result = await collectGeneration(model.engine, events, params.n, context.signal);
  const asIds = request.return_tokens_as_token_ids === true;
  const answers = result.sequences.map((sequence) => readAnswer(job, sequence));
  const choices = result.sequences.map((sequence, index) => (): ChatChoice => ({
    index,
    message: answers[index]?.message ?? messageOf(job.role, "", []),
    logprobs:
      params.logprobs === undefined ? null : chatLogprobs(sequence.logprobs, service.tokenTexts, asIds),
    finish_reason: finishReason(sequence.finishReason ?? "stop", answers[index]?.reader),
    stop_reason: sequence.stopReason ?? null,
    ...(request.return_token_ids === true ? { token_ids: sequence.tokens } : {}),
  }));
  const head: Omit<ChatCompletion, "choices" | "usage"> = {
    id: job.id,
    object: "chat.completion",
    created: job.created,
    model: job.model,
    system_fingerprint: service.fingerprint,
  };
  const tail: Omit<ChatCompletion, keyof typeof head | "choices"> = {
    usage: usageInfo(
      result.usage.promptTokens,
      result.usage.completionTokens,
      result.usage.cachedTokens,
      reasoningTokens(answers.map(({ reader }) => reader)),
    ),
    ...(result.promptLogprobs === undefined
      ? {}
      : { prompt_logprobs: promptLogprobs(result.promptLogprobs, service.tokenTexts) }),
    ...(request.return_token_ids === true ? { prompt_token_ids: Array.from(promptTokens) } : {}),
  };
  await sendJsonPieces(context, jsonWithLists(head, { choices: made(choices) }, tail), config.stallTimeoutMs);
}

interface Answer {
  readonly message: ChatAnswerMessage;
  readonly reader: ChatReader | undefined;
}

function readAnswer(job: ChatJob, { text, tokens }: SequenceResult): Answer {
  const reader = job.createReader();
  const deltas =
    reader === undefined ? [{ content: text }] : [...reader.push(text, tokens), ...reader.finish()];
  return { message: messageOf(job.role, job.echoText, deltas), reader };
}

/** An answer that ends in calls says so, unless it was cut off. */
export function finishReason(reason: "stop" | "length", reader: ChatReader | undefined): ChatFinishReason {
  return reason === "stop" && reader !== undefined && reader.numCalls > 0 ? "tool_calls" : reason;
}

/** Of all sequences together; undefined where reasoning is not separated. */
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
  return (last.content ?? []).map((part) => part.text).join("\n");
}

function checkCombinations(request: ChatCompletionRequest): void {
  const fail = (param: string, message: string): never => {
    throw new OctavoError("invalid_request", `${param}: ${message}`, { param });
  };
  if (request.stream !== true && request.stream_options)
    fail("stream_options", "only a streamed answer has them; set stream to true");
  if (request.stream === true && typeof request.prompt_logprobs === "number")
    fail("prompt_logprobs", "not available in a stream");
  if (typeof request.top_logprobs === "number" && request.top_logprobs !== 0 && request.logprobs !== true) {
    fail("top_logprobs", "needs logprobs to be true");
  }
  if (
    request.max_tokens &&
    request.max_completion_tokens &&
    request.max_tokens !== request.max_completion_tokens
  ) {
    fail("max_tokens", "differs from max_completion_tokens; send one of them");
  }
}
