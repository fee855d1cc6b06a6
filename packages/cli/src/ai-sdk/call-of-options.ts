import {
  type LanguageModelV3CallOptions,
  type LanguageModelV3Prompt,
  type LanguageModelV3ToolResultPart,
  type SharedV3Warning,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import type { ChatTool } from "@octavo/protocol";
import type { ModelCall, WireMessage } from "./model-source.js";

/** A call in the wire's terms, and what of it means nothing to Octavo. */
export function callOf(options: LanguageModelV3CallOptions): {
  readonly call: ModelCall;
  readonly warnings: SharedV3Warning[];
} {
  const { responseFormat: format, toolChoice } = options;
  const warnings: SharedV3Warning[] = [];
  const tools = (options.tools ?? []).flatMap((tool): ChatTool[] => {
    if (tool.type === "function") return [wireTool(tool)];
    warnings.push({ type: "unsupported", feature: `provider-defined tool ${tool.id}` });
    return [];
  });
  const json =
    format?.type !== "json"
      ? undefined
      : format.schema === undefined
        ? true
        : { name: format.name ?? "response", schema: format.schema };
  return {
    warnings,
    call: {
      messages: options.prompt.flatMap(messagesOf),
      tools,
      toolChoice: toolChoice?.type === "tool" ? { name: toolChoice.toolName } : (toolChoice?.type ?? "auto"),
      json,
      maxTokens: options.maxOutputTokens,
      temperature: options.temperature,
      topP: options.topP,
      topK: options.topK,
      presencePenalty: options.presencePenalty,
      frequencyPenalty: options.frequencyPenalty,
      seed: options.seed,
      stop: options.stopSequences,
      more: options.providerOptions?.["octavo"] ?? {},
      headers: options.headers ?? {},
      signal: options.abortSignal,
    },
  };
}

function wireTool(
  tool: Extract<NonNullable<LanguageModelV3CallOptions["tools"]>[number], { type: "function" }>,
): ChatTool {
  const { name, description, inputSchema, strict } = tool;
  return {
    type: "function",
    function: {
      name,
      ...(description !== undefined && { description }),
      parameters: inputSchema as Record<string, unknown>,
      ...(strict !== undefined && { strict }),
    },
  };
}

function messagesOf(message: LanguageModelV3Prompt[number]): readonly WireMessage[] {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }];
    case "user":
      return [{ role: "user", content: message.content.map(textOf).join("") }];
    case "assistant":
      return [assistantMessage(message.content)];
    case "tool":
      return message.content.flatMap((part) =>
        part.type === "tool-result"
          ? [{ role: "tool" as const, tool_call_id: part.toolCallId, content: resultText(part.output) }]
          : [],
      );
  }
}

type AssistantContent = Extract<LanguageModelV3Prompt[number], { role: "assistant" }>["content"];

function assistantMessage(content: AssistantContent): WireMessage {
  const texts: string[] = [];
  const thoughts: string[] = [];
  const calls: NonNullable<WireMessage["tool_calls"]>[number][] = [];
  for (const part of content) {
    if (part.type === "text") texts.push(part.text);
    else if (part.type === "reasoning") thoughts.push(part.text);
    else if (part.type === "tool-call") {
      const named = { name: part.toolName, arguments: JSON.stringify(part.input ?? {}) };
      calls.push({ id: part.toolCallId, type: "function", function: named });
    } else throw unsupported(`${part.type} parts in an assistant's message`);
  }
  return {
    role: "assistant",
    content: texts.join(""),
    ...(thoughts.length > 0 && { reasoning: thoughts.join("") }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

type UserPart = Extract<LanguageModelV3Prompt[number], { role: "user" }>["content"][number];

/** Text, and files of text as they are. */
function textOf(part: UserPart): string {
  if (part.type === "text") return part.text;
  const { mediaType, data } = part;
  if (!mediaType.startsWith("text/") || data instanceof URL)
    throw unsupported(`files of type ${mediaType}: models are served as text`);
  return Buffer.from(data as string, typeof data === "string" ? "base64" : undefined).toString("utf8");
}

function resultText(output: LanguageModelV3ToolResultPart["output"]): string {
  switch (output.type) {
    case "text":
    case "error-text":
      return output.value;
    case "json":
    case "error-json":
      return JSON.stringify(output.value);
    case "execution-denied":
      return output.reason ?? "The user denied this call.";
    case "content":
      return output.value
        .map((part) => {
          if (part.type === "text") return part.text;
          throw unsupported(`${part.type} parts in a tool's result`);
        })
        .join("");
  }
}

function unsupported(functionality: string): UnsupportedFunctionalityError {
  return new UnsupportedFunctionalityError({ functionality });
}
