import { createHash } from "node:crypto";
import type {
  ChatDelta,
  ChatToolCallDelta,
  MessageAnswer,
  MessageBlock,
  MessageStopReason,
  MessageUsage,
} from "@octavo/protocol";
import type { ChatEnd } from "./chat-turn.js";

/** A server-sent event of `/v1/messages`; `type` is also its name. */
export interface MessageEvent {
  readonly type: string;
  readonly [key: string]: unknown;
}

/**
 * Builds an answer from deltas, block by block, and returns the events of each change. The non-streamed answer is the final state,
 * so that both are the same.
 */
export class MessageBuilder {
  readonly #id: string;
  readonly #model: string;
  readonly #promptTokens: number;
  readonly #blocks: MessageBlock[] = [];
  /** Arguments of the open tool_use block. */
  #arguments = "";
  #isOpen = false;

  constructor(id: string, model: string, promptTokens: number) {
    this.#id = id;
    this.#model = model;
    this.#promptTokens = promptTokens;
  }

  start(): readonly MessageEvent[] {
    const usage = { ...noUsage, input_tokens: this.#promptTokens };
    return [{ type: "message_start", message: this.#message(null, null, usage) }];
  }

  push(delta: ChatDelta): readonly MessageEvent[] {
    return [
      ...(delta.reasoning === undefined ? [] : this.#thinking(delta.reasoning)),
      ...(delta.content === undefined || delta.content === "" ? [] : this.#text(delta.content)),
      ...(delta.tool_calls ?? []).flatMap((call) => this.#call(call)),
    ];
  }

  finish(end: ChatEnd): { readonly events: readonly MessageEvent[]; readonly message: MessageAnswer } {
    const events = [...this.#close()];
    const { usage } = end;
    const total: MessageUsage = {
      input_tokens: usage.promptTokens - usage.cachedTokens,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: usage.cachedTokens,
      output_tokens: usage.completionTokens,
    };
    const message = this.#message(stopReason(end), stopSequence(end), total);
    const { stop_reason, stop_sequence } = message;
    events.push(
      { type: "message_delta", delta: { stop_reason, stop_sequence }, usage: total },
      { type: "message_stop" },
    );
    return { events, message };
  }

  #thinking(thinking: string): readonly MessageEvent[] {
    const events = this.#open("thinking", () => ({ type: "thinking", thinking: "", signature: "" }));
    const block = this.#blocks.at(-1);
    if (block?.type === "thinking") block.thinking += thinking;
    return [...events, this.#delta({ type: "thinking_delta", thinking })];
  }

  #text(text: string): readonly MessageEvent[] {
    const events = this.#open("text", () => ({ type: "text", text: "" }));
    const block = this.#blocks.at(-1);
    if (block?.type === "text") block.text += text;
    return [...events, this.#delta({ type: "text_delta", text })];
  }

  #call({ id, function: part, octavo }: ChatToolCallDelta): readonly MessageEvent[] {
    const events: MessageEvent[] = [];
    if (id !== undefined) {
      events.push(...this.#close());
      events.push(
        ...this.#open("tool_use", () => ({ type: "tool_use", id, name: part?.name ?? "", input: {} })),
      );
    }
    if (part !== undefined && part.arguments !== "") {
      this.#arguments += part.arguments;
      events.push(this.#delta({ type: "input_json_delta", partial_json: part.arguments }));
    }
    const block = this.#blocks.at(-1);
    if (octavo !== undefined && block?.type === "tool_use")
      block.octavo = { ...octavo, arguments: this.#arguments };
    return events;
  }

  #open(type: MessageBlock["type"], create: () => MessageBlock): readonly MessageEvent[] {
    if (this.#isOpen && this.#blocks.at(-1)?.type === type) return [];
    const events = [...this.#close()];
    const block = create();
    this.#blocks.push(block);
    this.#isOpen = true;
    this.#arguments = "";
    return [...events, { type: "content_block_start", index: this.#index, content_block: { ...block } }];
  }

  #close(): readonly MessageEvent[] {
    if (!this.#isOpen) return [];
    this.#isOpen = false;
    const block = this.#blocks.at(-1);
    if (block?.type === "tool_use" && block.octavo === undefined && this.#arguments !== "")
      block.input = JSON.parse(this.#arguments);
    const events: MessageEvent[] = [];
    if (block?.type === "thinking") {
      block.signature = signatureOf(block.thinking);
      events.push(this.#delta({ type: "signature_delta", signature: block.signature }));
    }
    return [...events, { type: "content_block_stop", index: this.#index }];
  }

  #delta(delta: object): MessageEvent {
    return { type: "content_block_delta", index: this.#index, delta };
  }

  get #index(): number {
    return this.#blocks.length - 1;
  }

  #message(
    stop_reason: MessageStopReason | null,
    stop_sequence: string | null,
    usage: MessageUsage,
  ): MessageAnswer {
    return {
      id: this.#id,
      type: "message",
      role: "assistant",
      model: this.#model,
      content: [...this.#blocks],
      stop_reason,
      stop_sequence,
      usage,
    };
  }
}

/** Clients only send signed thinking back. The signature is not checked: clients may edit the text. */
function signatureOf(thinking: string): string {
  return createHash("sha256").update(thinking).digest("base64");
}

const noUsage: MessageUsage = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
};

function stopReason(end: ChatEnd): MessageStopReason {
  if (end.finishReason === "tool_calls") return "tool_use";
  if (end.finishReason === "length") return "max_tokens";
  return stopSequence(end) === null ? "end_turn" : "stop_sequence";
}

function stopSequence({ stopReason: reason }: ChatEnd): string | null {
  return typeof reason === "string" ? reason : null;
}
