import { randomBytes } from "node:crypto";
import type {
  ChatDelta,
  ChatToolCallDelta,
  OctavoError,
  ResponseItem,
  ResponseItemStatus,
  ResponseObject,
  ResponseStatus,
  ResponseUsage,
} from "@octavo/protocol";
import type { ChatEnd } from "./chat-turn.js";
import type { DraftMessage } from "./from-responses.js";

type ItemOfText = Extract<ResponseItem, { readonly content: unknown }>;

const callEvents = {
  function_call: "response.function_call_arguments",
  custom_tool_call: "response.custom_tool_call_input",
} as const;

/** A server-sent event of `/v1/responses`; `type` is also its name. */
export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [key: string]: unknown;
}

/**
 * Builds a response from deltas, item by item, and returns the events of each change. The non-streamed answer is the final
 * state, so that both are the same.
 */
export class ResponseBuilder {
  readonly #base: Pick<ResponseObject, "id" | "created_at" | "model">;
  readonly #echoed: Readonly<Record<string, unknown>>;
  readonly #output: ResponseItem[] = [];
  #sequence = 0;
  #isOpen = false;
  #status: ResponseStatus = "in_progress";
  #usage: ResponseUsage | null = null;
  #error: ResponseObject["error"] = null;

  constructor(
    base: Pick<ResponseObject, "id" | "created_at" | "model">,
    echoed: Readonly<Record<string, unknown>>,
  ) {
    this.#base = base;
    this.#echoed = echoed;
  }

  get response(): ResponseObject {
    return {
      id: this.#base.id,
      object: "response",
      created_at: this.#base.created_at,
      status: this.#status,
      error: this.#error,
      incomplete_details: this.#status === "incomplete" ? { reason: "max_output_tokens" } : null,
      model: this.#base.model,
      output: structuredClone(this.#output),
      ...this.#echoed,
      usage: this.#usage,
    };
  }

  /** The answer as a message of the conversation. */
  get message(): DraftMessage {
    const message: DraftMessage & { content: string | null } = { role: "assistant", content: null };
    for (const item of this.#output) {
      if (item.type === "message") message.content = (message.content ?? "") + textOf(item);
      else if (item.type === "reasoning") message.reasoning = (message.reasoning ?? "") + textOf(item);
      else if (item.type === "custom_tool_call") {
        const { call_id: id, name, input } = item;
        (message.tool_calls ??= []).push({ id, type: "custom", custom: { name, input } });
      } else {
        const { call_id: id, name } = item;
        // a later prompt needs an object; broken arguments were reported, and cannot be laid out
        const text = item.octavo === undefined ? item.arguments : "{}";
        (message.tool_calls ??= []).push({ id, type: "function", function: { name, arguments: text } });
      }
    }
    return message;
  }

  start(): readonly ResponseEvent[] {
    const { response } = this;
    return [this.#event("response.created", { response }), this.#event("response.in_progress", { response })];
  }

  push(delta: ChatDelta): readonly ResponseEvent[] {
    return [
      ...(delta.reasoning === undefined ? [] : this.#reasoning(delta.reasoning)),
      ...(delta.content === undefined || delta.content === "" ? [] : this.#text(delta.content)),
      ...(delta.tool_calls ?? []).flatMap((call) => this.#call(call)),
    ];
  }

  finish(end: ChatEnd): readonly ResponseEvent[] {
    const { usage } = end;
    const isCut = end.finishReason === "length";
    const events = [...this.#close(isCut ? "incomplete" : "completed")];
    this.#status = isCut ? "incomplete" : "completed";
    this.#usage = {
      input_tokens: usage.promptTokens,
      input_tokens_details: { cached_tokens: usage.cachedTokens },
      output_tokens: usage.completionTokens,
      output_tokens_details: { reasoning_tokens: end.reasoningTokens ?? 0 },
      total_tokens: usage.promptTokens + usage.completionTokens,
    };
    events.push(this.#event(`response.${this.#status}`, { response: this.response }));
    return events;
  }

  fail(error: OctavoError): readonly ResponseEvent[] {
    const events = [...this.#close("incomplete")];
    this.#status = "failed";
    this.#error = { code: error.code, message: error.message };
    events.push(this.#event("response.failed", { response: this.response }));
    return events;
  }

  cancel(): void {
    this.#close("incomplete");
    this.#status = "cancelled";
  }

  #reasoning(text: string): readonly ResponseEvent[] {
    let item = this.#output.at(-1);
    const events: ResponseEvent[] = [];
    if (!this.#isOpen || item?.type !== "reasoning") {
      item = { type: "reasoning", id: newId("rs"), status: "in_progress", summary: [], content: [] };
      events.push(...this.#open(item));
      item.content.push({ type: "reasoning_text", text: "" });
      events.push(this.#partEvent("added", item));
    }
    const [part] = item.content;
    if (part !== undefined) part.text += text;
    events.push(this.#itemEvent("response.reasoning_text.delta", item, { content_index: 0, delta: text }));
    return events;
  }

  #text(text: string): readonly ResponseEvent[] {
    let item = this.#output.at(-1);
    const events: ResponseEvent[] = [];
    if (!this.#isOpen || item?.type !== "message") {
      item = { type: "message", id: newId("msg"), status: "in_progress", role: "assistant", content: [] };
      events.push(...this.#open(item));
      item.content.push({ type: "output_text", text: "", annotations: [], logprobs: [] });
      events.push(this.#partEvent("added", item));
    }
    const [part] = item.content;
    if (part !== undefined) part.text += text;
    const fields = { content_index: 0, delta: text, logprobs: [] };
    events.push(this.#itemEvent("response.output_text.delta", item, fields));
    return events;
  }

  #call({ id, function: part, custom, octavo }: ChatToolCallDelta): readonly ResponseEvent[] {
    const events: ResponseEvent[] = [];
    if (id !== undefined) {
      const call = { status: "in_progress", call_id: id, name: (custom ?? part)?.name ?? "" } as const;
      events.push(
        ...this.#open(
          custom === undefined
            ? { type: "function_call", id: newId("fc"), ...call, arguments: "" }
            : { type: "custom_tool_call", id: newId("ctc"), ...call, input: "" },
        ),
      );
    }
    const item = this.#output.at(-1);
    if (item?.type !== "function_call" && item?.type !== "custom_tool_call") return events;
    const delta = custom?.input ?? part?.arguments ?? "";
    if (delta !== "") {
      if (item.type === "custom_tool_call") item.input += delta;
      else item.arguments += delta;
      events.push(this.#itemEvent(`${callEvents[item.type]}.delta`, item, { delta }));
    }
    if (octavo !== undefined) item.octavo = octavo;
    return events;
  }

  #open(item: ResponseItem): readonly ResponseEvent[] {
    const events = [...this.#close("completed")];
    this.#output.push(item);
    this.#isOpen = true;
    return [...events, this.#addedOrDone("added", item)];
  }

  #close(status: ResponseItemStatus): readonly ResponseEvent[] {
    const item = this.#output.at(-1);
    if (!this.#isOpen || item === undefined) return [];
    this.#isOpen = false;
    item.status = status;
    const events: ResponseEvent[] = [];
    if (item.type === "function_call") {
      const { name, arguments: text } = item;
      events.push(this.#itemEvent(`${callEvents[item.type]}.done`, item, { name, arguments: text }));
    } else if (item.type === "custom_tool_call") {
      events.push(this.#itemEvent(`${callEvents[item.type]}.done`, item, { input: item.input }));
    } else {
      const kind = item.type === "message" ? "output_text" : "reasoning_text";
      const logprobs = item.type === "message" ? { logprobs: [] } : {};
      const fields = { content_index: 0, text: textOf(item), ...logprobs };
      events.push(this.#itemEvent(`response.${kind}.done`, item, fields), this.#partEvent("done", item));
    }
    events.push(this.#addedOrDone("done", item));
    return events;
  }

  #addedOrDone(what: "added" | "done", item: ResponseItem): ResponseEvent {
    const output_index = this.#output.length - 1;
    return this.#event(`response.output_item.${what}`, { output_index, item: structuredClone(item) });
  }

  #partEvent(what: "added" | "done", item: ItemOfText): ResponseEvent {
    const part = structuredClone(item.content[0]);
    return this.#itemEvent(`response.content_part.${what}`, item, { content_index: 0, part });
  }

  #itemEvent(type: string, item: ResponseItem, fields: object): ResponseEvent {
    return this.#event(type, { item_id: item.id, output_index: this.#output.length - 1, ...fields });
  }

  #event(type: string, fields: object): ResponseEvent {
    return { type, sequence_number: this.#sequence++, ...fields };
  }
}

export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString("hex")}`;
}

function textOf(item: ItemOfText): string {
  return item.content.map((part) => part.text).join("");
}
