import type {
  ChatCompletionRequest,
  ChatMessage,
  CountTokensRequest,
  MessagesRequest,
} from "@octavo/protocol";
import { chatCompletionRequest, OctavoError, parseWith } from "@octavo/protocol";
import { invalidField } from "@octavo/protocol/refusal";

type Prompt = Pick<MessagesRequest, "messages" | "system" | "tool_choice">;
type Message = Prompt["messages"][number];
type Blocks = Exclude<Message["content"], string>;

/** Translates a Messages request into a chat request. Throws as a chat request would. */
export function chatFromMessages(request: MessagesRequest | CountTokensRequest): ChatCompletionRequest {
  const { tools, tool_choice: choice, thinking } = request;
  const format = request.output_config?.format ?? request.output_format;
  const hidesThinking = thinking?.type === "disabled" || thinking?.display === "omitted";
  return parseWith(chatCompletionRequest, {
    model: request.model,
    user: userOf(request),
    messages: [...systemMessage(request.system), ...request.messages.flatMap(chatMessages)],
    tools: tools?.map(({ name, description, input_schema: parameters, strict }) => ({
      type: "function",
      function: { name, description, parameters, strict },
    })),
    tool_choice: choice ? chatToolChoice(choice) : undefined,
    parallel_tool_calls: choice?.disable_parallel_tool_use === true ? false : undefined,
    chat_template_kwargs: {
      ...(thinking ? { enable_thinking: thinking.type !== "disabled" } : {}),
      ...request.chat_template_kwargs,
    },
    include_reasoning: !hidesThinking,
    reasoning_effort: request.output_config?.effort,
    response_format: format ? { type: "json_schema", json_schema: { schema: format.schema } } : undefined,
    ...("max_tokens" in request ? samplingFields(request) : {}),
  });
}

/** Translates field names in a chat request's error back to those of the Messages request. */
export function inNamesOfMessages(thrown: unknown, request: MessagesRequest): unknown {
  if (!(thrown instanceof OctavoError) || thrown.param === undefined) return thrown;
  const format = request.output_config?.format ? "output_config.format" : "output_format";
  const names: Readonly<Record<string, string>> = {
    [chatBudget]: budget,
    [chatSchema]: `${format}.schema`,
  };
  const param = names[thrown.param];
  if (param === undefined) return thrown;
  const message = thrown.message.replace(thrown.param, param);
  return new OctavoError(thrown.code, message, { param, cause: thrown });
}

const chatBudget = "thinking_token_budget";
const budget = "thinking.budget_tokens";
const chatSchema = "response_format.json_schema.schema";

function samplingFields(request: MessagesRequest): object {
  return {
    [chatBudget]: thinkingBudget(request),
    max_tokens: request.max_tokens,
    stream: request.stream,
    stop: request.stop_sequences,
    temperature: request.temperature,
    top_p: request.top_p,
    top_k: request.top_k,
    octavo: request.octavo,
  };
}

/** Thinking counts against `max_tokens`: a budget that uses all of them would leave no answer. */
function thinkingBudget({ thinking, max_tokens: maxTokens }: MessagesRequest): number | undefined {
  if (thinking?.type !== "enabled") return undefined;
  const { budget_tokens: tokens } = thinking;
  if (tokens < maxTokens) return tokens;
  throw invalidField(
    budget,
    `${tokens} leaves nothing for the answer; it must be less than max_tokens, which is ${maxTokens}`,
  );
}

/** Anthropic's `user`. */
function userOf(request: MessagesRequest | CountTokensRequest): string | undefined {
  const user = "metadata" in request ? request.metadata?.["user_id"] : undefined;
  return typeof user === "string" ? user : undefined;
}

function systemMessage(system: Prompt["system"]): readonly object[] {
  const text = typeof system === "string" ? system : (system ?? []).map((block) => block.text).join("\n");
  return text === "" ? [] : [{ role: "system", content: text }];
}

function chatToolChoice({ type, name }: NonNullable<Prompt["tool_choice"]>): unknown {
  if (type === "auto" || type === "none") return type;
  if (type === "any") return "required";
  if (name) return { type: "function", function: { name } };
  throw invalidField("tool_choice.name", "the tool to call is missing");
}

function chatMessages({ role, content }: Message): readonly object[] {
  if (typeof content === "string") return [{ role, content }];
  return role === "assistant" ? [assistantMessage(content)] : userMessages(content);
}

function assistantMessage(blocks: Blocks): Partial<ChatMessage> {
  const calls = blocks.flatMap((block) =>
    block.type === "tool_use"
      ? [{ id: block.id, type: "function" as const, function: { name: block.name, arguments: block.input } }]
      : [],
  );
  const thinking = blocks.flatMap((block) => (block.type === "thinking" ? [block.thinking] : []));
  const text = textOf(blocks);
  return {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...(thinking.length === 0 ? {} : { reasoning: thinking.join("\n") }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

/** Tool results come before the user's text, since templates expect them right after the calls. */
function userMessages(blocks: Blocks): readonly object[] {
  const results = blocks.flatMap((block) => {
    if (block.type !== "tool_result") return [];
    const { content } = block;
    const text = typeof content === "string" ? content : (content ?? []).map((part) => part.text).join("\n");
    return [{ role: "tool", tool_call_id: block.tool_use_id, content: text }];
  });
  const content = blocks.some(({ type }) => type === "image") ? partsOf(blocks) : textOf(blocks);
  return content === "" && results.length > 0 ? results : [...results, { role: "user", content }];
}

function partsOf(blocks: Blocks): readonly object[] {
  return blocks.flatMap((block): readonly object[] => {
    if (block.type === "text") return [{ type: "text", text: block.text }];
    if (block.type !== "image") return [];
    const { source } = block;
    const url = source.type === "url" ? source.url : `data:${source.media_type};base64,${source.data}`;
    return [{ type: "image_url", image_url: { url } }];
  });
}

function textOf(blocks: Blocks): string {
  return blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}
