/** Flags of `vllm serve` that Octavo has no option for. */
export interface ForeignFlags {
  /** `none`: nothing follows from it here, which is said. `refused`: it asks for something that is not done. */
  readonly effect: "none" | "refused";
  /**
   * `--name` is a switch, `--name=` takes any value, `--name=*` takes several, `--name=a|b` has no effect with one of these values and is
   * refused with others.
   */
  readonly flags: string;
  /** What it comes to here and, where it is refused, what does the same. */
  readonly why: string;
  /** An earlier vLLM's: no longer among its flags. */
  readonly isOlder?: true;
}

const several = "a server computes on one machine: run several servers behind `octavo gateway`";
const kernels = "kernels for CPUs are chosen by measured speed; see --kernels";
const asTransformers =
  "images are prepared as the model's own processor says, one at a time beside the engine's steps";
const noFiles =
  "no file of the machine is read for a request: images come in data URLs, or from hosts of --allowed-media-domains";
const imagesAlone = "of what is no text, models take images alone";
const noGraphs = "there is no graph to compile or capture";
const python = "code in Python cannot be loaded";

export const foreignFlags: readonly ForeignFlags[] = [
  {
    effect: "none",
    flags: `--data-parallel-size=1 --data-parallel-size-local=1 --nnodes=1 --node-rank=0
      --decode-context-parallel-size=1 --prefill-context-parallel-size=1 --data-parallel-rank=0 --data-parallel-start-rank=0
      --distributed-executor-backend=mp|uni`,
    why: several,
  },
  {
    effect: "refused",
    flags: `--headless --data-parallel-address= --data-parallel-rpc-port= --data-parallel-backend= --data-parallel-hybrid-lb
      --data-parallel-external-lb --data-parallel-multi-port-external-lb --data-parallel-supervisor-port= --dp-supervisor-probe-interval-s=
      --dp-supervisor-probe-timeout-s= --dp-supervisor-probe-failure-threshold= --master-addr= --master-port= --enable-expert-parallel
      --enable-elastic-ep --elastic-ep-max-dp-size= --enable-eplb --eplb-config= --enable-scale-out --enable-fault-tolerance
      --fault-tolerance-config=`,
    why: several,
  },
  {
    effect: "none",
    flags: `--distributed-timeout-seconds= --cpu-distributed-timeout-seconds= --dcp-comm-backend= --dcp-q-replicate
      --dcp-kv-cache-interleave-size= --cp-kv-cache-interleave-size= --enable-hc-sp --enable-batch-sharded-sampling --enable-ep-weight-filter
      --all2all-backend= --enable-dbo --enable-shm-tensor-arena --ubatch-size= --dbo-decode-token-threshold= --dp-sync-interval=
      --dbo-prefill-token-threshold= --disable-nccl-for-dp-synchronization --expert-placement-strategy= --disable-custom-all-reduce
      --ray-workers-use-nsight --enable-nccl-comm-suspend`,
    why: "it tunes how vLLM's processes work together",
  },
  {
    effect: "none",
    flags: "--api-server-count= --renderer-num-workers=",
    why: "one process reads requests, and the engine computes outside its event loop",
  },
  {
    effect: "refused",
    flags: "--numa-bind --numa-bind-nodes=* --numa-bind-cpus=* --device-ids=",
    why: "start it with `numactl` or `taskset`, and set --threads",
  },
  {
    effect: "none",
    flags: `--enforce-eager --cudagraph-capture-sizes=* --max-cudagraph-capture-size= --compilation-config= --optimization-level=
      --performance-mode= --cudagraph-metrics --jit-monitor-mode= --jit-monitor-verbose --sleep-mode-offload-cudagraph`,
    why: noGraphs,
  },
  {
    effect: "none",
    flags: `--attention-backend= --attention-config= --mamba-backend= --mamba-ssu-algorithm= --moe-backend= --linear-backend=
      --sparse-indexer-topk-backend= --gdn-prefill-backend= --kda-prefill-backend= --kda-decode-backend= --ir-op-priority=
      --enable-flashinfer-autotune --monokernel --kernel-config= --disable-cascade-attn --enable-flash-late-interaction --use-fp64-gumbel
      --kv-sharing-fast-prefill --additional-config= --model-impl=auto|vllm|transformers`,
    why: kernels,
  },
  {
    effect: "none",
    flags: `--media-io-kwargs= --mm-processor-cache-gb=
      --mm-processor-cache-type= --mm-hasher-algorithm= --mm-shm-cache-max-object-size-mb= --mm-encoder-tp-mode= --mm-encoder-attn-backend=
      --mm-encoder-attn-dtype= --mm-encoder-fp8-scale-path= --mm-encoder-fp8-scale-save-path= --mm-encoder-fp8-scale-save-margin=
      --interleave-mm-strings --skip-mm-profiling --video-pruning-rate= --video-pruning-method= --mm-tensor-ipc= --mm-processor-device=
      --mm-ipc-gpu-memory-gb= --mm-device-do-normalize --disable-chunked-mm-input --trust-request-mm-kwargs
      --ec-manager-config=`,
    why: asTransformers,
  },
  {
    effect: "none",
    flags: "--allowed-local-media-path=",
    why: noFiles,
  },
  {
    effect: "refused",
    flags: "--language-model-only",
    why: "`--limit-mm-per-prompt '{\"image\": 0}'` leaves out what reads images",
  },
  {
    effect: "refused",
    flags: `--enable-mm-embeds --mm-encoder-only --enable-tower-connector-lora --default-mm-loras= --ec-transfer-config=
      --diffusion-config=`,
    why: imagesAlone,
  },
  {
    effect: "none",
    flags: "--trust-remote-code --code-revision=",
    why: "no code of a model is ever run: families are built in",
  },
  {
    effect: "refused",
    flags: `--tool-parser-plugin= --reasoning-parser-plugin= --io-processor-plugin= --logits-processors=* --middleware= --worker-cls=
      --worker-extension-cls= --scheduler-cls= --model-class-overrides=`,
    why: `${python}; --tool-call-parser, --reasoning-parser and --scheduling-policy name what is built in, and \`octavo gateway\` or a proxy can stand in front`,
  },
  {
    effect: "none",
    flags: `--load-format=auto|safetensors|hf|gguf|runai_streamer --safetensors-load-strategy= --safetensors-prefetch-num-threads=
      --safetensors-prefetch-block-size= --use-tqdm-on-load --pt-load-map-location=cpu --max-parallel-loading-workers=
      --model-loader-extra-config={} --config-format=auto|hf --tokenizer-mode=auto|hf|slow|mistral`,
    why: "safetensors and GGUF are recognised by their files, and mapped",
  },
  {
    effect: "refused",
    flags: `--tokenizer= --tokenizer-revision= --hf-config-path= --hf-overrides={} --skip-tokenizer-init --tokens-only --ignore-patterns=*
      --quantization-config=`,
    why: "weights, tokenizer and configuration are one artifact: change the files of a copy of the model's folder, and serve that",
  },
  { effect: "none", flags: "--allow-deprecated-quantization", why: "no scheme that is read is deprecated" },
  {
    effect: "none",
    flags: "--runner=auto|generate|pooling --convert=auto|none|embed|classify",
    why: "every endpoint that the model can answer is there: any model gives embeddings, those with a head for it classes and scores",
  },
  { effect: "refused", flags: "--pooler-config=", why: "say how embeddings are pooled with --pooling" },
  {
    effect: "none",
    flags: `--disable-hybrid-kv-cache-manager --prefix-caching-hash-algo= --prefix-match-unit=
      --prefix-cache-retention-interval= --swa-bounded-replay --scheduler-reserve-full-isl --async-scheduling --disable-sliding-window
      --prefill-schedule-interval= --long-prefill-token-threshold-adaptive --watermark=0|0.0`,
    why: "the KV cache and the scheduler have one way of doing this; a hit compares tokens, and sliding windows are kept",
  },
  {
    effect: "none",
    flags: `--mamba-cache-dtype=auto|float32 --mamba-ssm-cache-dtype=auto|float32 --mamba-block-size= --mamba-cache-mode= --use-replayssm
      --enable-mamba-shared-prefix-checkpoint --replayssm-buffer-len= --mamba-cache-philox-rounds=0`,
    why: "recurrent state is kept in f32; how often it is copied for prefix caching is --state-snapshot-interval",
  },
  {
    effect: "refused",
    flags:
      "--num-gpu-blocks-override= --enable-mamba-cache-stochastic-rounding --kv-cache-dtype-skip-layers=*",
    why: "say the size of the KV cache with --kv-cache-memory, and its type with --kv-cache-dtype",
  },
  {
    effect: "none",
    flags: `--cpu-offload-gb= --cpu-offload-params=* --offload-backend= --offload-group-size= --offload-num-in-group= --offload-prefetch-step=
      --offload-params=* --kv-offloading-backend= --enable-cumem-allocator`,
    why: "weights and KV cache are in the machine's memory from the start",
  },
  {
    effect: "refused",
    flags: "--kv-offloading-size=",
    why: "give the KV cache that memory with --kv-cache-memory",
  },
  {
    effect: "refused",
    flags: "--kv-transfer-config= --kv-events-config= --weight-transfer-config= --engram-config=",
    why: "KV cache and weights stay in the process; `octavo gateway` sends requests where their prefix is cached",
  },
  {
    effect: "refused",
    flags: `--max-num-scheduled-tokens= --max-num-active-seqs= --stream-interval=1`,
    why: "bound steps with --max-num-batched-tokens and --max-num-seqs; a request may set stream_interval",
  },
  {
    effect: "none",
    flags: `--lora-dtype=auto|bfloat16|float16 --fully-sharded-loras --specialize-active-lora --enable-mixed-moe-lora-format
      --enable-moe-shared-loras`,
    why: "adapters are packed in one form, for any of a step's rows",
  },
  {
    effect: "refused",
    flags: "--lora-target-modules=* --max-lora-cls-labels=",
    why: "adapters are loaded whole, and of classifiers none are",
  },
  {
    effect: "none",
    flags: `--disable-log-stats --aggregate-engine-logging --enable-log-deltas --max-log-len= --enable-logging-iteration-details
      --log-error-stack --fail-on-environ-validation`,
    why: "a line is logged per request and problem; GET /metrics and `octavo traces` have the rest",
  },
  {
    effect: "none",
    flags: "--enable-log-requests",
    why: "a line is logged per request, without its prompt; --trace-store with --trace-content keeps prompts",
  },
  {
    effect: "refused",
    flags: "--enable-log-outputs --disable-access-log-for-endpoints= --logging-config= --log-config-file=",
    why: "content is kept by --trace-store with --trace-content; lines are chosen by --log-level, --log-format and --disable-access-log",
  },
  {
    effect: "none",
    flags: `--enable-prompt-tokens-details --enable-server-load-tracking --enable-request-id-headers --fingerprint-mode=full
      --collect-detailed-traces=* --enable-mfu-metrics --disable-fastapi-docs --enable-offline-docs`,
    why: "always so: cached tokens in usage, GET /load, x-request-id, system_fingerprint, evidence in spans, GET /openapi.json without a page",
  },
  {
    effect: "refused",
    flags: "--enable-per-request-metrics --per-request-spec-decode-metrics=none --return-tokens-as-token-ids",
    why: "a request asks for it: `octavo.include_serving_record`, `return_tokens_as_token_ids`",
  },
  {
    effect: "refused",
    flags: `--show-hidden-metrics-for-version= --kv-cache-metrics --kv-cache-metrics-sample= --custom-histogram-buckets=
      --enable-layerwise-nvtx-tracing --profiler-config= --watchdog-config=`,
    why: "metrics are those of docs/reference/metrics.md; older names come with --enable-legacy-metric-names, profiles from node --cpu-prof",
  },
  {
    effect: "refused",
    flags:
      "--logprobs-mode=raw_logprobs --return-sampling-mask --enable-return-routed-experts --aux-output-config=",
    why: "logprobs are those of the model's own distribution, before sampling parameters",
  },
  {
    effect: "refused",
    flags: "--enable-trace-replay --enable-prompt-embeds",
    why: "prompts are text or token ids; `octavo bench serve --dataset` replays traces",
  },
  {
    effect: "none",
    flags: "--structured-outputs-config= --tool-strict-level=auto|function|parameter",
    why: "grammars have one engine, which enforces them at every token; strict tools are held to their schemas",
  },
  {
    effect: "refused",
    flags: `--reasoning-config= --reasoning-effort-map= --default-chat-template-kwargs={} --override-generation-config={}
      --anthropic-disabled-thinking-effort=auto`,
    why: "a request says it (`reasoning_effort`, `chat_template_kwargs`, sampling parameters), or the files of the model do (--chat-template, generation_config.json)",
  },
  { effect: "none", flags: "--cohere-is-reasoning-model --cohere-format=", why: "the chat template decides" },
  {
    effect: "refused",
    flags: "--tool-server=",
    why: "tools are run by the client, or by llm.chat in the library",
  },
  { effect: "refused", flags: "--fingerprint-value=", why: "name the server with --replica-id" },
  {
    effect: "refused",
    flags: "--grpc --grpc-port=",
    why: "the server speaks HTTP; translate in a proxy where gRPC is needed",
  },
  {
    effect: "refused",
    flags: '--allow-credentials --allowed-methods=["*"] --allowed-headers=["*"] --sse-keep-alive-interval=0',
    why: "browsers are let in by --allowed-origins; a proxy may do more",
  },
  {
    effect: "none",
    flags: "--h11-max-incomplete-event-size= --h11-max-header-count=",
    why: "headers are bounded to 32 KiB in all, bodies by --max-body-size",
  },
  {
    effect: "refused",
    flags: "--enable-ssl-refresh",
    why: "send SIGHUP, as certbot's deploy hooks do: `kill -HUP PID`",
  },
  {
    effect: "none",
    flags: "--sleep-mode-backend=",
    why: "a sleeping model's memory goes back to the system; see --enable-sleep-mode",
  },
  {
    effect: "refused",
    flags: "--sleep-preserve-parameter-names=*",
    why: "a sleeping model keeps no weights; with --weight-cache they are mapped when it wakes",
  },
  {
    effect: "refused",
    flags: "--watermark-config=",
    why: "answers are not watermarked",
  },
  {
    isOlder: true,
    effect: "none",
    flags: `--device=cpu|auto --swap-space= --use-v2-block-manager --num-scheduler-steps= --max-seq-len-to-capture= --preemption-mode=
      --guided-decoding-backend= --num-lookahead-slots= --enable-reasoning --task=auto|generate|embed|classify|score|reward --multi-step-stream-outputs --max-num-partial-prefills=`,
    why: "an earlier vLLM's; what it chose is chosen here without it",
  },
  {
    isOlder: true,
    effect: "refused",
    flags:
      "--rope-scaling= --rope-theta= --disable-frontend-multiprocessing --worker-use-ray --qlora-adapter-name-or-path=",
    why: "an earlier vLLM's; what it said is said in the model's config.json",
  },
];

/** One letter or few, as vLLM has them. */
export const shortFlags: Readonly<Record<string, string>> = {
  "-q": "--quantization",
  "-sc": "--speculative-config",
  "-tp": "--tensor-parallel-size",
  "-pp": "--pipeline-parallel-size",
  "-dp": "--data-parallel-size",
  "-dcp": "--decode-context-parallel-size",
  "-pcp": "--prefill-context-parallel-size",
  "-n": "--nnodes",
  "-r": "--node-rank",
  "-dpn": "--data-parallel-rank",
  "-dpr": "--data-parallel-start-rank",
  "-dpl": "--data-parallel-size-local",
  "-dpa": "--data-parallel-address",
  "-dpp": "--data-parallel-rpc-port",
  "-dpb": "--data-parallel-backend",
  "-dph": "--data-parallel-hybrid-lb",
  "-dpe": "--data-parallel-external-lb",
  "-dpm": "--data-parallel-multi-port-external-lb",
  "-ep": "--enable-expert-parallel",
  "-asc": "--api-server-count",
  "-dc": "--diffusion-config",
  "-cc": "--compilation-config",
  "-ac": "--attention-config",
};

/** Values with which an option of Octavo's says what it says without them. */
export const defaultValues: Readonly<Record<string, readonly string[]>> = {
  "--max-model-len": ["auto", "-1"],
};
