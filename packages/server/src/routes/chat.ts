import {
  chatCompletionRequest,
  OctavoError,
  usageInfo,
  type ChatChoice,
  type ChatCompletion,
  type ChatCompletionRequest,
} from "@octavo/protocol";
import { finishReason, readAnswer, reasoningTokens, startChat } from "../generation/chat-job.js";
import { messageOf } from "../generation/chat-output.js";
import { chatLogprobs, promptLogprobs } from "../generation/logprobs.js";
import { chatNotes } from "../generation/serving-records.js";
import { collectGeneration } from "../generation/run.js";
import type { RequestContext } from "../http/request-context.js";
import { jsonWithLists, made, sendJsonPieces } from "../http/json-pieces.js";
import type { Service } from "../service.js";
import { traceOf } from "../tracing/request-trace.js";
import { streamChat } from "./chat-stream.js";

/** POST /v1/chat/completions */
export async function handleChat(service: Service, context: RequestContext): Promise<void> {
  const request = await service.readRequest(context, chatCompletionRequest);
  checkCombinations(request);
  const job = await startChat(service, request, context);
  traceOf(context.signal)?.answersAs(job.id);
  if (request.stream === true) {
    await streamChat(service, context, job);
    return;
  }
  const { params, promptTokens } = job;
  const result = await collectGeneration(service.model.engine, job.events, params.n, context.signal);
  const notes = chatNotes(service, request.octavo?.include_serving_record === true, job.requestId);
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
    ...(notes === undefined ? {} : { octavo: notes }),
  };
  await sendJsonPieces(
    context,
    jsonWithLists(head, { choices: made(choices) }, tail),
    service.config.stallTimeoutMs,
  );
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
