import type { Attributes, LlmSpan } from "../span/llm-span.js";
import { AttributeList } from "./attribute-list.js";
import { totalTokens } from "./openinference.js";

/**
 * The names that dashboards built on traceAI's instrumentation of vLLM and Ray Serve read: `fi.span.kind` beside
 * OpenInference's spellings of model and token counts, and `llm.vllm.*` for how the engine served the request. Where a
 * request saw many steps, `batch_size` is their mean and `prefill_in_batch` their greatest: jitter comes from the
 * largest prefill, which a mean hides. `feature`, `inference.backend` and `gpu_seconds` are what costs are attributed by.
 * A server says which replica it is and how many requests waited in it; the rest of `ray.serve.*` and `cluster.*` is the
 * deployment's to say, with `usingAttributes`.
 */
export function traceAiAttributes(span: LlmSpan): Attributes {
  const { usage, serving, context, response, request, operation } = span;
  return new AttributeList()
    .set(
      "fi.span.kind",
      operation === "embeddings" ? "EMBEDDING" : operation === "rerank" ? "RERANKER" : "LLM",
    )
    .set("llm.model_name", response.model ?? request.model)
    .set("llm.token_count.prompt", usage.inputTokens)
    .set("llm.token_count.completion", usage.outputTokens)
    .set("llm.token_count.total", totalTokens(span))
    .set("llm.system", span.provider)
    .set("llm.vllm.engine_version", serving?.engineVersion)
    .set("llm.vllm.quantization", serving?.quantization)
    .set("llm.vllm.batch_size", serving?.batchSize?.mean)
    .set("llm.vllm.prefill_in_batch", serving?.prefillTokensInBatch?.max)
    .set("llm.vllm.cache_hit_ratio", serving?.cacheHitRatio)
    .set("ray.serve.replica_id", serving?.replicaId)
    .set("cluster.queue_depth", serving?.queueDepth)
    .set("tenant_id", context.tenantId)
    .set("feature", context.feature)
    .set("inference.backend", serving === undefined ? undefined : span.provider)
    .set("gpu_seconds", serving?.kernelMs === undefined ? undefined : serving.kernelMs / 1000)
    .set("session.id", context.sessionId)
    .set("user.id", context.userId)
    .build();
}
