import { randomBytes } from "node:crypto";
import type {
  ChatAnswerMessage,
  ChatCompletionRequest,
  ChatDelta,
  ChatCustomToolCall,
  ChatFinishReason,
  ChatToolCall,
} from "@octavo/protocol";
import type { OutputEvent } from "@octavo/text/parsers/output-events";
import { OutputParser } from "@octavo/text/parsers/output-parser";
import { type PromptReasoning, promptReasoning } from "@octavo/text/parsers/reasoning/reasoning-format";
import { callStarts, type OutputFormats, reasoningTags } from "@octavo/text/parsers/registry";
import { untaggedJsonCalls } from "@octavo/text/parsers/shared/json-calls";
import { toolSchemas } from "@octavo/text/parsers/shared/tool-schemas";
import type { DecodeOptions, Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import type { ThinkingBudget } from "../api.js";
import { CustomInput } from "./custom-input.js";
import { asFunction } from "./custom-tools.js";
import { ReasoningTokens } from "./reasoning-tokens.js";
import {
  afterReasoning,
  type OutputConstraint,
  toolChoice,
  type ToolChoice,
  withTools,
} from "./tool-grammar.js";
import { unsupportedField } from "@octavo/protocol/refusal";

export { asFunction, inputName } from "./custom-tools.js";
export { type OutputConstraint } from "./tool-grammar.js";

export type ChatOutputFields = Pick<
  ChatCompletionRequest,
  | "tools"
  | "tool_choice"
  | "parallel_tool_calls"
  | "include_reasoning"
  | "skip_special_tokens"
  | "messages"
  | "continue_final_message"
>;

/** How the output of one chat request is constrained and parsed. */
export class ChatOutput {
  readonly #fields: ChatOutputFields;
  readonly #formats: OutputFormats;
  readonly #tokenizer: Tokenizer;
  readonly #promptReasoning: PromptReasoning;
  readonly #choice: ToolChoice;
  readonly #namesReasoningTwice: boolean;

  constructor(
    formats: OutputFormats,
    tokenizer: Tokenizer,
    fields: ChatOutputFields,
    prompt: string,
    namesReasoningTwice = false,
  ) {
    this.#namesReasoningTwice = namesReasoningTwice;
    this.#choice = toolChoice(fields);
    const readsTools = this.#choice !== "none" || formats.tools?.reasoning !== undefined;
    this.#formats = { tools: readsTools ? formats.tools : undefined, reasoning: formats.reasoning };
    this.#fields = fields;
    this.#tokenizer = tokenizer;
    this.#promptReasoning = this.#readPrompt(prompt);
  }

  /** The constraint from the tools, the request's own constraint, or both; undefined if the output is free. */
  constraint(own: OutputConstraint | undefined): OutputConstraint | undefined {
    const { tools, reasoning } = this.#formats;
    const constraint = withTools(own, this.#fields, this.#choice, tools);
    if (constraint === undefined) return undefined;
    return { ...constraint, spec: afterReasoning(constraint.spec, reasoning, this.#promptReasoning) };
  }

  /** The request's reasoning budget; undefined without one, or if the prompt has already closed reasoning. */
  thinkingBudget(maxTokens: number | null | undefined): ThinkingBudget | undefined {
    if (maxTokens === undefined || maxTokens === null || maxTokens === -1) return undefined;
    const reasoning = reasoningTags(this.#formats);
    const [endTag] = reasoning?.endTags ?? [];
    if (reasoning === undefined || endTag === undefined) {
      throw unsupportedField(
        "thinking_token_budget",
        "what ends this model's reasoning is not known; the server's operator can say with --reasoning-parser",
      );
    }
    if (this.#promptReasoning === "closed") return undefined;
    const { startTags, endTags, beginsOpen } = reasoning;
    const isOpen = this.#promptReasoning === "open" || beginsOpen;
    const endTokens = this.#tokenizer.encode(endTag, { addSpecialTokens: false });
    return { maxTokens, startTags, endTags, endTokens, isOpen };
  }

  /** Special tokens whose text the parser needs; undefined if none. */
  get keptSpecialTokens(): ReadonlySet<number> | undefined {
    const { tools, reasoning } = this.#formats;
    const markers = [
      ...(tools?.markers ?? []),
      ...(reasoning === undefined ? [] : [...reasoning.startTags, ...reasoning.endTags]),
    ];
    const ids = markers.flatMap((marker) => this.#tokenizer.tokenToId(marker) ?? []);
    const kept = new Set(ids.filter((id) => this.#tokenizer.specialTokenIds.has(id)));
    return kept.size === 0 ? undefined : kept;
  }

  /**
   * Undefined if the text is the content. `isConstrained`: the constraint keeps calls out of reasoning, so that markup there
   * is reasoning too.
   */
  createReader(
    promptTokens: Int32Array,
    decoding: DecodeOptions,
    isConstrained: boolean,
  ): ChatReader | undefined {
    const { tools, reasoning } = this.#formats;
    const isForced = this.#choice !== "none" && this.#choice !== "auto";
    const machine = isForced && tools?.layout === undefined ? untaggedJsonCalls : tools?.machine;
    if (machine === undefined && reasoning === undefined) return undefined;
    const parser = new OutputParser({
      machine,
      reasoning,
      promptReasoning: this.#promptReasoning,
      callStarts: tools === undefined || isConstrained ? [] : callStarts(tools),
      schemas: toolSchemas((this.#fields.tools ?? []).map(asFunction)),
    });
    const custom = (this.#fields.tools ?? []).flatMap((tool) =>
      tool.type === "custom" ? [tool.custom.name] : [],
    );
    const countsTokens = reasoning !== undefined || tools?.reasoning !== undefined;
    return new ChatReader(parser, {
      tokens: countsTokens ? new ReasoningTokens(this.#tokenizer, promptTokens, decoding) : undefined,
      showsReasoning: this.#fields.include_reasoning !== false,
      namesReasoningTwice: this.#namesReasoningTwice,
      maxCalls: this.#fields.parallel_tool_calls === false ? 1 : Number.POSITIVE_INFINITY,
      isNamed: typeof this.#choice === "object",
      customTools: new Set(custom),
      newCallId: tools?.callIds === "nine-characters" ? nineCharacters : callId,
    });
  }

  #readPrompt(prompt: string): PromptReasoning {
    const { reasoning } = this.#formats;
    if (reasoning === undefined) return "unknown";
    if (this.#fields.continue_final_message !== true) return promptReasoning(prompt, reasoning);
    // the answer continues the last message: reasoning is open if that message began and did not end it
    const start = Math.max(...reasoning.startTags.map((tag) => prompt.lastIndexOf(tag)));
    const end = Math.max(...reasoning.endTags.map((tag) => prompt.lastIndexOf(tag)));
    return start > end ? "open" : "closed";
  }
}

interface ReaderOptions {
  readonly tokens: ReasoningTokens | undefined;
  readonly showsReasoning: boolean;
  /** Reasoning is sent as `reasoning_content` too. */
  readonly namesReasoningTwice: boolean;
  readonly maxCalls: number;
  /** The request named the tool to call. */
  readonly isNamed: boolean;
  /** Names of the tools that take a text instead of arguments. */
  readonly customTools: ReadonlySet<string>;
  readonly newCallId: () => string;
}

/** Parses the text of one sequence into deltas; together they are the message of a non-streamed answer. */
export class ChatReader {
  readonly #parser: OutputParser;
  readonly #options: ReaderOptions;
  readonly #inputs = new Map<number, CustomInput>();
  #numCalls = 0;

  constructor(parser: OutputParser, options: ReaderOptions) {
    this.#parser = parser;
    this.#options = options;
  }

  push(text: string, tokens: readonly number[]): readonly ChatDelta[] {
    this.#options.tokens?.push(tokens);
    return this.#deltas(this.#parser.push(text));
  }

  finish(): readonly ChatDelta[] {
    return this.#deltas(this.#parser.finish());
  }

  /** `tool_calls` for an answer that ends in calls, unless it was truncated or the tool was named, as in OpenAI's API. */
  finishReason(reason: "stop" | "length"): ChatFinishReason {
    return reason === "stop" && this.#numCalls > 0 && !this.#options.isNamed ? "tool_calls" : reason;
  }

  /** Reasoning tokens so far; undefined if reasoning is not separated. */
  get reasoningTokens(): number | undefined {
    return this.#options.tokens?.count(this.#parser.reasoningSpans);
  }

  #deltas(events: readonly OutputEvent[]): readonly ChatDelta[] {
    return events.flatMap((event) => this.#delta(event) ?? []);
  }

  #delta(event: OutputEvent): ChatDelta | undefined {
    const { showsReasoning, namesReasoningTwice, maxCalls, newCallId, customTools } = this.#options;
    if (event.kind === "ignored") return undefined;
    if (event.kind === "content") return { content: event.text };
    if (event.kind === "reasoning") {
      if (!showsReasoning) return undefined;
      return { reasoning: event.text, ...(namesReasoningTwice && { reasoning_content: event.text }) };
    }
    const { index } = event;
    if (index >= maxCalls) return undefined;
    if (event.kind === "call-start") {
      this.#numCalls += 1;
      const id = event.id ?? newCallId();
      const { name } = event;
      if (customTools.has(name)) {
        this.#inputs.set(index, new CustomInput());
        return { tool_calls: [{ index, id, type: "custom", custom: { name, input: "" } }] };
      }
      return { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] };
    }
    const input = this.#inputs.get(index);
    if (event.kind === "arguments") {
      if (input === undefined) return { tool_calls: [{ index, function: { arguments: event.text } }] };
      const text = input.push(event.text);
      return text === "" ? undefined : { tool_calls: [{ index, custom: { input: text } }] };
    }
    if (input !== undefined) {
      const { text, problem = event.problem } = input.finish();
      if (text === "" && problem === undefined) return undefined;
      const octavo = problem === undefined ? {} : { octavo: { invalid_arguments: problem } };
      return { tool_calls: [{ index, custom: { input: text }, ...octavo }] };
    }
    if (event.problem === undefined) return undefined;
    const octavo = { invalid_arguments: event.problem };
    return { tool_calls: [{ index, function: { arguments: "" }, octavo }] };
  }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** The message that deltas add up to. Content is null if there is no text but calls or reasoning. */
export function messageOf(role: string, lead: string, deltas: readonly ChatDelta[]): ChatAnswerMessage {
  let content = lead;
  let reasoning = "";
  const calls: (Writable<ChatToolCall> | Writable<ChatCustomToolCall>)[] = [];
  for (const delta of deltas) {
    content += delta.content ?? "";
    reasoning += delta.reasoning ?? "";
    for (const { index, id = "", function: part, custom, octavo } of delta.tool_calls ?? []) {
      const call = (calls[index] ??=
        custom === undefined
          ? { id, type: "function", function: { name: part?.name ?? "", arguments: "" } }
          : { id, type: "custom", custom: { name: custom.name ?? "", input: "" } });
      if (call.type === "custom")
        call.custom = { ...call.custom, input: call.custom.input + (custom?.input ?? "") };
      else call.function = { ...call.function, arguments: call.function.arguments + (part?.arguments ?? "") };
      if (octavo !== undefined) call.octavo = octavo;
    }
  }
  const namesReasoningTwice = deltas.some((delta) => delta.reasoning_content !== undefined);
  const isEmpty = content === "" && (calls.length > 0 || reasoning !== "");
  return {
    role,
    content: isEmpty ? null : content,
    reasoning: reasoning === "" ? null : reasoning,
    ...(namesReasoningTwice && { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

function callId(): string {
  return `call_${randomBytes(12).toString("hex")}`;
}

/** The only form of id that Mistral's templates accept. */
function nineCharacters(): string {
  return randomBytes(5).toString("hex").slice(0, 9);
}
