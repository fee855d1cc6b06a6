import { randomBytes } from "node:crypto";
import {
  type ChatDelta,
  type CountTokensRequest,
  type MessagesRequest,
  toMessagesErrorBody,
} from "@octavo/protocol";
import { type ChatJob, startChat } from "../generation/chat-job.js";
import { chatPrompt } from "../generation/chat-prompt.js";
import { readChat } from "../generation/chat-turn.js";
import { chatFromMessages, inNamesOfMessages } from "../generation/from-messages.js";
import { MessageBuilder, type MessageEvent } from "../generation/message-builder.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import { streamEvents } from "../http/sse-writer.js";
import type { Service } from "../service.js";

export async function handleMessages(
  service: Service,
  context: RequestContext,
  request: MessagesRequest,
): Promise<void> {
  const job = await startMessages(service, request, context);
  const id = `msg_${randomBytes(12).toString("hex")}`;
  const builder = new MessageBuilder(id, job.model, job.promptTokens.length);
  if (request.stream === true) {
    await streamMessage(service, context, job, builder);
    return;
  }
  const end = await readChat(service, job, context.signal, (delta) => void builder.push(delta));
  sendJson(context.response, 200, builder.finish(end).message);
}

async function startMessages(
  service: Service,
  request: MessagesRequest,
  context: RequestContext,
): Promise<ChatJob> {
  try {
    return await startChat(service, chatFromMessages(request), context);
  } catch (thrown) {
    throw inNamesOfMessages(thrown, request);
  }
}

export async function handleCountTokens(
  service: Service,
  context: RequestContext,
  request: CountTokensRequest,
): Promise<void> {
  service.servedModel(request.model);
  const { tokens } = await chatPrompt(service.model, chatFromMessages(request), service.config, context, {
    media: service.media,
  });
  sendJson(context.response, 200, { input_tokens: tokens.length });
}

async function streamMessage(
  service: Service,
  context: RequestContext,
  job: ChatJob,
  builder: MessageBuilder,
): Promise<void> {
  await streamEvents(
    context,
    service.config.stallTimeoutMs,
    async (writer) => {
      const send = (events: readonly MessageEvent[]): void => {
        for (const event of events) writer.send(event, event.type);
      };
      send(builder.start());
      const onDelta = (delta: ChatDelta): void => send(builder.push(delta));
      const end = await readChat(service, job, context.signal, onDelta, () => writer.flush());
      send(builder.finish(end).events);
      await writer.flush();
      writer.close();
    },
    (writer, error) => {
      writer.send(toMessagesErrorBody(error), "error");
      writer.close();
    },
  );
}
