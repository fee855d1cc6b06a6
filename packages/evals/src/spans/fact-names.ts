/** Where a fact is found: names in order of trust. Numbers under a name in `seconds` become milliseconds. */
export type FactNames = readonly (string | { readonly seconds: string })[];

/**
 * The names under which spans hold what checks read. Dots: attributes, of OpenTelemetry's generative AI conventions with
 * vLLM's `gen_ai.latency.*` and Octavo's `octavo.*`, of OpenInference (`llm.token_count.*`), and of the guides to vLLM and
 * Ray Serve (`llm.vllm.*`, `ray.serve.*`, `cluster.*`, `tenant_id`). Without dots: columns of Octavo's local store.
 */
export const factNames = {
  caseId: ["octavo.case.id"],
  condition: ["octavo.condition"],
  cluster: ["gen_ai.conversation.id", "session.id", "session_id"],
  owner: ["octavo.owner.id", "owner"],
  tenant: ["octavo.tenant.id", "tenant_id", "tenant"],
  replica: ["octavo.replica.id", "ray.serve.replica_id", "replica", "service.instance.id"],
  tags: ["octavo.tags", "tag.tags", "tags"],
  firstTokenMs: [
    { seconds: "octavo.stream.time_to_first_token" },
    { seconds: "gen_ai.latency.time_to_first_token" },
    { seconds: "gen_ai.response.time_to_first_chunk" },
    "ttft_ms",
  ],
  promptTokens: [
    "gen_ai.usage.input_tokens",
    "llm.token_count.prompt",
    "input_tokens",
    // of a request that was refused: not used, hence no usage
    "octavo.refused.input_tokens",
  ],
  completionTokens: ["gen_ai.usage.output_tokens", "llm.token_count.completion", "output_tokens"],
  cachedTokens: [
    "gen_ai.usage.cache_read.input_tokens",
    "llm.token_count.prompt_details.cache_read",
    "cached_tokens",
  ],
  cacheHitRatio: ["octavo.cache_hit_ratio", "llm.vllm.cache_hit_ratio", "cache_hit_ratio"],
  preemptions: ["octavo.preemptions", "preemptions"],
  recomputedTokens: ["octavo.recomputed_tokens"],
  evictedPrefixTokens: ["octavo.evicted_prefix_tokens"],
  batchSize: ["octavo.batch_size.mean", "llm.vllm.batch_size", "batch_size"],
  prefillTokensInBatch: ["octavo.prefill_in_batch.max", "llm.vllm.prefill_in_batch", "prefill_in_batch"],
  queueDepth: ["cluster.queue_depth", "octavo.queue_depth", "queue_depth"],
  replicaCount: ["cluster.replica_count", "octavo.replica_count", "replica_count"],
  queueMs: [{ seconds: "gen_ai.latency.time_in_queue" }, "queue_ms"],
  model: ["gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "model"],
  requestMaxTokens: ["gen_ai.request.max_tokens"],
  requestTemperature: ["gen_ai.request.temperature"],
  requestSeed: ["gen_ai.request.seed"],
  failure: ["error.type", "error_type"],
  finishReason: ["gen_ai.response.finish_reasons", "llm.finish_reason", "finish_reason"],
  responseId: ["gen_ai.response.id", "response_id"],
  output: ["gen_ai.output.messages", "output.value"],
  gapCount: ["octavo.gap.count"],
  gapP99Ms: [{ seconds: "octavo.gap.p99" }, "gap_p99_ms"],
  gapMaxMs: [{ seconds: "octavo.gap.max" }, "gap_max_ms"],
  firstTokenCause: ["octavo.first_token.cause", "first_token_cause"],
  failureMessage: ["error.message", "exception.message", "error_message"],
  slowGapCause: ["octavo.slowest_gap.cause", "slowest_gap_cause"],
  slowGapMs: [{ seconds: "octavo.slowest_gap.duration" }],
  slowGapUsualMs: [{ seconds: "octavo.slowest_gap.usual" }],
  route: ["octavo.gateway.route"],
  failedTarget: ["octavo.gateway.failed_target"],
  failedOutcome: ["octavo.gateway.failed_outcome"],
  slowGapCulprit: ["octavo.slowest_gap.culprit", "slowest_gap_culprit"],
} as const satisfies Readonly<Record<string, FactNames>>;

/** A fact about a call that spans may tell, whatever their writer names it. */
export type Fact = keyof typeof factNames;

/** Scores of evaluators that were written on the span itself: `octavo.score.NAME`. */
export const scorePrefix = "octavo.score.";

/** A span that has one of these is a call of a model that writes text. */
export const callMarks: Readonly<Record<string, ReadonlySet<string>>> = {
  "gen_ai.operation.name": new Set(["chat", "text_completion", "generate_content"]),
  operation: new Set(["chat", "text_completion"]),
  "openinference.span.kind": new Set(["LLM"]),
  "fi.span.kind": new Set(["LLM"]),
  // OpenLLMetry's spans without OpenTelemetry's own mark, and Langfuse's
  "llm.request.type": new Set(["chat", "completion"]),
  "langfuse.observation.type": new Set(["generation"]),
};
