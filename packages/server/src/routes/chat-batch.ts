import { setImmediate as eventLoopTurn } from "node:timers/promises";
import {
  type ChatBatchRequest,
  type ChatCompletion,
  type ChatCompletionRequest,
  OctavoError,
} from "@octavo/protocol";
import {
  type PreparedChat,
  prepareChat,
  readWholeAnswer,
  reasoningTokens,
  startChats,
} from "../generation/chat-job.js";
import { noPromptParts } from "../generation/prompt-parts.js";
import { collectGeneration } from "../generation/run.js";
import { totalUsage, wireUsage } from "../account/usage.js";
import { jsonWithLists, made, sendJsonPieces } from "../http/json-pieces.js";
import type { RequestContext } from "../http/request-context.js";
import type { Service } from "../service.js";
import { chatChoice, chatHead, checkCombinations } from "./chat.js";

/** Choice i answers conversation i; usage is the total. */
export async function handleChatBatch(
  service: Service,
  context: RequestContext,
  request: ChatBatchRequest,
): Promise<void> {
  const chats: PreparedChat[] = [];
  for (const [index, chat] of singleRequests(request).entries()) {
    checkCombinations(chat);
    // short conversations render without yielding, and there may be a thousand
    await eventLoopTurn();
    context.signal.throwIfAborted();
    chats.push(await prepareConversation(service, chat, index, context));
  }
  const jobs = await startChats(service, chats, context);
  const { engine } = service.model;
  const results = await Promise.all(
    jobs.map(async (job) => {
      const { sequences, usage } = await collectGeneration(engine, job.events, 1, context.signal);
      const [sequence] = sequences;
      if (sequence === undefined) throw new OctavoError("internal_error", "a conversation was not answered");
      return { job, sequence, usage, answer: readWholeAnswer(job, sequence) };
    }),
  );
  const [first] = jobs;
  if (first === undefined) throw new OctavoError("internal_error", "the batch is empty");
  context.account.responseId = first.id;
  const choices = results.map(
    ({ job, sequence, answer }, index) =>
      () =>
        chatChoice(service, job, index, sequence, answer),
  );
  const tail: Pick<ChatCompletion, "usage" | "prompt_logprobs" | "prompt_token_ids" | "prompt_text"> = {
    prompt_logprobs: null,
    ...noPromptParts,
    usage: wireUsage(
      totalUsage(results.map(({ usage }) => usage)),
      reasoningTokens(results.map(({ answer }) => answer.reader)),
    ),
  };
  const pieces = jsonWithLists(chatHead(service, first), { choices: made(choices) }, tail);
  await sendJsonPieces(context, pieces, service.config.stallTimeoutMs);
}

function singleRequests(request: ChatBatchRequest): readonly ChatCompletionRequest[] {
  const {
    messages: conversations,
    n: _n,
    stream: _stream,
    stream_options: _options,
    prompt_logprobs: _scores,
    return_prompt_text: _repeats,
    octavo: _notes,
    ...fields
  } = request;
  return conversations.map((messages) => ({ ...fields, messages }));
}

/** Errors name the conversation that they are about. */
async function prepareConversation(
  service: Service,
  request: ChatCompletionRequest,
  index: number,
  context: RequestContext,
): Promise<PreparedChat> {
  try {
    return await prepareChat(service, request, context);
  } catch (thrown) {
    const error = OctavoError.from(thrown);
    const field = error.param?.replace(/^messages\b/, "") ?? "";
    if (error.param === undefined || field === error.param) throw error;
    const param = `messages[${index}]${field}`;
    throw new OctavoError(error.code, `${param}: ${error.message.replace(`${error.param}: `, "")}`, {
      param,
      cause: error,
    });
  }
}
