import { type ChatChoice, type ChatCompletion, type ChatCompletionRequest } from "@octavo/protocol";
import {
  type ChatAnswer,
  type ChatJob,
  finishReason,
  readWholeAnswer,
  reasoningTokens,
  startChat,
} from "../generation/chat-job.js";
import { messageOf } from "@octavo/engine/chat";
import { chatLogprobs, promptLogprobs } from "../generation/logprobs.js";
import { chatNotes } from "../generation/serving-records.js";
import { noPromptParts, promptParts } from "../generation/prompt-parts.js";
import { collectGeneration, type SequenceResult } from "../generation/run.js";
import { wireUsage } from "../account/usage.js";
import type { RequestContext } from "../http/request-context.js";
import { jsonWithLists, made, sendJsonPieces } from "../http/json-pieces.js";
import type { Service } from "../service.js";
import { streamChat } from "./chat-stream.js";
import { checkStreamFields } from "../generation/stream-interval.js";
import { invalidField } from "@octavo/protocol/refusal";

export async function handleChat(
  service: Service,
  context: RequestContext,
  request: ChatCompletionRequest,
): Promise<void> {
  checkCombinations(request);
  const job = await startChat(service, request, context);
  context.account.responseId = job.id;
  if (request.stream === true) {
    await streamChat(service, context, job);
    return;
  }
  const { params, promptTokens } = job;
  const result = await collectGeneration(service.model.engine, job.events, params.n, context.signal);
  const notes = chatNotes(service, request.octavo, job.requestId, result.logitsDigests);
  const answers = result.sequences.map((sequence) => readWholeAnswer(job, sequence));
  const choices = result.sequences.map(
    (sequence, index) => () => chatChoice(service, job, index, sequence, answers[index]),
  );
  const tail: Omit<ChatCompletion, keyof ChatHead | "choices"> = {
    usage: wireUsage(result.usage, reasoningTokens(answers.map(({ reader }) => reader))),
    prompt_logprobs:
      result.promptLogprobs === undefined ? null : promptLogprobs(result.promptLogprobs, service.tokenTexts),
    ...noPromptParts,
    ...promptParts(request, service.model.tokenizer, promptTokens),
    ...(notes === undefined ? {} : { octavo: notes }),
  };
  await sendJsonPieces(
    context,
    jsonWithLists(chatHead(service, job), { choices: made(choices) }, tail),
    service.config.stallTimeoutMs,
  );
}

type ChatHead = Omit<
  ChatCompletion,
  "choices" | "usage" | "prompt_logprobs" | "prompt_token_ids" | "prompt_text"
>;

export function chatHead(service: Service, job: Pick<ChatJob, "id" | "created" | "model">): ChatHead {
  return {
    id: job.id,
    object: "chat.completion",
    created: job.created,
    model: job.model,
    system_fingerprint: service.fingerprint,
  };
}

export function chatChoice(
  service: Service,
  job: ChatJob,
  index: number,
  sequence: SequenceResult,
  answer: ChatAnswer | undefined,
): ChatChoice {
  const { params, request } = job;
  const asIds = request.return_tokens_as_token_ids === true;
  return {
    index,
    message: answer?.message ?? messageOf(job.role, "", []),
    logprobs:
      params.logprobs === undefined ? null : chatLogprobs(sequence.logprobs, service.tokenTexts, asIds),
    finish_reason: finishReason(sequence.finishReason ?? "stop", answer?.reader),
    stop_reason: sequence.stopReason ?? null,
    token_ids: request.return_token_ids === true ? sequence.tokens : null,
  };
}

/** Fields that exclude or need each other. */
export function checkCombinations(request: ChatCompletionRequest): void {
  checkStreamFields(request);
  if (typeof request.top_logprobs === "number" && request.top_logprobs !== 0 && request.logprobs !== true) {
    throw invalidField("top_logprobs", "needs logprobs to be true");
  }
  if (
    request.max_tokens &&
    request.max_completion_tokens &&
    request.max_tokens !== request.max_completion_tokens
  ) {
    throw invalidField("max_tokens", "differs from max_completion_tokens; send one of them");
  }
}
