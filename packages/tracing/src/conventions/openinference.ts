import type { Attributes, CapturedMessage, LlmSpan, MessagePart } from "../span/llm-span.js";
import { AttributeList, jsonText } from "./attribute-list.js";

/**
 * OpenInference's names (Arize-ai/openinference, `openinference-semantic-conventions` 2.12): flat `llm.*` with indices
 * in the names of lists. It has none for a time to first token.
 */
export function openInferenceAttributes(span: LlmSpan): Attributes {
  const { request, response, usage, context, operation } = span;
  const isEmbedding = operation === "embeddings";
  const model = response.model ?? request.model;
  const list = new AttributeList()
    .set("openinference.span.kind", spanKind(span))
    .set(modelName(span), model)
    .set("session.id", context.sessionId)
    .set("user.id", context.userId)
    .set("tag.tags", context.tags);
  if (context.metadata !== undefined) list.setJson("metadata", context.metadata);
  addTemplate(list, span);
  if (operation === "rerank") return list.build();
  list
    .set("llm.token_count.prompt", usage.inputTokens)
    .set("llm.token_count.completion", isEmbedding ? undefined : usage.outputTokens)
    .set("llm.token_count.total", totalTokens(span))
    .set("llm.token_count.prompt_details.cache_read", usage.cacheReadInputTokens)
    .set("llm.token_count.prompt_details.cache_write", usage.cacheWriteInputTokens)
    .set("llm.token_count.completion_details.reasoning", usage.reasoningOutputTokens)
    .set("llm.provider", span.provider)
    .set("llm.system", span.provider)
    .set("llm.invocation_parameters", jsonText(invocationParameters(span)));
  if (!isEmbedding) {
    list
      .set("llm.request.model_name", request.model)
      .set("llm.response.model_name", response.model)
      .set("llm.finish_reason", response.finishReasons?.[0]);
  }
  addContent(list, span);
  return list.build();
}

function spanKind({ operation }: LlmSpan): string {
  if (operation === "embeddings") return "EMBEDDING";
  return operation === "rerank" ? "RERANKER" : "LLM";
}

function modelName({ operation }: LlmSpan): string {
  if (operation === "embeddings") return "embedding.model_name";
  return operation === "rerank" ? "reranker.model_name" : "llm.model_name";
}

export function totalTokens({ usage }: LlmSpan): number | undefined {
  if (usage.inputTokens === undefined && usage.outputTokens === undefined) return undefined;
  return (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0);
}

/** Under the names that OpenAI's API has for them. */
function invocationParameters({ request }: LlmSpan): Readonly<Record<string, unknown>> {
  return {
    model: request.model,
    stream: request.stream,
    temperature: request.temperature,
    top_p: request.topP,
    top_k: request.topK,
    max_tokens: request.maxTokens,
    frequency_penalty: request.frequencyPenalty,
    presence_penalty: request.presencePenalty,
    seed: request.seed,
    stop: request.stopSequences,
    n: request.choiceCount,
    encoding_format: request.encodingFormats?.[0],
  };
}

function addTemplate(list: AttributeList, { context }: LlmSpan): void {
  const template = context.promptTemplate;
  if (template === undefined) return;
  list
    .set("llm.prompt_template.template", template.template)
    .set("llm.prompt_template.version", template.version);
  if (template.variables !== undefined) list.setJson("llm.prompt_template.variables", template.variables);
}

function addContent(list: AttributeList, { content, operation }: LlmSpan): void {
  if (content === undefined) return;
  const { systemInstructions, inputMessages, outputMessages, toolDefinitions, prompts } = content;
  const system: readonly CapturedMessage[] =
    systemInstructions.length === 0 ? [] : [{ role: "system", parts: systemInstructions }];
  const asked = [...system, ...inputMessages];
  for (const [index, message] of asked.entries()) addMessage(list, `llm.input_messages.${index}`, message);
  for (const [index, message] of outputMessages.entries())
    addMessage(list, `llm.output_messages.${index}`, message);
  for (const [index, tool] of toolDefinitions.entries())
    list.setJson(`llm.tools.${index}.tool.json_schema`, tool);
  for (const [index, prompt] of prompts.entries()) {
    const isEmbedding = operation === "embeddings";
    list.set(
      isEmbedding ? `embedding.embeddings.${index}.embedding.text` : `llm.prompts.${index}.prompt.text`,
      prompt,
    );
  }
  addValue(list, "input", asked, prompts);
  addValue(list, "output", outputMessages, []);
}

function addValue(
  list: AttributeList,
  prefix: "input" | "output",
  messages: readonly CapturedMessage[],
  texts: readonly string[],
): void {
  if (messages.length > 0) {
    list.setJson(`${prefix}.value`, messages).set(`${prefix}.mime_type`, "application/json");
  } else if (texts.length > 0) {
    list.set(`${prefix}.value`, texts.join("\n")).set(`${prefix}.mime_type`, "text/plain");
  }
}

function addMessage(list: AttributeList, prefix: string, { role, parts }: CapturedMessage): void {
  list.set(`${prefix}.message.role`, role);
  const text = parts.flatMap((part) => textOf(part)).join("");
  if (text !== "") list.set(`${prefix}.message.content`, text);
  let calls = 0;
  for (const part of parts) {
    if (part.type === "tool_call_response") list.set(`${prefix}.message.tool_call_id`, part.id);
    if (part.type !== "tool_call") continue;
    const call = `${prefix}.message.tool_calls.${calls++}.tool_call`;
    list
      .set(`${call}.id`, part.id)
      .set(`${call}.function.name`, part.name)
      .set(`${call}.function.arguments`, part.arguments);
  }
}

function textOf(part: MessagePart): readonly string[] {
  if (part.type === "text") return [part.content];
  return part.type === "tool_call_response" ? [part.response] : [];
}
