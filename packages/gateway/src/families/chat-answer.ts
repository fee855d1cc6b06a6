import type { JsonFields } from "@octavo/protocol";
import type { StreamPart } from "./family.js";

export type WireFinishReason = "stop" | "length" | "tool_calls" | "content_filter";

export interface TranslatedUsage {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens?: number | undefined;
}

export interface TranslatedAnswer {
  readonly id: string;
  readonly model: string;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly finishReason: WireFinishReason;
  readonly usage: TranslatedUsage;
}

/** `chat.completion` with one choice. */
export function chatAnswer(answer: TranslatedAnswer): JsonFields {
  const { text, reasoning, calls } = answer;
  return {
    id: answer.id,
    object: "chat.completion",
    created: Math.floor(Date.now() / 1000),
    model: answer.model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text === "" && calls.length > 0 ? null : text,
          refusal: null,
          ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
          ...(calls.length === 0
            ? {}
            : {
                tool_calls: calls.map(({ id, name, arguments: args }) => ({
                  id,
                  type: "function",
                  function: { name, arguments: args },
                })),
              }),
        },
        logprobs: null,
        finish_reason: answer.finishReason,
      },
    ],
    usage: wireUsageOf(answer.usage),
  };
}

export function wireUsageOf(usage: TranslatedUsage): JsonFields {
  const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    ...(reasoningTokens === undefined
      ? {}
      : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
}

/** Makes the chunks of one translated stream. */
export class ChunkMaker {
  id = "";
  model: string;
  readonly #created = Math.floor(Date.now() / 1000);

  constructor(model: string) {
    this.model = model;
  }

  delta(delta: JsonFields, finishReason: WireFinishReason | null = null): StreamPart {
    return this.#part([{ index: 0, delta, logprobs: null, finish_reason: finishReason }]);
  }

  usage(usage: TranslatedUsage): StreamPart {
    return this.#part([], { usage: wireUsageOf(usage) });
  }

  callStart(index: number, id: string, name: string): StreamPart {
    return this.delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] });
  }

  callArguments(index: number, text: string): StreamPart {
    return this.delta({ tool_calls: [{ index, function: { arguments: text } }] });
  }

  #part(choices: readonly JsonFields[], more: JsonFields = {}): StreamPart {
    return {
      raw: undefined,
      json: {
        id: this.id,
        object: "chat.completion.chunk",
        created: this.#created,
        model: this.model,
        choices,
        ...more,
      },
    };
  }
}
