import type { Pooling } from "@octavo/artifacts/program/model-config";
import type { Deadlines } from "../api.js";
import type { ToolInput } from "../chat/tool.js";
import type { SamplingInput } from "../sampling/resolve-sampling-params.js";
import type { Account } from "../scheduler/account.js";
import type { GrammarSpec } from "@octavo/text/structured/grammar";
import type { TemplateInput, TemplateMessage } from "@octavo/text/template/chat-template";
import type { GenerationResult } from "./generation-result.js";

/** Text, or token ids, which are used as they are. */
export type Prompt = string | Int32Array;

/** Sampling parameters, all optional: generation_config.json fills in some, OpenAI's defaults the rest. */
export interface GenerateOptions extends SamplingInput {
  /** Ends the generation with `request_cancelled` and frees its memory. */
  readonly signal?: AbortSignal | undefined;
  /** First prompt token to get `promptLogprobs`; earlier ones skip the output head. Default 1. */
  readonly promptLogprobsFrom?: number | undefined;
  /** Prefix cache entries are shared only between requests with the same salt. */
  readonly cacheSalt?: string | undefined;
  /** Name of the loaded LoRA adapter to run under; needs `enableLora`. Default none: the model itself. */
  readonly adapter?: string | undefined;
  /** Lower runs earlier; needs the scheduling policy `priority`. */
  readonly priority?: number | undefined;
  /** The tenant that the request counts for; default `default`. */
  readonly account?: Account | undefined;
  readonly deadlines?: Deadlines | undefined;
  /** Default a random one; with several prompts, their index is appended. */
  readonly requestId?: string | undefined;
  /** What the output must look like: JSON under a schema, a regular expression, a grammar, ... Compiled once per content. */
  readonly constraint?: GrammarSpec | undefined;
  /** Whether the tokenizer adds special tokens, such as BOS; default true. Give false for text from `renderChat`. */
  readonly addSpecialTokens?: boolean | undefined;
}

/** What `LLM.chat` takes beside the conversation: sampling, tools, and what the template reads. */
export interface ChatOptions
  extends Omit<GenerateOptions, "addSpecialTokens">, Omit<TemplateInput, "messages" | "tools"> {
  /** Functions that the model may call, or OpenAI's form of them. Those with `run` are run, several at once, and the model goes on. */
  readonly tools?: readonly ToolInput[] | undefined;
  /** `required` asks for a call, `{ name }` for one of that tool. Default `auto`. */
  readonly toolChoice?: "auto" | "none" | "required" | { readonly name: string } | undefined;
  /** False allows one call at a time. */
  readonly parallelToolCalls?: boolean | undefined;
  /** Answers at most, those that call tools included; after the last, calls are returned and not run. Default 8. */
  readonly maxRounds?: number | undefined;
  /** Tokens of reasoning at most. */
  readonly thinkingBudget?: number | undefined;
}

/** An answer held to a schema. */
export interface ObjectResult<T> extends GenerationResult {
  readonly object: T;
}

/** Messages in the order in which they were said, as the chat template takes them. */
export type Conversation = readonly TemplateMessage[];

/** How texts become embeddings. */
export interface EmbedOptions {
  /**
   * `cls` takes the first token's hidden state, `last` the last one's, `mean` the mean of all and `max` the largest value of each column;
   * default what the checkpoint's modules say, else `mean` for encoders and `last` for decoders.
   */
  readonly pooling?: Pooling | undefined;
  /** Name of the checkpoint's prompt that is put before each text; default the one that it says, if any. */
  readonly promptName?: string | undefined;
  /** Scale to length 1; default what the checkpoint's modules say, else true. */
  readonly normalize?: boolean | undefined;
  /** As for `generate`. */
  readonly adapter?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}
