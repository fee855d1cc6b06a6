import { OctavoError } from "@octavo/protocol/errors";
import type {
  FinishReason,
  GenerationEvent,
  SequenceDelta,
  ServingRecord,
  TokenLogprob,
  Usage,
} from "../api.js";
import type { ToolCall } from "../chat/tool.js";
import type { TemplateMessage } from "@octavo/text/template/chat-template";
import type { ChatDelta } from "@octavo/protocol";

/** Takes the markup of reasoning and calls out of one sequence's text. */
export interface AnswerReader {
  push(text: string, tokens: readonly number[]): readonly ChatDelta[];
  finish(): readonly ChatDelta[];
}

/** New output of one sequence: of a chat, its content as text, and what is not content beside it. */
export interface GenerationDelta extends SequenceDelta {
  readonly reasoning?: string;
  /** Parts of calls, as OpenAI's API streams them. */
  readonly toolCalls?: NonNullable<ChatDelta["tool_calls"]>;
}

/** One finished sequence of a request. */
export interface GeneratedSequence {
  readonly index: number;
  /** The text; for a chat, the content alone. */
  readonly text: string;
  /** What a chat's model thought before it answered; undefined where its format does not mark it. */
  readonly reasoning: string | undefined;
  readonly toolCalls: readonly ToolCall[];
  /** All of them, those of reasoning and calls included. */
  readonly tokens: readonly number[];
  /** Parallel to `tokens`, when asked for. */
  readonly logprobs: readonly TokenLogprob[] | undefined;
  readonly finishReason: FinishReason;
  /** The stop string or stop token id that ended it; undefined for EOS and length. */
  readonly stopReason: string | number | undefined;
}

/** A whole answer. With `n` above 1, `text` and the like are those of the first sequence and `sequences` has all. */
export interface GenerationResult {
  readonly requestId: string;
  /** Text of the first sequence. */
  readonly text: string;
  /** Reasoning of the first sequence. */
  readonly reasoning: string | undefined;
  /** Calls of the first sequence that were not run. */
  readonly toolCalls: readonly ToolCall[];
  /** Chats only: the answer as messages that continue the conversation, with the calls that were run and their results. */
  readonly messages: readonly TemplateMessage[];
  /** In order of their index; one unless `n` asked for more. */
  readonly sequences: readonly GeneratedSequence[];
  readonly promptTokens: Int32Array;
  /** When asked for; the first entry is undefined, as the first token has no prediction. */
  readonly promptLogprobs: readonly (TokenLogprob | undefined)[] | undefined;
  readonly usage: Usage;
  /** How the request was served: queue wait, first token, cache hits, preemptions. */
  readonly record: ServingRecord;
}

interface OpenSequence {
  readonly texts: string[];
  readonly reasoning: string[];
  readonly calls: { id: string; name: string; arguments: string; problem?: string }[];
  readonly tokens: number[];
  logprobs: TokenLogprob[] | undefined;
  finishReason: FinishReason | undefined;
  stopReason: string | number | undefined;
}

/** Collects a request's events into its result. */
export class ResultCollector {
  readonly #requestId: string;
  readonly #promptTokens: Int32Array;
  readonly #sequences = new Map<number, OpenSequence>();
  #promptLogprobs: readonly (TokenLogprob | undefined)[] | undefined;
  #done: Extract<GenerationEvent, { kind: "done" }> | undefined;

  constructor(requestId: string, promptTokens: Int32Array) {
    this.#requestId = requestId;
    this.#promptTokens = promptTokens;
  }

  add(
    event: GenerationEvent | { readonly kind: "delta"; readonly deltas: readonly GenerationDelta[] },
  ): void {
    if (event.kind === "prompt") this.#promptLogprobs = event.promptLogprobs;
    else if (event.kind === "delta") for (const delta of event.deltas) this.#addDelta(delta);
    else this.#done = event;
  }

  finish(): GenerationResult {
    if (this.#done === undefined) {
      throw new OctavoError("engine_failed", "The generation ended without saying how.");
    }
    const sequences = [...this.#sequences.entries()]
      .toSorted(([left], [right]) => left - right)
      .map(([index, { texts, reasoning, calls, finishReason, ...rest }]) => ({
        index,
        text: texts.join(""),
        reasoning: reasoning.length === 0 ? undefined : reasoning.join(""),
        toolCalls: calls.map(parsedCall),
        finishReason: finishReason ?? "abort",
        ...rest,
      }));
    return {
      requestId: this.#requestId,
      text: sequences[0]?.text ?? "",
      reasoning: sequences[0]?.reasoning,
      toolCalls: sequences[0]?.toolCalls ?? [],
      messages: [],
      sequences,
      promptTokens: this.#promptTokens,
      promptLogprobs: this.#promptLogprobs,
      usage: this.#done.usage,
      record: this.#done.record,
    };
  }

  #addDelta(delta: GenerationDelta): void {
    let sequence = this.#sequences.get(delta.index);
    if (sequence === undefined) {
      sequence = {
        texts: [],
        reasoning: [],
        calls: [],
        tokens: [],
        logprobs: undefined,
        finishReason: undefined,
        stopReason: undefined,
      };
      this.#sequences.set(delta.index, sequence);
    }
    sequence.texts.push(delta.text);
    if (delta.reasoning !== undefined) sequence.reasoning.push(delta.reasoning);
    for (const { index, id = "", function: named, octavo } of delta.toolCalls ?? []) {
      const call = (sequence.calls[index] ??= { id, name: named?.name ?? "", arguments: "" });
      call.arguments += named?.arguments ?? "";
      if (octavo?.invalid_arguments !== undefined) call.problem = octavo.invalid_arguments;
    }
    for (const token of delta.tokens) sequence.tokens.push(token);
    if (delta.logprobs !== undefined) {
      const logprobs = (sequence.logprobs ??= []);
      for (const logprob of delta.logprobs) logprobs.push(logprob);
    }
    if (delta.finishReason !== undefined) {
      sequence.finishReason = delta.finishReason;
      sequence.stopReason = delta.stopReason;
    }
  }
}

function parsedCall({ id, name, arguments: text, problem }: OpenSequence["calls"][number]): ToolCall {
  try {
    const value: unknown = text.trim() === "" ? {} : JSON.parse(text);
    return { id, name, arguments: value, ...(problem !== undefined && { problem }) };
  } catch {
    return { id, name, arguments: text, problem: problem ?? "not JSON" };
  }
}
