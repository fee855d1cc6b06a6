import { setImmediate as eventLoopTurn } from "node:timers/promises";
import {
  type ChatBatchRequest,
  type ChatCompletion,
  type ChatCompletionRequest,
  OctavoError,
  usageInfo,
} from "@octavo/protocol";
import {
  type PreparedChat,
  prepareChat,
  readAnswer,
  reasoningTokens,
  startChats,
} from "../generation/chat-job.js";
import { collectGeneration } from "../generation/run.js";
import { jsonWithLists, made, sendJsonPieces } from "../http/json-pieces.js";
import type { RequestContext } from "../http/request-context.js";
import type { Service } from "../service.js";
import { chatChoice, chatHead, checkCombinations } from "./chat.js";

/** Choice i answers conversation i; usage is that of all together. */
export async function handleChatBatch(
  service: Service,
  context: RequestContext,
  request: ChatBatchRequest,
): Promise<void> {
  const chats: PreparedChat[] = [];
  for (const [index, chat] of singleRequests(request).entries()) {
    checkCombinations(chat);
    // Short conversations are laid out without a pause, and there may be a thousand.
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
      return { job, sequence, usage, answer: readAnswer(job, sequence) };
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
  const sum = (count: (result: (typeof results)[number]) => number): number =>
    results.reduce((total, result) => total + count(result), 0);
  const tail: Pick<ChatCompletion, "usage"> = {
    usage: usageInfo(
      sum(({ usage }) => usage.promptTokens),
      sum(({ usage }) => usage.completionTokens),
      sum(({ usage }) => usage.cachedTokens),
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
