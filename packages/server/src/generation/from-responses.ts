import {
  chatCompletionRequest,
  type ChatCompletionRequest,
  parseWith,
  type ResponsesInputItem,
  type ResponsesRequest,
} from "@octavo/protocol";

/** A chat message being built. */
export interface DraftMessage {
  readonly role: string;
  content: string | null | readonly object[];
  reasoning?: string;
  tool_calls?: object[];
  readonly tool_call_id?: string;
}

/** Translates a Responses request into a chat request; `earlier` is the conversation that it continues. */
export function chatFromResponses(
  request: ResponsesRequest,
  earlier: readonly DraftMessage[],
): { readonly chat: ChatCompletionRequest; readonly conversation: readonly DraftMessage[] } {
  const conversation = [...earlier, ...inputMessages(request.input)];
  const system = request.instructions ? [{ role: "system", content: request.instructions }] : [];
  const chat = parseWith(chatCompletionRequest, {
    model: request.model,
    user: request.user,
    messages: [...system, ...conversation],
    tools: request.tools?.map(chatTool),
    tool_choice: toolChoice(request.tool_choice),
    parallel_tool_calls: request.parallel_tool_calls,
    max_completion_tokens: request.max_output_tokens,
    temperature: request.temperature,
    top_p: request.top_p,
    reasoning_effort: request.reasoning?.effort,
    response_format: responseFormat(request.text?.format),
    octavo: request.octavo,
    ...samplingFieldsOf(request),
  });
  return { chat, conversation };
}

/** The fields of tools and of choices stand one level higher here than in a chat. */
function chatTool(tool: NonNullable<ResponsesRequest["tools"]>[number]): unknown {
  if (tool.type === "function") {
    const { type, name, description, parameters, strict } = tool;
    return { type, function: { name, description, parameters, strict } };
  }
  const { type, name, description, format } = tool;
  const nested = format?.type === "grammar" ? { type: format.type, grammar: format } : format;
  return { type, custom: { name, description, format: nested } };
}

function toolChoice(choice: ResponsesRequest["tool_choice"]): unknown {
  if (typeof choice !== "object" || choice === null) return choice;
  if (choice.type !== "allowed_tools") return namedTool(choice);
  const { type, mode, tools } = choice;
  return { type, allowed_tools: { mode, tools: tools.map(namedTool) } };
}

function namedTool({ type, name }: { readonly type: string; readonly name: string }): object {
  return { type, [type]: { name } };
}

/** vLLM's additions, which have the same names in both. */
function samplingFieldsOf(request: ResponsesRequest): Partial<ChatCompletionRequest> {
  return {
    top_k: request.top_k,
    repetition_penalty: request.repetition_penalty,
    presence_penalty: request.presence_penalty,
    frequency_penalty: request.frequency_penalty,
    logit_bias: request.logit_bias,
    seed: request.seed,
    stop: request.stop,
    ignore_eos: request.ignore_eos,
    skip_special_tokens: request.skip_special_tokens,
    include_stop_str_in_output: request.include_stop_str_in_output,
    cache_salt: request.cache_salt,
    priority: request.priority,
    structured_outputs: request.structured_outputs,
  };
}

/** `json_schema` has its fields inline here, and in a nested object in chat completions. */
function responseFormat(format: NonNullable<ResponsesRequest["text"]>["format"]): unknown {
  if (format?.type !== "json_schema") return format;
  const { type, ...schema } = format;
  return { type, json_schema: schema };
}

function inputMessages(input: ResponsesRequest["input"]): readonly DraftMessage[] {
  if (typeof input === "string") return [{ role: "user", content: input }];
  const messages: DraftMessage[] = [];
  for (const item of input) addItem(messages, item);
  return messages;
}

/** Reasoning, text and calls of one assistant turn are separate items here, and one message in a chat. */
function addItem(messages: DraftMessage[], item: ResponsesInputItem): void {
  const last = messages.at(-1);
  const turn = last?.role === "assistant" ? last : undefined;
  if (isOutput(item)) {
    messages.push({ role: "tool", tool_call_id: item.call_id, content: textOf(item.output) });
  } else if (item.type === "function_call" || item.type === "custom_tool_call") {
    const { call_id: id, name } = item;
    const call =
      item.type === "function_call"
        ? { id, type: "function", function: { name, arguments: item.arguments } }
        : { id, type: "custom", custom: { name, input: item.input } };
    if (turn === undefined) messages.push({ role: "assistant", content: null, tool_calls: [call] });
    else (turn.tool_calls ??= []).push(call);
  } else if (item.type === "reasoning") {
    const reasoning = textOf(item.content ?? item.summary ?? []);
    if (reasoning !== "") messages.push({ role: "assistant", content: null, reasoning });
  } else if (
    item.role === "assistant" &&
    turn !== undefined &&
    turn.content === null &&
    turn.tool_calls === undefined
  ) {
    turn.content = contentOf(item.content);
  } else {
    messages.push({ role: item.role, content: contentOf(item.content) });
  }
}

type OutputItem = Extract<ResponsesInputItem, { readonly output: unknown }>;

function isOutput(item: ResponsesInputItem): item is OutputItem {
  return item.type === "function_call_output" || item.type === "custom_tool_call_output";
}

type Content = Extract<ResponsesInputItem, { readonly role: unknown }>["content"];

function contentOf(content: Content): string | readonly object[] {
  if (typeof content === "string") return content;
  const texts = content.flatMap((part) => (part.type === "input_image" ? [] : [part]));
  if (texts.length === content.length) return textOf(texts);
  return content.map((part) =>
    part.type === "input_image"
      ? { type: "image_url", image_url: { url: part.image_url } }
      : { type: "text", text: part.text },
  );
}

function textOf(content: string | readonly { readonly text: string }[]): string {
  return typeof content === "string" ? content : content.map((part) => part.text).join("\n");
}
