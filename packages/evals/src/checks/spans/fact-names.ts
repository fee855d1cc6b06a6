/** Where a fact is found: names in order of trust, with what a number is multiplied by. */
export type FactNames = readonly (readonly [name: string, scale: number])[];

const seconds = 1000;

/**
 * The names under which spans hold what checks read. Dots: attributes, of OpenTelemetry's generative AI conventions with
 * vLLM's `gen_ai.latency.*` and Octavo's `octavo.*`, of OpenInference (`llm.token_count.*`), and of the guides to vLLM and
 * Ray Serve (`llm.vllm.*`, `ray.serve.*`, `cluster.*`, `tenant_id`). Without dots: columns of Octavo's local store.
 */
export const factNames = {
  caseId: [["octavo.case.id", 1]],
  condition: [["octavo.condition", 1]],
  cluster: [
    ["gen_ai.conversation.id", 1],
    ["session.id", 1],
    ["session_id", 1],
  ],
  tenant: [
    ["octavo.tenant.id", 1],
    ["tenant_id", 1],
    ["tenant", 1],
  ],
  replica: [
    ["octavo.replica.id", 1],
    ["ray.serve.replica_id", 1],
    ["replica", 1],
    ["service.instance.id", 1],
  ],
  tags: [
    ["octavo.tags", 1],
    ["tag.tags", 1],
    ["tags", 1],
  ],
  firstTokenMs: [
    ["octavo.stream.time_to_first_token", seconds],
    ["gen_ai.latency.time_to_first_token", seconds],
    ["gen_ai.response.time_to_first_chunk", seconds],
    ["ttft_ms", 1],
  ],
  promptTokens: [
    ["gen_ai.usage.input_tokens", 1],
    ["llm.token_count.prompt", 1],
    ["input_tokens", 1],
  ],
  completionTokens: [
    ["gen_ai.usage.output_tokens", 1],
    ["llm.token_count.completion", 1],
    ["output_tokens", 1],
  ],
  cachedTokens: [
    ["gen_ai.usage.cache_read.input_tokens", 1],
    ["llm.token_count.prompt_details.cache_read", 1],
    ["cached_tokens", 1],
  ],
  cacheHitRatio: [
    ["octavo.cache_hit_ratio", 1],
    ["llm.vllm.cache_hit_ratio", 1],
    ["cache_hit_ratio", 1],
  ],
  preemptions: [
    ["octavo.preemptions", 1],
    ["preemptions", 1],
  ],
  recomputedTokens: [["octavo.recomputed_tokens", 1]],
  evictedPrefixTokens: [["octavo.evicted_prefix_tokens", 1]],
  batchSize: [
    ["octavo.batch_size.mean", 1],
    ["llm.vllm.batch_size", 1],
    ["batch_size", 1],
  ],
  prefillTokensInBatch: [
    ["octavo.prefill_in_batch.max", 1],
    ["llm.vllm.prefill_in_batch", 1],
    ["prefill_in_batch", 1],
  ],
  queueDepth: [
    ["cluster.queue_depth", 1],
    ["octavo.queue_depth", 1],
    ["queue_depth", 1],
  ],
  replicaCount: [
    ["cluster.replica_count", 1],
    ["octavo.replica_count", 1],
    ["replica_count", 1],
  ],
  queueMs: [
    ["gen_ai.latency.time_in_queue", seconds],
    ["queue_ms", 1],
  ],
  failure: [
    ["error.type", 1],
    ["error_type", 1],
  ],
  finishReason: [
    ["gen_ai.response.finish_reasons", 1],
    ["llm.finish_reason", 1],
    ["finish_reason", 1],
  ],
  responseId: [
    ["gen_ai.response.id", 1],
    ["response_id", 1],
  ],
  output: [
    ["gen_ai.output.messages", 1],
    ["output.value", 1],
  ],
  gapCount: [["octavo.gap.count", 1]],
  gapP99Ms: [
    ["octavo.gap.p99", seconds],
    ["gap_p99_ms", 1],
  ],
  gapMaxMs: [
    ["octavo.gap.max", seconds],
    ["gap_max_ms", 1],
  ],
  slowGapCause: [
    ["octavo.slowest_gap.cause", 1],
    ["slowest_gap_cause", 1],
  ],
  slowGapMs: [["octavo.slowest_gap.duration", seconds]],
  slowGapUsualMs: [["octavo.slowest_gap.usual", seconds]],
  slowGapCulprit: [
    ["octavo.slowest_gap.culprit", 1],
    ["slowest_gap_culprit", 1],
  ],
} as const satisfies Readonly<Record<string, FactNames>>;

export type Fact = keyof typeof factNames;

/** Scores of evaluators that were written on the span itself: `octavo.score.NAME`. */
export const scorePrefix = "octavo.score.";

/** A span that has one of these is a call of a model that writes text. */
export const callMarks: Readonly<Record<string, ReadonlySet<string>>> = {
  "gen_ai.operation.name": new Set(["chat", "text_completion", "generate_content"]),
  operation: new Set(["chat", "text_completion"]),
  "openinference.span.kind": new Set(["LLM"]),
  "fi.span.kind": new Set(["LLM"]),
};
