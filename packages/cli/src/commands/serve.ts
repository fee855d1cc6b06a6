import { existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { LLM, quantizationNames, schedulingPolicyNames } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import type { SpanStore } from "@octavo/tracing/store";
import type { MeteringLog, OctavoServer } from "@octavo/server";
import { resolveServerConfig, tenantSources } from "@octavo/server/settings";
import { Command, Option } from "commander";
import { interruptible } from "../interruptible.js";
import { createLoadingLine } from "../output/loading-line.js";
import { serveBanner } from "../output/serve-banner.js";
import { checkFaultFlags, parseCorruption } from "../options/fault-flags.js";
import { collectLora } from "../options/lora-module.js";
import { withObservingFlags } from "../options/observing-flags.js";
import { collect, longestSeconds, parseBytes, parseCount, parseNumber } from "../options/parse.js";
import { loadOptionsOf, type ServeFlags, serverConfigOf } from "../options/serve-options.js";
import { parseSpeculativeConfig } from "../options/speculative-config.js";
import { readTenantsFile } from "../options/tenants-file.js";

/** The model that ships with the repository; what is served when none is named. */
const embeddedModel = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));

/** `octavo serve MODEL`: loads an artifact and answers OpenAI's API until told to stop. */
export function serveCommand(): Command {
  const command = new Command("serve")
    .description("serve a model over an OpenAI-compatible API")
    .argument("[model]", "folder, .gguf file or Hugging Face id (default: the embedded octavo-mini)")
    .option("--model <model>", "the same as the argument")
    .option("--revision <name>", "branch, tag or commit of a Hugging Face id")
    .option("--download-dir <folder>", "cache of downloaded models (default: Hugging Face's own)")
    .option(
      "--weight-cache <folder>",
      "keep packed weights for faster starts: a folder, auto or off (default: off)",
    )
    .option(
      "--weights-in-place",
      "read bf16 weights in the model's files: faster starts and shared memory, slower with many streams",
    )
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <port>", "port to listen on; 0 takes a free one", parseCount(0, 65_535), 8000)
    .option("--api-key <key>", "key that requests must carry; may be given several times", collect)
    .option("--replica-id <name>", "which of several servers this is; answers and spans say so")
    .option("--served-model-name <name...>", "names that requests may use")
    .optionsGroup("Engine:")
    .option("--max-model-len <tokens>", "longest context (default: the model's)", parseCount(1))
    .option("--max-num-seqs <n>", "sequences that run at once", parseCount(1, 4096))
    .option("--max-num-batched-tokens <n>", "token budget of a step", parseCount(1))
    .option("--max-queued-requests <n>", "waiting requests before 429", parseCount(0))
    .option("--max-queued-tokens <n>", "their prompt tokens before 429 (default: no bound)", parseCount(0))
    .option("--kv-cache-memory <size>", "memory of the KV cache, e.g. 2GiB", parseBytes)
    .option(
      "--gpu-memory-utilization <share>",
      "share of the free memory for the KV cache instead",
      parseNumber(0.01, 1),
    )
    .addOption(
      new Option("--dtype <type>", "type of unquantised weights (default: the checkpoint's)").choices([
        "auto",
        "f32",
        "f16",
        "bf16",
      ]),
    )
    .addOption(
      new Option(
        "--quantization <scheme>",
        "scheme of a quantised safetensors model (default: what its files say)",
      ).choices(["auto", ...quantizationNames]),
    )
    .addOption(
      new Option("--kv-cache-dtype <type>", "type of cached keys and values").choices([
        "auto",
        "f32",
        "f16",
        "bf16",
        "int8",
      ]),
    )
    .option("--block-size <tokens>", "tokens in a block of KV cache", parseCount(1, 256))
    .option("--enable-prefix-caching", "share the KV cache of equal prefixes (default)")
    .option("--no-enable-prefix-caching", "compute every prompt in full")
    .option("--enable-chunked-prefill", "split long prompts over steps (default)")
    .option("--no-enable-chunked-prefill", "compute each prompt in one step")
    .option(
      "--long-prefill-token-threshold <tokens>",
      "cap of one prompt per step while others wait",
      parseCount(0),
    )
    .option(
      "--max-prefill-step-ms <ms>",
      "time of a step with prompts while others generate (default: 200; 0: no bound)",
      parseCount(0),
    )
    .option(
      "--max-long-partial-prefills <n>",
      "prompts beyond that threshold side by side while others wait (default: 2 if fair, else no bound)",
      parseCount(0),
    )
    .addOption(
      new Option(
        "--scheduling-policy <name>",
        "who is served first: by arrival, by priority, or fairly between tenants (default: fcfs)",
      ).choices(schedulingPolicyNames),
    )
    .option(
      "--min-free-memory <size>",
      "refuse requests while less of the machine's memory is free, e.g. 512MiB (default: never)",
      parseBytes,
    )
    .option(
      "--crash-journal <file>",
      "remember there which requests are computed, and refuse those that the server died of twice (default: none)",
    )
    .option("--threads <n>", "compute threads (default: the machine's cores)", parseCount(1, 1024))
    .optionsGroup("Speculation:")
    .option(
      "--speculative-config <json>",
      `guess tokens and check several at once, e.g. '{"method": "ngram", "num_speculative_tokens": 5}'; methods: ngram, suffix, draft_model`,
      parseSpeculativeConfig,
    )
    .option("--speculative-model <model>", "draft model, or [ngram]; the older way to say it")
    .option("--num-speculative-tokens <n>", "guesses per step with --speculative-model", parseCount(1, 128))
    .option("--ngram-prompt-lookup-min <n>", "with --speculative-model [ngram]", parseCount(1, 256))
    .option("--ngram-prompt-lookup-max <n>", "with --speculative-model [ngram]", parseCount(1, 256))
    .optionsGroup("Tenants:")
    .option("--tenants <file>", "JSON file of tenants, lanes and keys", readTenantsFile)
    .addOption(
      new Option(
        "--tenant-from <source>",
        "what says whose a request is: its API key, the x-tenant-id header or the field user (default: key if keys have tenants, else header)",
      ).choices(tenantSources),
    )
    .option(
      "--max-queued-requests-per-tenant <n>",
      "waiting requests of one tenant before 429 (default: no bound)",
      parseCount(0),
    )
    .option(
      "--max-queued-tokens-per-tenant <n>",
      "their prompt tokens before 429 (default: no bound)",
      parseCount(0),
    )
    .optionsGroup("LoRA:")
    .option("--enable-lora", "serve LoRA adapters beside the model")
    .option(
      "--lora-modules <adapter...>",
      "adapters to load: NAME=PATH, or JSON with name, path and base_model_name",
      collectLora,
    )
    .option("--max-loras <n>", "adapters in one batch (default: 8)", parseCount(1, 1024))
    .option("--max-cpu-loras <n>", "adapters in memory (default: 64)", parseCount(1, 65_536))
    .option("--max-lora-rank <r>", "largest rank of an adapter (default: 64)", parseCount(1, 4096))
    .option(
      "--allow-runtime-lora-updating",
      "let requests load adapters from this machine's disk or the hub, and unload them",
    )
    .optionsGroup("Requests:")
    .option(
      "--chat-template <file>",
      "chat template to use instead of the model's, a file or the text itself",
    )
    .addOption(
      new Option("--chat-template-content-format <format>", "how message parts reach the template").choices([
        "auto",
        "string",
        "openai",
      ]),
    )
    .option("--trust-request-chat-template", "let requests bring their own template")
    .addOption(
      new Option("--generation-config <source>", "sampling defaults: the model's or OpenAI's").choices([
        "auto",
        "vllm",
      ]),
    )
    .option("--max-logprobs <n>", "most alternatives a request may ask for; -1 for all", parseLogprobs)
    .addOption(new Option("--pooling <type>", "pooling of embeddings").choices(["mean", "last"]))
    .option("--response-role <role>", "role of generated messages")
    .option("--exclude-tools-when-tool-choice-none", "leave tools out of the prompt when none may be called")
    .option(
      "--tool-call-parser <name>",
      "format of the model's tool calls (default: by its chat template; none leaves them in the text)",
    )
    .option("--enable-auto-tool-choice", "accepted for vLLM's sake; tool calls are always read")
    .option(
      "--reasoning-parser <name>",
      "format of the model's reasoning (default: by its chat template; none leaves it in the text)",
    )
    .option("--enable-force-include-usage", "send usage in every stream")
    .option("--request-timeout <seconds>", "end a request after; 0 for never", parseNumber(0, longestSeconds))
    .option(
      "--queue-timeout <seconds>",
      "end a request that is not admitted after; 0 for never",
      parseNumber(0, longestSeconds),
    )
    .option(
      "--ttft-timeout <seconds>",
      "end a request without a first token after; 0 for never",
      parseNumber(0, longestSeconds),
    )
    .option("--max-body-size <size>", "largest request body", parseBytes)
    .option("--allowed-origins <origin...>", "browser origins to answer, or *")
    .option("--enable-legacy-metric-names", "also expose metric names that vLLM has dropped")
    .option(
      "--drain-timeout <seconds>",
      "time for running requests after SIGTERM",
      parseNumber(0, longestSeconds),
    )
    .addOption(
      new Option("--log-level <level>", "least severe lines to log").choices([
        "trace",
        "debug",
        "info",
        "warn",
        "error",
        "silent",
      ]),
    )
    .option("--disable-access-log", "no line per request");
  return withObservingFlags(command)
    .optionsGroup("Faults:")
    .option(
      "--enable-fault-injection",
      "let requests make the engine evict, preempt, wait and be slow; for tests and evaluations only",
    )
    .option(
      "--fault-corrupt-weights <seed:scale[:pattern]>",
      "with it: add noise of that relative size to the weights, or to those whose names are like the pattern",
      parseCorruption,
    )
    .option(
      "--fault-start-delay <seconds>",
      "with it: wait before loading, as a machine that starts slowly",
      parseNumber(0, longestSeconds),
    )
    .action((argument: string | undefined, flags: ServeFlags) => serve(argument ?? flags.model, flags));
}

async function serve(named: string | undefined, flags: ServeFlags): Promise<void> {
  const source = named ?? embeddedModel;
  if (named === undefined && !existsSync(embeddedModel)) {
    throw new OctavoError("artifact_not_found", "no model was named, and the embedded one is not here", {
      param: "model",
    });
  }
  checkFaultFlags(flags);
  const config = resolveServerConfig({
    ...serverConfigOf(flags, named === undefined ? ["octavo-mini"] : []),
    cacheConfig: cacheLabels(flags),
  });
  const loading = createLoadingLine(process.stderr);
  const model = await interruptible(async (signal) => {
    await startDelay(flags, signal);
    return LLM.load(source, {
      ...loadOptionsOf(flags, templateOf(flags.chatTemplate)),
      onProgress: (state) => {
        if (state.phase === "loading weights") void readServer();
        loading.update(state);
      },
      onWarning: loading.warn,
      signal,
    });
  }).finally(() => loading.end());
  const disposeModel = async (error: unknown): Promise<never> => {
    await model[Symbol.asyncDispose]();
    throw error;
  };
  const { createServer } = await readServer().catch(disposeModel);
  const store = await openTraceStore(flags.traceStore).catch(disposeModel);
  const meteringLog = await openMeteringLog(flags.meteringLog).catch(disposeModel);
  const server = createServer({
    model,
    config,
    spanSinks: store === undefined ? [] : [store],
    ...(meteringLog === undefined ? {} : { meteringLog }),
  });
  const address = await server.listen().catch(disposeModel);
  // Signals are heeded before anyone can know that we serve.
  const stopped = untilStopped(server);
  process.stdout.write(
    serveBanner({
      url: address.url,
      model,
      backend: model.backend.info,
      names: config.servedModelNames,
      faults: faultsOf(flags),
      needsKey: config.apiKeys.length + config.tenants.keys.length > 0,
    }),
  );
  await stopped;
  await model[Symbol.asyncDispose]();
}

let serverModules: Promise<typeof import("@octavo/server")> | undefined;

/** Two hundred modules that nobody needs before there is a model: asked for while the kernels' threads pack its weights. */
function readServer(): Promise<typeof import("@octavo/server")> {
  serverModules ??= import("@octavo/server");
  // Whoever awaits it hears of a failure.
  serverModules.catch(() => undefined);
  return serverModules;
}

async function startDelay({ faultStartDelay = 0 }: ServeFlags, signal: AbortSignal): Promise<void> {
  if (faultStartDelay === 0) return;
  tell(`--fault-start-delay: waiting ${faultStartDelay} s before loading`);
  await sleep(faultStartDelay * 1000, undefined, { signal }).catch((cause: unknown) => {
    throw new OctavoError("request_cancelled", "waiting to load the model was ended", { cause });
  });
}

/** What the banner warns of. */
function faultsOf({ enableFaultInjection = false, faultCorruptWeights }: ServeFlags): readonly string[] {
  if (!enableFaultInjection) return [];
  const enabled = "fault injection is enabled: requests can slow this server down; not for production";
  if (faultCorruptWeights === undefined) return [enabled];
  const { seed, scale, pattern = "*" } = faultCorruptWeights;
  return [enabled, `the weights ${pattern} are corrupted: noise of ${scale}, seed ${seed}`];
}

/** Warnings of a store that cannot be written go where a person looks. */
async function openTraceStore(flag: string | undefined): Promise<SpanStore | undefined> {
  if (flag === undefined) return undefined;
  const { defaultStoreFolder, SpanStore } = await import("@octavo/tracing/store");
  const folder = flag === "auto" ? defaultStoreFolder() : flag;
  return SpanStore.open({ folder, onProblem: tell });
}

async function openMeteringLog(path: string | undefined): Promise<MeteringLog | undefined> {
  if (path === undefined) return undefined;
  const { MeteringLog } = await readServer();
  return MeteringLog.open({ path, onProblem: tell });
}

function tell(message: string): void {
  process.stderr.write(`octavo: ${message}\n`);
}

/** Ends on SIGTERM or SIGINT: running requests may finish; a second signal drops them. */
async function untilStopped(server: OctavoServer): Promise<void> {
  const signals = ["SIGINT", "SIGTERM"] as const;
  await new Promise<void>((resolve, reject) => {
    let draining = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (draining) {
        server.close().then(resolve, reject);
        return;
      }
      draining = true;
      process.stderr.write(`${signal}: finishing running requests; once more to drop them\n`);
      server.drain().then(resolve, reject);
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
}

/** What `vllm:cache_config_info` says beside the number and size of blocks. */
function cacheLabels(flags: ServeFlags): Readonly<Record<string, string>> {
  return {
    cache_dtype: flags.kvCacheDtype ?? "auto",
    enable_prefix_caching: String(flags.enablePrefixCaching ?? true),
  };
}

/** vLLM's rule: a template flag that names a file is read, anything else is the template itself. */
function templateOf(flag: string | undefined): string | undefined {
  if (flag === undefined) return undefined;
  if (existsSync(flag)) return readFileSync(flag, "utf8");
  if (/[{}\n]/.test(flag)) return flag;
  throw new OctavoError("invalid_option", `--chat-template: there is no file ${flag}`, {
    param: "chat-template",
  });
}

function parseLogprobs(text: string): number {
  return text.trim() === "-1" ? -1 : parseCount(0)(text);
}
