import type { ChatDelta, ChatTool, UsageInfo } from "@octavo/protocol";
import type { JSONObject } from "@ai-sdk/provider";

/** One call of a model, in the wire's terms; `more` are the caller's own fields. */
export interface ModelCall {
  readonly messages: readonly WireMessage[];
  readonly tools: readonly ChatTool[];
  readonly toolChoice: "auto" | "none" | "required" | { readonly name: string };
  /** Hold the answer to JSON, or to JSON under this schema. */
  readonly json: true | { readonly name: string; readonly schema: unknown } | undefined;
  readonly maxTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  readonly topK: number | undefined;
  readonly presencePenalty: number | undefined;
  readonly frequencyPenalty: number | undefined;
  readonly seed: number | undefined;
  readonly stop: readonly string[] | undefined;
  readonly more: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal | undefined;
}

export interface WireMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  readonly reasoning?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: "function";
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
}

/** A part of an answer, as it comes. */
export interface WirePart {
  readonly id?: string | undefined;
  readonly model?: string | undefined;
  readonly delta?: ChatDelta | undefined;
  readonly finishReason?: string | undefined;
  readonly usage?: UsageInfo | undefined;
  /** What the caller asked to be told beside the answer. */
  readonly octavo?: JSONObject | undefined;
}

export interface Embedded {
  readonly embeddings: readonly (readonly number[])[];
  readonly tokens: number | undefined;
}

/** Where answers come from: a server, or a model in this process. */
export interface ModelSource {
  readonly provider: string;
  /** Throws `AI_NoSuchModelError` for a model that cannot be there. */
  check(modelId: string, kind: "languageModel" | "embeddingModel"): void;
  answer(modelId: string, call: ModelCall): AsyncIterable<WirePart>;
  embed(
    modelId: string,
    values: readonly string[],
    options: Pick<ModelCall, "more" | "headers" | "signal">,
  ): Promise<Embedded>;
}
