import type {
  ChatTemplate,
  LanguageModel,
  TemplateInput,
  TemplateMessage,
  TemplatePart,
} from "@octavo/engine";
import { asFunction, inputName } from "@octavo/engine/chat";
import { detectContentFormat } from "@octavo/engine/parts";
import { TemplateWorkError } from "@octavo/text/template/template-work";
import { OctavoError, type ChatCompletionRequest, type ChatMessage } from "@octavo/protocol";
import { encodePrompt } from "./encode-prompt.js";
import type { MediaFetcher } from "../media/media-fetcher.js";
import { imagesOf } from "./image-parts.js";
import { invalidField, unsupportedField } from "@octavo/protocol/refusal";
import type { Caller } from "./run.js";

/** Fields that shape a chat prompt; `/tokenize` has them too. */
export type ChatPromptFields = Pick<
  ChatCompletionRequest,
  | "messages"
  | "tools"
  | "documents"
  | "chat_template"
  | "chat_template_kwargs"
  | "add_generation_prompt"
  | "continue_final_message"
  | "add_special_tokens"
> &
  Partial<Pick<ChatCompletionRequest, "tool_choice" | "reasoning_effort">>;

export interface ChatPromptOptions {
  readonly trustRequestChatTemplate: boolean;
  readonly chatTemplateContentFormat: "auto" | "string" | "openai";
  readonly excludeToolsWhenToolChoiceNone: boolean;
  readonly allowedMediaDomains: readonly string[];
}

/** Steps of a model's template on the event loop, some tens of milliseconds; what takes more is rendered in a worker. */
const maxLoopWork = 200_000;

/** Template variables that the server sets; a request must not override them. */
const reservedVariables = new Set([
  "messages",
  "tools",
  "documents",
  "add_generation_prompt",
  "continue_final_message",
  "chat_template",
  "tokenize",
  "bos_token",
  "eos_token",
  "raise_exception",
  "strftime_now",
  "range",
  "namespace",
]);

/** Reasoning switches that clients send to every model; templates without them ignore them. */
const widelySentVariables = new Set(["enable_thinking", "thinking", "preserve_thinking", "reasoning_effort"]);

export interface ChatPrompt {
  readonly text: string;
  readonly tokens: Int32Array;
  /** In the order of their places in the text; empty where images are not taken. */
  readonly images: readonly Uint8Array[];
}

interface ChatPromptUse {
  /** A longer prompt cannot be served; default any length may be. */
  readonly maxTokens?: number | undefined;
  /** Where images come from that lie elsewhere; without it images are refused. */
  readonly media?: MediaFetcher;
}

/** Renders the messages with the model's template, or the request's if trusted, and tokenises the text: up to `maxTokens`. */
export async function chatPrompt(
  model: LanguageModel,
  fields: ChatPromptFields,
  options: ChatPromptOptions,
  caller: Pick<Caller, "account" | "signal" | "hold">,
  { maxTokens, media }: ChatPromptUse = {},
): Promise<ChatPrompt> {
  const sources = imagesOf(
    fields.messages,
    media === undefined ? undefined : model,
    options.allowedMediaDomains,
  );
  model.images?.checkCount(sources.length);
  const rendered = await renderChatPrompt(model, fields, options, caller);
  const images = (await media?.fetchAll(sources, caller)) ?? [];
  const text = images.length === 0 ? rendered : ((await model.images?.expand(rendered, images)) ?? rendered);
  // templates write BOS themselves, so none is added unless requested
  const addSpecialTokens = fields.add_special_tokens ?? false;
  const encoding = { addSpecialTokens, maxTokens };
  return { text, tokens: await encodePrompt(model, text, encoding, caller, "messages"), images };
}

async function renderChatPrompt(
  model: LanguageModel,
  fields: ChatPromptFields,
  options: ChatPromptOptions,
  caller: Pick<Caller, "account" | "signal">,
): Promise<string> {
  if (fields.continue_final_message === true && fields.add_generation_prompt === true) {
    throw invalidField("continue_final_message", "it and add_generation_prompt exclude each other");
  }
  const requested = fields.chat_template ?? undefined;
  if (requested !== undefined && !options.trustRequestChatTemplate) {
    throw unsupportedField(
      "chat_template",
      "templates in requests are off; the server's operator can allow them with --trust-request-chat-template",
    );
  }
  const hasTools = fields.tools !== undefined && fields.tools !== null && fields.tools.length > 0;
  const template = requested === undefined ? modelTemplate(model, hasTools) : undefined;
  const { account, signal } = caller;
  if (template !== undefined) {
    const input = templateInput(fields, template, options, model.images?.placeholder);
    try {
      return template.render(input, maxLoopWork);
    } catch (error) {
      if (!(error instanceof TemplateWorkError)) throw error;
      return model.renderRequestTemplate(template.source, input, signal, account.tenant);
    }
  }
  const source = requested ?? "";
  const contentFormat = detectContentFormat(source);
  const input = templateInput(fields, { source, contentFormat }, options, model.images?.placeholder);
  return model.renderRequestTemplate(source, input, signal, account.tenant);
}

function modelTemplate(model: LanguageModel, hasTools: boolean): ChatTemplate {
  const template = (hasTools ? model.namedChatTemplates.get("tool_use") : undefined) ?? model.chatTemplate;
  if (template !== undefined) return template;
  const message = `the model ${model.name} has no chat template; start the server with --chat-template FILE, or use /v1/completions`;
  throw new OctavoError("template_error", message, { param: "messages" });
}

function templateInput(
  fields: ChatPromptFields,
  template: Pick<ChatTemplate, "source" | "contentFormat" | "variables">,
  options: ChatPromptOptions,
  placeholder: string | undefined,
): TemplateInput {
  const { chatTemplateContentFormat: chosen } = options;
  const format = chosen === "auto" ? template.contentFormat : chosen === "openai" ? "parts" : "string";
  const isText = ({ role }: ChatMessage, index: number): boolean =>
    format === "string" || (format === "text_then_parts" && index === 0 && role !== "user");
  const given = fields.messages.map((message, index) =>
    templateMessage(message, index, isText(message, index) ? placeholder : "parts"),
  );
  const messages = /["']developer["']/.test(template.source) ? given : withoutDeveloper(given);
  const dropsTools = options.excludeToolsWhenToolChoiceNone && fields.tool_choice === "none";
  const variables = templateVariables(fields, template.variables);
  return {
    messages,
    ...(fields.tools && fields.tools.length > 0 && !dropsTools
      ? { tools: fields.tools.map(asFunction) }
      : {}),
    ...(fields.documents ? { documents: fields.documents } : {}),
    addGenerationPrompt: fields.add_generation_prompt ?? fields.continue_final_message !== true,
    continueFinalMessage: fields.continue_final_message ?? false,
    ...(variables === undefined ? {} : { variables }),
  };
}

/** Variables for the template; names that it does not read are rejected, since they would have no effect. */
function templateVariables(
  fields: ChatPromptFields,
  known: ReadonlySet<string> | undefined,
): Readonly<Record<string, unknown>> | undefined {
  const given = fields.chat_template_kwargs ?? {};
  const reserved = Object.keys(given).find((key) => reservedVariables.has(key));
  if (reserved !== undefined) {
    const param = `chat_template_kwargs.${reserved}`;
    throw invalidField(param, "this variable is set by the server");
  }
  const unknown = Object.keys(given).find(
    (key) => known !== undefined && !known.has(key) && !widelySentVariables.has(key),
  );
  if (unknown !== undefined) {
    const param = `chat_template_kwargs.${unknown.slice(0, 100)}`;
    throw invalidField(param, "the model's chat template has no variable of this name");
  }
  const variables = fields.reasoning_effort ? { reasoning_effort: fields.reasoning_effort, ...given } : given;
  return Object.keys(variables).length === 0 ? undefined : variables;
}

/** For templates that do not know `developer`: it becomes `system`, and several of those one in front, as in vLLM. */
function withoutDeveloper(messages: readonly TemplateMessage[]): readonly TemplateMessage[] {
  if (messages.every(({ role }) => role !== "developer")) return messages;
  const renamed = messages.map((message) =>
    message.role === "developer" ? { ...message, role: "system" } : message,
  );
  const systems = renamed.filter(({ role }) => role === "system");
  if (systems.length === 1 && renamed[0] === systems[0]) return renamed;
  const texts = systems.map(({ content }) => plainText(content ?? "")).filter((text) => text !== "");
  return [
    { role: "system", content: texts.join("\n\n") },
    ...renamed.filter(({ role }) => role !== "system"),
  ];
}

/** `layout`: contents stay in parts, or else what stands for an image in their text. */
function templateMessage(message: ChatMessage, index: number, layout: string | undefined): TemplateMessage {
  const reasoning = message.reasoning ?? message.reasoning_content ?? undefined;
  return {
    role: message.role,
    content: messageContent(message, layout),
    ...(message.name ? { name: message.name } : {}),
    ...(message.tool_calls && message.tool_calls.length > 0
      ? { tool_calls: message.tool_calls.map((call, at) => templateToolCall(call, index, at)) }
      : {}),
    ...(message.tool_call_id ? { tool_call_id: message.tool_call_id } : {}),
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
  };
}

/** A text or parts, never null, as templates take no part of a missing content; what tools say is a text always. As vLLM. */
function messageContent(
  message: ChatMessage,
  layout: string | undefined,
): Exclude<TemplateMessage["content"], null> {
  const content = message.content ?? message.refusal ?? [];
  const parts: readonly TemplatePart[] =
    typeof content === "string"
      ? [{ type: "text", text: content }]
      : content.map((part) => (part.type === "text" ? part : { type: "image" }));
  if (layout === "parts" && message.role !== "tool") return parts;
  return typeof content === "string" ? content : plainText(parts, layout);
}

/** `placeholder`: what stands for an image. */
function plainText(content: Exclude<TemplateMessage["content"], null>, placeholder = ""): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : placeholder)).join("\n");
}

type ToolCall = NonNullable<ChatMessage["tool_calls"]>[number];

/** Templates iterate over arguments, so OpenAI's JSON text is parsed into an object, as in vLLM. */
function templateToolCall(call: ToolCall, messageIndex: number, callIndex: number): unknown {
  const param = `messages[${messageIndex}].tool_calls[${callIndex}].function.arguments`;
  const made =
    call.type === "custom"
      ? { name: call.custom.name, arguments: { [inputName]: call.custom.input } }
      : { name: call.function.name, arguments: parseArguments(call.function.arguments, param) };
  return { ...(call.id ? { id: call.id } : {}), type: "function", function: made };
}

function parseArguments(
  text: Extract<ToolCall, { readonly function: unknown }>["function"]["arguments"],
  param: string,
): Readonly<Record<string, unknown>> {
  if (typeof text === "object" && text !== null) return text;
  if (text === undefined || text === null || text.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalidField(param, "the text is not valid JSON", cause);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw invalidField(param, "expected a JSON object");
}
