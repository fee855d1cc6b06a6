import { type ChatDelta, OctavoError, type ResponseObject, type ResponsesRequest } from "@octavo/protocol";
import { type ChatJob, startChat } from "../generation/chat-job.js";
import { readChat } from "../generation/chat-turn.js";
import { chatFromResponses, type DraftMessage } from "../generation/from-responses.js";
import type { Caller } from "../generation/run.js";
import { newId, ResponseBuilder, type ResponseEvent } from "../generation/response-builder.js";
import { logFailure, publicError } from "../http/public-error.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import { type SseWriter, streamEvents } from "../http/sse-writer.js";
import { nowSeconds, type Service } from "../service.js";
import type { OwnerId } from "../tenants/ownership.js";
import { invalidField } from "@octavo/protocol/refusal";

interface Turn {
  readonly job: ChatJob;
  readonly builder: ResponseBuilder;
  readonly conversation: readonly DraftMessage[];
  readonly owner: OwnerId;
  readonly isStored: boolean;
}

export async function handleResponses(
  service: Service,
  context: RequestContext,
  request: ResponsesRequest,
): Promise<void> {
  if (request.background === true) {
    sendJson(context.response, 200, await startInBackground(service, context, request));
    return;
  }
  const turn = await startTurn(service, request, context);
  context.account.responseId = turn.builder.response.id;
  if (request.stream === true) {
    await streamTurn(service, context, turn);
    return;
  }
  await runTurn(service, turn, context.signal);
  sendJson(context.response, 200, turn.builder.response);
}

export function handleResponse(service: Service, context: RequestContext, id: string): void {
  sendJson(context.response, 200, service.responses.get(context.account.ownerId, id).response);
}

export function handleCancelResponse(service: Service, context: RequestContext, rest: string): void {
  const id = /^([^/]+)\/cancel$/.exec(rest)?.[1];
  if (id === undefined)
    throw new OctavoError("not_found", `there is nothing at /v1/responses/${rest.slice(0, 200)}`);
  const { response, cancel } = service.responses.get(context.account.ownerId, id);
  const isRunning = response.status === "in_progress" || response.status === "queued";
  if (cancel === undefined || !isRunning) {
    const message = `the response ${id} is ${response.status}; only one that runs in the background can be cancelled`;
    throw new OctavoError("invalid_request", message, { param: "response_id" });
  }
  sendJson(context.response, 200, cancel());
}

async function startTurn(service: Service, request: ResponsesRequest, caller: Caller): Promise<Turn> {
  const owner = caller.account.ownerId;
  const { chat, conversation } = chatFromResponses(request, earlierTurns(service, request, owner));
  const job = await startChat(service, chat, caller);
  const base = { id: newId("resp"), created_at: nowSeconds(), model: job.model };
  const builder = new ResponseBuilder(base, echoed(request, job));
  return { job, builder, conversation, owner, isStored: request.store !== false };
}

function earlierTurns(service: Service, request: ResponsesRequest, owner: OwnerId): readonly DraftMessage[] {
  const id = request.previous_response_id ?? undefined;
  if (id === undefined) return [];
  const { conversation, response } = service.responses.get(owner, id, "previous_response_id");
  if (conversation !== undefined) return conversation;
  throw invalidField(
    "previous_response_id",
    `the response ${id} is ${response.status} and cannot be continued`,
  );
}

/** Runs a turn to its end and stores it. */
async function runTurn(
  service: Service,
  { job, builder, conversation, owner, isStored }: Turn,
  signal: AbortSignal,
  onEvents: (events: readonly ResponseEvent[]) => void = () => {},
  flush?: () => Promise<void>,
): Promise<void> {
  const onDelta = (delta: ChatDelta): void => onEvents(builder.push(delta));
  const events = builder.finish(await readChat(service, job, signal, onDelta, flush));
  const { response } = builder;
  if (isStored)
    service.responses.set(owner, response.id, {
      response,
      conversation: [...conversation, builder.message],
    });
  onEvents(events);
  await flush?.();
}

async function streamTurn(service: Service, context: RequestContext, turn: Turn): Promise<void> {
  const sendTo = (writer: SseWriter, events: readonly ResponseEvent[]): void => {
    for (const event of events) writer.send(event, event.type);
  };
  await streamEvents(
    context,
    service.config.stallTimeoutMs,
    async (writer) => {
      const flush = (): Promise<void> => writer.flush();
      sendTo(writer, turn.builder.start());
      await flush();
      await runTurn(service, turn, context.signal, (events) => sendTo(writer, events), flush);
      writer.close();
    },
    (writer, error) => {
      sendTo(writer, turn.builder.fail(error));
      writer.close();
    },
  );
}

/** Answers at once and goes on generating; the client polls the stored response. */
async function startInBackground(
  service: Service,
  context: RequestContext,
  request: ResponsesRequest,
): Promise<ResponseObject> {
  if (request.store === false)
    throw invalidField("background", "the answer could not be fetched with store: false");
  if (request.stream === true)
    throw invalidField("background", "it cannot be combined with stream; set one of the two");
  const abort = new AbortController();
  const { signal } = abort;
  const { account, octavoId, arrivalMs } = context;
  account.outlivesAnswer = true;
  const hold = (bytes: number): void => context.hold(bytes);
  const turn = await startTurn(service, request, { account, octavoId, arrivalMs, signal, hold });
  const { builder, owner } = turn;
  const { id } = builder.response;
  const store = (): ResponseObject => {
    const { response } = builder;
    service.responses.set(owner, id, { response, conversation: undefined });
    return response;
  };
  const cancel = (): ResponseObject => {
    abort.abort(new OctavoError("request_cancelled", "the response was cancelled"));
    builder.cancel();
    return store();
  };
  const { response } = builder;
  service.responses.set(owner, id, { response, conversation: undefined, cancel });
  void runTurn(service, turn, signal).catch((thrown: unknown) => {
    if (signal.aborted) return;
    const error = publicError(thrown, { signal, requestId: context.requestId });
    logFailure(context.log, error);
    builder.fail(error);
    store();
  });
  return response;
}

/** Request fields that OpenAI returns in the answer. */
function echoed(request: ResponsesRequest, job: ChatJob): Readonly<Record<string, unknown>> {
  return {
    background: request.background ?? false,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    metadata: request.metadata ?? {},
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    reasoning: { effort: request.reasoning?.effort ?? null, summary: null },
    service_tier: "default",
    store: request.store ?? true,
    temperature: job.params.temperature,
    text: { format: request.text?.format ?? { type: "text" } },
    tool_choice: request.tool_choice ?? "auto",
    tools: request.tools ?? [],
    top_p: job.params.topP,
    truncation: "disabled",
    user: request.user ?? null,
  };
}
