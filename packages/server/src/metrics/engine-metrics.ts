import { type Engine, type EngineObserver, faultKinds, type FinishedRequest } from "@octavo/engine";
import {
  iterationTokenBuckets,
  oneTwoFiveBuckets,
  requestLatencyBuckets,
  sequencesPerRequestBuckets,
  timeToFirstTokenBuckets,
  tokenLatencyBuckets,
} from "./buckets.js";
import type { Counter, Registry } from "@octavo/tracing/prometheus";

export interface EngineMetricsOptions {
  readonly enableLegacyMetricNames: boolean;
  readonly enableFaultInjection: boolean;
  /** Labels of `vllm:cache_config_info`. */
  readonly cacheConfig: Readonly<Record<string, string>>;
}

/**
 * vLLM's engine metrics under their names. Gauges are read from the engine when scraped; everything else is counted as the
 * engine reports it.
 */
export function registerEngineMetrics(
  registry: Registry,
  engine: Engine,
  options: EngineMetricsOptions,
): EngineObserver {
  registerGauges(registry, engine, options);
  const counters = registerCounters(registry, options.enableLegacyMetricNames);
  const latencies = registerLatencies(registry, options.enableLegacyMetricNames);
  const sizes = registerSizes(registry, engine.maxModelLen);
  const countAccepted = countAcceptedPositions(
    registry,
    counters.acceptedPerPosition,
    engine.stats.numSpeculativeTokens ?? 0,
  );
  const tokens = new GeneratedTokens(counters.generationTokens);
  const faults = options.enableFaultInjection ? registerFaults(registry) : undefined;
  return {
    onStep(step) {
      sizes.iterationTokens.observe(step.prefillTokens + step.decodeTokens);
      latencies.step.observe(step.durationMs / 1000);
      counters.blocksEvicted.add(step.blocksEvicted);
      tokens.endStep(step.generatedTokens);
      for (const [rank, { bytes, milliseconds }] of (step.exchanges ?? []).entries()) {
        counters.exchangedBytes.add(bytes, { rank: String(rank) });
        counters.exchangeSeconds.add(milliseconds / 1000, { rank: String(rank) });
      }
      for (const { op, count, milliseconds } of step.opTimes ?? []) {
        counters.ops.add(count, { op });
        counters.opSeconds.add(milliseconds / 1000, { op });
      }
    },
    onPrefixLookup(queriedTokens, hitTokens) {
      counters.prefixQueries.add(queriedTokens);
      counters.prefixHits.add(hitTokens);
      counters.older?.queries.add(queriedTokens);
      counters.older?.hits.add(hitTokens);
    },
    onGrammarCompiled(seconds, cached) {
      counters.grammars.add(1, { cached: String(cached) });
      if (!cached) latencies.compile.observe(seconds);
    },
    onDraft(draftTokens, acceptedTokens) {
      counters.drafts.add(1);
      counters.draftTokens.add(draftTokens);
      counters.acceptedTokens.add(acceptedTokens);
      countAccepted(acceptedTokens);
    },
    onFault(kind) {
      faults?.add(1, { kind });
    },
    onStepFailed() {
      counters.stepsFailed.add(1);
    },
    onDeviceRenewed(seconds) {
      counters.devicesLost.add(1);
      counters.deviceLostSeconds.add(seconds);
    },
    onPreemption() {
      counters.preemptions.add(1);
    },
    onFirstToken(_request, timeToFirstTokenMs) {
      tokens.seen();
      latencies.timeToFirstToken.observe(timeToFirstTokenMs / 1000);
    },
    onInterToken(_request, gapMs) {
      tokens.seen();
      latencies.interToken.observe(gapMs / 1000);
      latencies.legacyInterToken?.observe(gapMs / 1000);
    },
    onFinished(request) {
      const { usage } = request;
      for (const reason of request.reasons) counters.success.add(1, { finished_reason: reason });
      // a request that ended before its prompt was computed did no prompt work
      if (request.record.timeToFirstTokenMs !== undefined) countPrompt(counters, usage);
      tokens.endRequest(request);
      observeLatencies(latencies, request);
      observeSizes(sizes, request);
    },
  };
}

function countPrompt(
  counters: ReturnType<typeof registerCounters>,
  { promptTokens, cachedTokens }: FinishedRequest["usage"],
): void {
  counters.promptTokens.add(promptTokens);
  counters.promptTokensCached.add(cachedTokens);
  counters.promptTokensBySource.add(promptTokens - cachedTokens, { source: "local_compute" });
  counters.promptTokensBySource.add(cachedTokens, { source: "local_cache_hit" });
}

/**
 * Counts generated tokens as they come, so that rates are right during long answers. If step records carry the number, it is
 * used. Otherwise first tokens and gaps between tokens are counted, and when a request ends the first tokens of its other
 * sequences, which have no event, are added.
 */
class GeneratedTokens {
  readonly #counter: Counter;
  #inStep = 0;
  #stepsHaveCounts = false;

  constructor(counter: Counter) {
    this.#counter = counter;
  }

  seen(): void {
    this.#inStep += 1;
  }

  endStep(generatedTokens: number | undefined): void {
    this.#stepsHaveCounts = generatedTokens !== undefined;
    this.#counter.add(generatedTokens ?? this.#inStep);
    this.#inStep = 0;
  }

  endRequest({ n, usage }: FinishedRequest): void {
    if (!this.#stepsHaveCounts) this.#counter.add(Math.max(0, Math.min(n, usage.completionTokens) - 1));
  }
}

function registerGauges(registry: Registry, engine: Engine, options: EngineMetricsOptions): void {
  const { running, waiting, oldestWaiting, usage, blocks, loras } = registry.gauges({
    running: ["vllm:num_requests_running", "Requests in model execution batches."],
    waiting: ["vllm:num_requests_waiting", "Requests waiting to be processed."],
    oldestWaiting: [
      "octavo:oldest_waiting_seconds",
      "Time in the queue of the oldest request that was never admitted; 0 if none waits.",
    ],
    usage: ["vllm:kv_cache_usage_perc", "KV cache usage. 1 means 100 percent usage."],
    blocks: ["octavo:kv_cache_blocks", "KV cache blocks by state; the states add up to the pool.", "state"],
    loras: [
      "vllm:lora_requests_info",
      "Adapters of running and waiting requests; the value is when they were last seen, in seconds since 1970.",
      "max_lora",
      "waiting_lora_adapters",
      "running_lora_adapters",
    ],
  });
  const legacyUsage = options.enableLegacyMetricNames
    ? registry.gauge(
        "vllm:gpu_cache_usage_perc",
        "KV cache usage under its name before vllm:kv_cache_usage_perc.",
      )
    : undefined;
  const { totalBlocks, blockSize } = engine.stats;
  const cacheConfig = {
    block_size: String(blockSize),
    num_gpu_blocks: String(totalBlocks),
    ...options.cacheConfig,
  };
  registry
    .gauge("vllm:cache_config_info", "Information of the cache configuration.", Object.keys(cacheConfig))
    .set(1, cacheConfig);
  registry.onCollect(() => {
    const stats = engine.stats;
    running.set(stats.running);
    waiting.set(stats.waiting);
    oldestWaiting.set(stats.oldestWaitingMs / 1000);
    usage.set(stats.kvCacheUsage);
    legacyUsage?.set(stats.kvCacheUsage);
    blocks.set(stats.freeBlocks, { state: "free" });
    blocks.set(stats.cachedBlocks, { state: "cached" });
    blocks.set(stats.totalBlocks - stats.freeBlocks - stats.cachedBlocks, { state: "used" });
    loras.clear();
    if (stats.adapters === undefined) return;
    loras.set(Math.floor(Date.now() / 1000), {
      max_lora: String(stats.adapters.max),
      waiting_lora_adapters: stats.adapters.waiting.join(","),
      running_lora_adapters: stats.adapters.running.join(","),
    });
  });
}

function registerCounters(registry: Registry, legacy: boolean) {
  const counters = registry.counters({
    prefixQueries: ["vllm:prefix_cache_queries_total", "Prefix cache queries, in tokens."],
    prefixHits: ["vllm:prefix_cache_hits_total", "Prefix cache hits, in tokens."],
    success: ["vllm:request_success_total", "Finished sequences by reason.", "finished_reason"],
    exchangedBytes: [
      "octavo:rank_exchanged_bytes_total",
      "Bytes of activations that ranks of tensor parallelism got from the others.",
      "rank",
    ],
    exchangeSeconds: [
      "octavo:rank_exchange_seconds_total",
      "Time that ranks spent getting them, waits for slower ranks included.",
      "rank",
    ],
    opSeconds: ["octavo:op_seconds_total", "With --op-times: time that each kind of op took.", "op"],
    ops: ["octavo:ops_total", "With --op-times: how many ran; on GPUs in so many dispatches.", "op"],
    stepsFailed: [
      "octavo:steps_failed_total",
      "Steps in which the backend failed; their requests are retried alone.",
    ],
    devicesLost: [
      "octavo:device_losses_total",
      "Times that the GPU was lost and came back; requests in flight were computed again.",
    ],
    deviceLostSeconds: [
      "octavo:device_lost_seconds_total",
      "Seconds until a lost GPU was back with the weights.",
    ],
    preemptions: ["vllm:num_preemptions_total", "Cumulative number of preemptions."],
    promptTokens: [
      "vllm:prompt_tokens_total",
      "Prompt tokens of finished requests whose prompt was computed.",
    ],
    promptTokensCached: ["vllm:prompt_tokens_cached_total", "Prompt tokens taken from the prefix cache."],
    promptTokensBySource: [
      "vllm:prompt_tokens_by_source_total",
      "Prompt tokens by where their KV came from.",
      "source",
    ],
    generationTokens: ["vllm:generation_tokens_total", "Generated tokens."],
    blocksEvicted: [
      "octavo:kv_cache_blocks_evicted_total",
      "Cached blocks reused for other content, or evicted by a fault.",
    ],
    grammars: [
      "octavo:grammar_requests_total",
      "Grammars requested, by whether they were already compiled.",
      "cached",
    ],
    drafts: ["vllm:spec_decode_num_drafts_total", "Number of spec decoding drafts."],
    draftTokens: ["vllm:spec_decode_num_draft_tokens_total", "Number of draft tokens."],
    acceptedTokens: ["vllm:spec_decode_num_accepted_tokens_total", "Number of accepted tokens."],
    acceptedPerPosition: [
      "vllm:spec_decode_num_accepted_tokens_per_pos_total",
      "Accepted tokens per draft position.",
      "position",
    ],
  });
  for (const reason of ["stop", "length", "abort"]) counters.success.add(0, { finished_reason: reason });
  const note = "under its name before vllm:prefix_cache_*.";
  const older = legacy
    ? registry.counters({
        queries: ["vllm:gpu_prefix_cache_queries_total", `Prefix cache queries, in tokens, ${note}`],
        hits: ["vllm:gpu_prefix_cache_hits_total", `Prefix cache hits, in tokens, ${note}`],
      })
    : undefined;
  return { ...counters, older };
}

function registerFaults(registry: Registry): Counter {
  const faults = registry.counter("octavo:faults_injected_total", "Injected faults that took effect.", [
    "kind",
  ]);
  for (const kind of faultKinds) faults.add(0, { kind });
  return faults;
}

function registerLatencies(registry: Registry, legacy: boolean) {
  const older = "Time between tokens under its name before vllm:inter_token_latency_seconds.";
  return {
    ...registry.histograms(requestLatencyBuckets, {
      e2e: ["vllm:e2e_request_latency_seconds", "Time from arrival to the last token, in seconds."],
      queue: ["vllm:request_queue_time_seconds", "Time spent waiting, in seconds."],
      inference: ["vllm:request_inference_time_seconds", "Time spent running, in seconds."],
      prefill: ["vllm:request_prefill_time_seconds", "Time spent in prefill, in seconds."],
      decode: ["vllm:request_decode_time_seconds", "Time spent in decode, in seconds."],
    }),
    ...registry.histograms(timeToFirstTokenBuckets, {
      timeToFirstToken: ["vllm:time_to_first_token_seconds", "Time to first token, in seconds."],
    }),
    ...registry.histograms(tokenLatencyBuckets, {
      timePerOutputToken: [
        "vllm:request_time_per_output_token_seconds",
        "Mean time per output token of a request, in seconds.",
      ],
      interToken: ["vllm:inter_token_latency_seconds", "Time between tokens, in seconds."],
      step: ["octavo:step_duration_seconds", "Duration of an engine step, in seconds."],
      compile: [
        "octavo:grammar_compile_seconds",
        "From requesting a grammar to having it, if it was not yet compiled.",
      ],
    }),
    legacyInterToken: legacy
      ? registry.histogram("vllm:time_per_output_token_seconds", older, tokenLatencyBuckets)
      : undefined,
  };
}

function registerSizes(registry: Registry, maxModelLen: number) {
  return {
    ...registry.histograms(oneTwoFiveBuckets(maxModelLen), {
      promptTokens: ["vllm:request_prompt_tokens", "Prompt tokens per request."],
      generationTokens: ["vllm:request_generation_tokens", "Generated tokens per request."],
      maxGenerationTokens: [
        "vllm:request_max_num_generation_tokens",
        "Longest generated sequence per request, in tokens.",
      ],
      maxTokensParam: ["vllm:request_params_max_tokens", "The max_tokens parameter of requests that set it."],
      prefillComputedTokens: [
        "vllm:request_prefill_kv_computed_tokens",
        "Prompt tokens computed, without cache hits.",
      ],
    }),
    ...registry.histograms(iterationTokenBuckets, {
      iterationTokens: ["vllm:iteration_tokens_total", "Tokens per engine step."],
    }),
    ...registry.histograms(sequencesPerRequestBuckets, {
      n: ["vllm:request_params_n", "The n parameter of requests."],
    }),
  };
}

function observeLatencies(
  latencies: ReturnType<typeof registerLatencies>,
  { record, usage, n }: FinishedRequest,
): void {
  latencies.e2e.observe(record.e2eMs / 1000);
  latencies.queue.observe(record.queueMs / 1000);
  latencies.prefill.observe(record.prefillMs / 1000);
  latencies.decode.observe(record.decodeMs / 1000);
  latencies.inference.observe((record.prefillMs + record.decodeMs) / 1000);
  const gaps = usage.completionTokens / n - 1;
  if (record.timeToFirstTokenMs !== undefined && gaps > 0)
    latencies.timePerOutputToken.observe(record.decodeMs / 1000 / gaps);
}

function observeSizes(sizes: ReturnType<typeof registerSizes>, request: FinishedRequest): void {
  const { usage, n } = request;
  sizes.promptTokens.observe(usage.promptTokens);
  sizes.generationTokens.observe(usage.completionTokens);
  sizes.prefillComputedTokens.observe(usage.promptTokens - usage.cachedTokens);
  const longest = request.maxSequenceTokens ?? (n === 1 ? usage.completionTokens : undefined);
  if (longest !== undefined) sizes.maxGenerationTokens.observe(longest);
  if (request.maxTokens !== undefined) sizes.maxTokensParam.observe(request.maxTokens);
  sizes.n.observe(n);
}

/** Counts accepted tokens by their position in the draft; per draft length until the next scrape, since labels are slow. */
function countAcceptedPositions(
  registry: Registry,
  perPosition: Counter,
  numSpeculativeTokens: number,
): (numAccepted: number) => void {
  for (let position = 0; position < numSpeculativeTokens; position += 1)
    perPosition.add(0, { position: String(position) });
  const byLength = new Map<number, number>();
  registry.onCollect(() => {
    for (const [length, count] of byLength)
      for (let position = 0; position < length; position += 1)
        perPosition.add(count, { position: String(position) });
    byLength.clear();
  });
  return (length) => void byLength.set(length, (byLength.get(length) ?? 0) + 1);
}
