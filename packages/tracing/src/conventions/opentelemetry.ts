import type { Attributes, CapturedMessage, LlmSpan, MessagePart, Spread } from "../span/llm-span.js";
import { AttributeList, parsedOrText } from "./attribute-list.js";

/**
 * OpenTelemetry's semantic conventions for generative AI (`semantic-conventions-genai`, all of it in development), with
 * `gen_ai.provider.name` for what was `gen_ai.system` and `cache_write` for what was `cache_creation`. Times are seconds.
 * The conventions say nothing of queues, batches and caches: the times are under vLLM's `gen_ai.latency.*`, the rest
 * under `octavo.*`.
 */
export function openTelemetryAttributes(span: LlmSpan): Attributes {
  const { request, response, usage, stream, context, outcome } = span;
  const list = new AttributeList()
    .set("gen_ai.operation.name", span.operation)
    .set("gen_ai.provider.name", span.provider)
    .set("server.address", span.server?.host)
    .set("server.port", span.server?.port)
    .set("gen_ai.request.model", request.model)
    .set("gen_ai.request.temperature", request.temperature)
    .set("gen_ai.request.top_p", request.topP)
    .set("gen_ai.request.top_k", request.topK)
    .set("gen_ai.request.max_tokens", request.maxTokens)
    .set("gen_ai.request.frequency_penalty", request.frequencyPenalty)
    .set("gen_ai.request.presence_penalty", request.presencePenalty)
    .set("gen_ai.request.seed", request.seed)
    .set("gen_ai.request.stop_sequences", request.stopSequences)
    .set("gen_ai.request.encoding_formats", request.encodingFormats)
    .set("gen_ai.output.type", request.outputType)
    .set("gen_ai.conversation.id", request.conversationId)
    .set("gen_ai.response.id", response.id)
    .set("gen_ai.response.model", response.model)
    .set("gen_ai.response.finish_reasons", response.finishReasons)
    .set("gen_ai.embeddings.dimension.count", response.embeddingDimensions)
    .set("openai.response.service_tier", response.serviceTier)
    .set("openai.response.system_fingerprint", response.systemFingerprint)
    .set("http.response.status_code", response.httpStatus)
    .set("gen_ai.usage.input_tokens", usage.inputTokens)
    .set("gen_ai.usage.output_tokens", usage.outputTokens)
    .set("gen_ai.usage.cache_read.input_tokens", usage.cacheReadInputTokens)
    .set("gen_ai.usage.cache_write.input_tokens", usage.cacheWriteInputTokens)
    .set("gen_ai.usage.reasoning.output_tokens", usage.reasoningOutputTokens)
    .set("user.id", context.userId)
    .set("session.id", context.sessionId)
    .set("octavo.tenant.id", context.tenantId)
    .set("octavo.owner.id", context.ownerId)
    .set("octavo.feature", context.feature)
    .set("octavo.tags", context.tags)
    .set("octavo.request.id", response.requestId)
    .set("octavo.response.tool_names", response.toolNames)
    .set("octavo.outcome", outcome.kind);
  if (context.metadata !== undefined) list.setJson("octavo.metadata", context.metadata);
  // required only where they differ from what is assumed
  if (request.stream === true) list.set("gen_ai.request.stream", true);
  if (request.choiceCount !== 1) list.set("gen_ai.request.choice.count", request.choiceCount);
  if (outcome.kind === "error" || outcome.kind === "aborted") list.set("error.type", outcome.errorType);
  if (stream !== undefined) {
    list
      .setSeconds("gen_ai.response.time_to_first_chunk", stream.timeToFirstChunkMs)
      .set("octavo.stream.chunks", stream.chunks)
      .setSeconds("octavo.stream.time_to_first_token", stream.timeToFirstTokenMs)
      .setSeconds("octavo.stream.reader_wait", stream.readerMs);
  }
  const gaps = stream?.gaps ?? span.serving?.gaps;
  if (gaps !== undefined) {
    list
      .set("octavo.gap.count", gaps.count)
      .setSeconds("octavo.gap.mean", gaps.meanMs)
      .setSeconds("octavo.gap.p50", gaps.p50Ms)
      .setSeconds("octavo.gap.p99", gaps.p99Ms)
      .setSeconds("octavo.gap.max", gaps.maxMs);
  }
  addServing(list, span);
  addContent(list, span);
  return list.build();
}

function addServing(list: AttributeList, { serving, durationMs }: LlmSpan): void {
  if (serving === undefined) return;
  list
    .setSeconds("gen_ai.latency.time_in_queue", serving.queueMs)
    .setSeconds("gen_ai.latency.time_to_first_token", serving.timeToFirstTokenMs)
    .setSeconds("gen_ai.latency.time_in_model_prefill", serving.prefillMs)
    .setSeconds("gen_ai.latency.time_in_model_decode", serving.decodeMs)
    .setSeconds("gen_ai.latency.e2e", durationMs)
    .set("octavo.engine.request_id", serving.requestId)
    .set("octavo.engine.version", serving.engineVersion)
    .set("octavo.engine.quantization", serving.quantization)
    .set("octavo.replica.id", serving.replicaId)
    .set("octavo.queue_depth", serving.queueDepth)
    .set("octavo.cache_hit_ratio", serving.cacheHitRatio)
    .set("octavo.preemptions", serving.preemptions)
    .set("octavo.recomputed_tokens", serving.recomputedTokens)
    .set("octavo.blocks_evicted", serving.blocksEvicted)
    .set("octavo.evicted_prefix_tokens", serving.evictedPrefixTokens)
    .set("octavo.draft_tokens", serving.draftTokens)
    .set("octavo.accepted_draft_tokens", serving.acceptedDraftTokens)
    .setSeconds("octavo.kernel_time", serving.kernelMs)
    .setSeconds("octavo.reader_lag", serving.readerLagMs)
    .set("octavo.first_token.cause", serving.firstTokenCause)
    .set("octavo.slowest_gap.cause", serving.slowestGap?.cause)
    .setSeconds("octavo.slowest_gap.duration", serving.slowestGap?.ms)
    .setSeconds("octavo.slowest_gap.usual", serving.slowestGap?.usualMs)
    .set("octavo.slowest_gap.culprit", serving.slowestGap?.culprit);
  addSpread(list, "octavo.batch_size", serving.batchSize);
  addSpread(list, "octavo.prefill_in_batch", serving.prefillTokensInBatch);
}

function addSpread(list: AttributeList, prefix: string, spread: Spread | undefined): void {
  if (spread === undefined) return;
  list.set(`${prefix}.min`, spread.min).set(`${prefix}.mean`, spread.mean).set(`${prefix}.max`, spread.max);
}

/** Content as JSON text in the shape of the conventions' message schemas. */
function addContent(list: AttributeList, { content }: LlmSpan): void {
  if (content === undefined) return;
  const { systemInstructions, inputMessages, outputMessages, toolDefinitions, prompts } = content;
  const asked = [
    ...inputMessages,
    ...prompts.map((prompt): CapturedMessage => ({
      role: "user",
      parts: [{ type: "text", content: prompt }],
    })),
  ];
  if (systemInstructions.length > 0)
    list.setJson("gen_ai.system_instructions", systemInstructions.map(partJson));
  if (asked.length > 0) list.setJson("gen_ai.input.messages", asked.map(messageJson));
  if (outputMessages.length > 0) list.setJson("gen_ai.output.messages", outputMessages.map(messageJson));
  if (toolDefinitions.length > 0) list.setJson("gen_ai.tool.definitions", toolDefinitions);
}

function messageJson({ role, parts, finishReason }: CapturedMessage): unknown {
  return {
    role,
    parts: parts.map(partJson),
    ...(finishReason === undefined ? {} : { finish_reason: finishReason }),
  };
}

function partJson(part: MessagePart): unknown {
  if (part.type === "tool_call") return { ...part, arguments: parsedOrText(part.arguments) };
  return part.type === "media" ? { type: part.kind } : part;
}
