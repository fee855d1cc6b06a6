import { OctavoError } from "@octavo/protocol/errors";
import { given } from "@octavo/protocol/options";
import { resolveFormats } from "@octavo/text/parsers/registry";
import type { GrammarSpec } from "@octavo/text/structured/grammar";
import type { TemplateInput, TemplateMessage } from "@octavo/text/template/chat-template";
import { ChatOutput, type ChatOutputFields } from "../chat/chat-output.js";
import { runTool, type ToolCall, type ToolSet, toolSet } from "../chat/tool.js";
import type { ThinkingBudget } from "../api.js";
import type { LanguageModel } from "../language-model.js";
import type { NextPart, StartedGeneration } from "./generation.js";
import type { GenerationResult } from "./generation-result.js";
import type { ChatOptions, Conversation } from "./call-options.js";

/** What a chat adds to a generation: how its output is constrained, decoded and read. */
export interface ChatTerms {
  readonly constraint: GrammarSpec | undefined;
  readonly keptSpecialTokens: ReadonlySet<number> | undefined;
  readonly thinking: ThinkingBudget | undefined;
  readonly createReader: (promptTokens: Int32Array) => StartedGeneration["createReader"];
}

const defaultMaxRounds = 8;

/** A conversation that may go on by itself: tools that the model calls are run, and the model is told what they said. */
export class LibraryChat {
  readonly #model: LanguageModel;
  readonly #options: ChatOptions;
  readonly #messages: TemplateMessage[];
  readonly #given: number;
  #rounds = 0;
  #tools: Promise<ToolSet> | undefined;

  constructor(model: LanguageModel, messages: Conversation, options: ChatOptions) {
    const { maxRounds = defaultMaxRounds } = options;
    if (!Number.isSafeInteger(maxRounds) || maxRounds < 1)
      throw new OctavoError("invalid_option", "maxRounds: expected an integer of at least 1", {
        param: "maxRounds",
      });
    this.#model = model;
    this.#options = options;
    this.#messages = [...messages];
    this.#given = messages.length;
  }

  /** The next request: the conversation so far as the template lays it out. */
  async prepare(
    render: (input: TemplateInput) => string,
  ): Promise<{ readonly text: string; readonly images: readonly Uint8Array[]; readonly terms: ChatTerms }> {
    const { documents, addGenerationPrompt, continueFinalMessage, variables, thinkingBudget } = this.#options;
    const { wire } = await this.#toolSet();
    const layout = given({ documents, addGenerationPrompt, continueFinalMessage, variables });
    const tools = wire.length > 0 && this.#options.toolChoice !== "none" ? { tools: wire } : {};
    const images = this.#messages.flatMap((message) => imagesOf(message));
    if (images.length > 0 && this.#model.images === undefined)
      throw new OctavoError(
        "invalid_request",
        `${this.#model.name} takes no images: ${this.#model.imageRefusal ?? "it reads text only"}.`,
        { param: "messages" },
      );
    const rendered = render({ messages: this.#messages.map(withoutImages), ...tools, ...layout });
    const text =
      images.length === 0 ? rendered : ((await this.#model.images?.expand(rendered, images)) ?? rendered);
    const fields = {
      messages: [],
      tools: wire.length > 0 ? wire : null,
      tool_choice: choiceOf(this.#options.toolChoice),
      parallel_tool_calls: this.#options.parallelToolCalls,
      skip_special_tokens: this.#options.skipSpecialTokens,
      continue_final_message: continueFinalMessage,
    } as unknown as ChatOutputFields;
    const output = new ChatOutput(this.#formats(), this.#model.tokenizer, fields, text);
    const own = this.#options.constraint;
    const constraint = output.constraint(own === undefined ? undefined : { spec: own, param: "constraint" });
    const decoding = { skipSpecialTokens: this.#options.skipSpecialTokens ?? true };
    const { keptSpecialTokens } = output;
    return {
      text,
      images,
      terms: {
        constraint: constraint?.spec,
        keptSpecialTokens,
        thinking: output.thinkingBudget(thinkingBudget),
        createReader: (promptTokens) => {
          const kept = keptSpecialTokens === undefined ? decoding : { ...decoding, keptSpecialTokens };
          const isPlain = output.createReader(promptTokens, kept, constraint !== undefined) === undefined;
          if (isPlain) return undefined;
          return () => output.createReader(promptTokens, kept, constraint !== undefined) ?? plainReader;
        },
      },
    };
  }

  /** Runs the calls of a round, all at once, and goes on while all of them can be run and the bound allows it. */
  readonly next =
    (start: () => Promise<StartedGeneration>): NextPart =>
    async (result) => {
      const { runnable } = await this.#toolSet();
      const { toolCalls } = result;
      this.#messages.push(messageOf(result));
      this.#rounds += 1;
      const canRun = toolCalls.length > 0 && toolCalls.every(({ name }) => runnable.has(name));
      const { maxRounds = defaultMaxRounds, signal } = this.#options;
      if (!canRun || this.#rounds >= maxRounds || result.sequences.length > 1)
        return { ...result, messages: this.#messages.slice(this.#given) };
      const said = await Promise.all(
        toolCalls.map(async (call): Promise<TemplateMessage> => {
          const tool = runnable.get(call.name);
          const content = tool === undefined ? "" : await runTool(tool, call, signal);
          return { role: "tool", tool_call_id: call.id, name: call.name, content };
        }),
      );
      if (signal?.aborted === true)
        throw new OctavoError("request_cancelled", "The generation was aborted.", { cause: signal.reason });
      this.#messages.push(...said);
      return start;
    };

  #toolSet(): Promise<ToolSet> {
    const { layout } = this.#formats().tools ?? {};
    const canBeStrict = [layout?.trigger, layout?.beginsAnswer, layout?.answer].some(
      (way) => way !== undefined,
    );
    this.#tools ??= toolSet(this.#options.tools ?? [], canBeStrict);
    return this.#tools;
  }

  #formats(): ReturnType<typeof resolveFormats> {
    const templates = [this.#model.chatTemplate, this.#model.namedChatTemplates.get("tool_use")];
    const sources = templates.flatMap((template) => (template === undefined ? [] : [template.source]));
    return resolveFormats({ toolCallParser: "auto", reasoningParser: "auto" }, sources);
  }
}

const plainReader = {
  push: (text: string) => (text === "" ? [] : [{ content: text }]),
  finish: () => [],
};

function choiceOf(choice: ChatOptions["toolChoice"]): unknown {
  return typeof choice === "object" ? { type: "function", function: { name: choice.name } } : choice;
}

function imagesOf({ content }: TemplateMessage): Uint8Array[] {
  if (typeof content === "string" || content === null) return [];
  return content.flatMap((part) => {
    if (part.type !== "image") return [];
    if (part.image instanceof Uint8Array) return [part.image];
    throw new OctavoError("invalid_request", "An image part needs `image`, the bytes of its file.", {
      param: "messages",
    });
  });
}

/** Images may be large, and templates have no use for them. */
function withoutImages(message: TemplateMessage): TemplateMessage {
  const { content } = message;
  if (typeof content === "string" || content === null) return message;
  return { ...message, content: content.map((part) => (part.type === "image" ? { type: "image" } : part)) };
}

/** As templates take it: arguments are an object. */
function messageOf({ text, reasoning, toolCalls }: GenerationResult): TemplateMessage {
  return {
    role: "assistant",
    content: text,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls.map(wireCall) }),
  };
}

function wireCall({ id, name, arguments: value }: ToolCall): unknown {
  return { id, type: "function", function: { name, arguments: typeof value === "string" ? {} : value } };
}
