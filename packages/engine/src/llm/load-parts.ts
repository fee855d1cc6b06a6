import { join, resolve } from "node:path";
import { type Backend, type BackendInfo, processorCount } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { pickOptions } from "@octavo/protocol/options";
import type { Engine } from "../api.js";
import type { createEngine } from "../create-engine.js";
import type { EngineOptions, ModelRenewal } from "../engine-options.js";
import type { WeightCorruptor } from "../faults/corrupt-weights.js";
import { huggingFaceHome } from "@octavo/artifacts/hub/hub-settings";
import { type LoadedModel, loadModel } from "../model/load-model.js";
import { declaredActivations, describeActivations } from "@octavo/artifacts/program/declared-activations";
import type { ModelConfig } from "@octavo/artifacts/program/model-config";
import type { ImageInput } from "../images/image-input.js";
import { packLaterFromBytes } from "../model/weight-packer.js";
import { WeightCache } from "../model/weight-cache/weight-cache.js";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import type { Checkpoint, GenerationDefaults } from "@octavo/artifacts/checkpoint/checkpoint";
import type { AdapterSet } from "../adapters/adapter-set.js";
import { checkLoraOptions, loadAdapters, resolveAdapters } from "./load-adapters.js";
import { type LoadOptions, type ResolvedLoadOptions, resolveLoadOptions } from "./load-options.js";
import { machineWarnings } from "./machine-warnings.js";
import type { OpenedHead } from "./load-head.js";
import type { prepareEngine } from "./prepare-engine.js";
import { planSizes, type Sizes } from "./plan-sizes.js";
import type { KvShape } from "../kv-cache/plan-kv-cache.js";
import type { ModelSleep } from "./model-sleep.js";
import { openCpuBackend } from "../model/open-cpu-backend.js";
import { openModel, reopen } from "./open-model.js";
import { schedulingOptions } from "../options/scheduling-options.js";
import type { SpeculationOptions } from "../speculation/speculation.js";
import { resolveSpeculativeConfig } from "../speculation/speculative-config.js";
import type { ModelTemplates } from "./templates.js";
import { encoderOptions } from "./whole-sequences.js";

/** A loaded model's parts. Dispose the engine, then `owned` in order. */
export interface LoadedParts {
  readonly name: string;
  readonly config: ModelConfig;
  /** See `LanguageModel`. */
  readonly numerics: string;
  readonly artifactDigest: () => Promise<string>;
  readonly generation: GenerationDefaults;
  readonly tokenizer: Tokenizer;
  readonly templates: ModelTemplates;
  readonly backend: Backend;
  readonly engine: Engine;
  readonly adapters: AdapterSet | undefined;
  /** See `LanguageModel`. */
  readonly images: ImageInput | undefined;
  readonly imageRefusal: string;
  readonly weightBytes: number;
  /** Resolves once no weights are left to pack. */
  readonly packed: Promise<void>;
  /** Resolves once the weight cache, if any, has been written. */
  readonly saved: Promise<void>;
  /** Where the model may sleep. */
  readonly sleepMode: ModelSleep | undefined;
  readonly maxNumSeqs: number;
  readonly owned: readonly Disposable[];
}

/** Downloads what is missing, opens, packs, compiles and starts. On failure, everything made so far is disposed. */
export async function loadParts(model: string, asked: LoadOptions): Promise<LoadedParts> {
  const resolved = resolveLoadOptions(asked);
  const speculative = resolved.speculativeConfig && resolveSpeculativeConfig(resolved.speculativeConfig);
  checkLoraOptions(resolved);
  const corruptor = await corruptorOf(resolved);
  const sleeping = resolved.enableSleepMode ? await import("./model-sleep.js") : undefined;
  const owned: Disposable[] = [];
  try {
    // First, so that nothing is downloaded for a GPU that cannot be used.
    const gpu = resolved.backend === undefined ? await gpuOf(resolved) : undefined;
    if (gpu !== undefined) owned.unshift(gpu);
    const opened = await openModel(model, resolved);
    const checkpoint =
      resolved.scoreBy === "auto" ? opened : (await import("./score-by.js")).scoredByYesOrNo(opened);
    const isEncoder = checkpoint.config.encoder !== undefined;
    const options = isEncoder ? encoderOptions(resolved, asked, checkpoint.config) : resolved;
    const adapterPaths = await resolveAdapters(options);
    const drafting = speculative && (await import("./load-speculation.js"));
    const draft =
      speculative?.method === "draft_model" ? await drafting?.openDraft(speculative, options) : undefined;
    const heads = speculative && (await import("./load-head.js"));
    const head = speculative && (await heads?.openHead(speculative, checkpoint, options));
    let backend = options.backend ?? gpu;
    if (backend === undefined) {
      backend = await openCpuBackend(options, options.tensorParallelSize);
      owned.unshift(backend);
      warnOfMachine(backend, options);
    }
    const { vacating } = backend;
    const images = checkpoint.container && (await import("../images/load-images.js"));
    if (sleeping !== undefined && vacating === undefined) throw cannotSleep(backend.info);
    if (head !== undefined) heads?.checkHeadRuns(backend);
    const sizes = planSizes(checkpoint, draft, options, {
      head,
      maxDraftTokens: speculative?.numSpeculativeTokens ?? 0,
      hasOwnMemory: backend.info.hasOwnMemory === true,
      imageBytes: images?.imageBytes(backend, checkpoint, options) ?? 0,
    });
    const pipeline =
      options.pipelineParallelSize === 1 && options.pipelineStageAddresses.length === 0
        ? undefined
        : await import("./open-earlier-stages.js");
    const stages = await pipeline?.openEarlierStages(backend, checkpoint, sizes, options);
    if (stages !== undefined) owned.unshift(stages);
    const { loaded, tokenizer, templates, createEngine, prepareEngine } = await loadContents(
      backend,
      images?.seeingCheckpoint(backend, checkpoint, options) ?? checkpoint,
      sizes,
      options,
      corruptor,
      head,
    );
    owned.unshift(loaded);
    const stageBytes = (await stages?.loaded) ?? 0;
    const sight = await images?.loadImages(backend, checkpoint, tokenizer, options);
    if (sight !== undefined && "tower" in sight) owned.unshift(sight.tower);
    else if (sight !== undefined) options.onWarning?.(servedAsText(checkpoint, sight.refusal));
    const adapters = await loadAdapters(backend, checkpoint, loaded, adapterPaths, options);
    if (adapters !== undefined) owned.unshift(adapters);
    const target = { backend, checkpoint, model: loaded, tokenizer, sizes, options };
    const speculation = speculative && (await drafting?.loadSpeculation(speculative, draft, head, target));
    if (speculation?.owned !== undefined) owned.unshift(speculation.owned);
    const running = stages?.behind(backend, loaded) ?? backend;
    const weights = { loaded, checkpoint, reopen: () => reopen(checkpoint, resolved.quantization) };
    const sleepers = [weights, ...(speculation?.sleeping === undefined ? [] : [speculation.sleeping])];
    // Adapters' weights would have to come back too.
    const renewal = options.enableLora ? undefined : backend.renewal;
    const renewing = renewal && (await import("./renew-model.js")).modelRenewal(renewal, sleepers);
    const engine = createEngine(
      engineOptionsOf(
        {
          backend: running,
          checkpoint,
          tokenizer,
          loaded,
          sizes,
          speculation: speculation?.options,
          renewal: renewing,
        },
        options,
      ),
    );
    await prepareEngine(engine, options);
    return {
      name: checkpoint.name,
      config: checkpoint.config,
      numerics: numericsOf(backend.info, checkpoint.config, sizes.kv, options),
      artifactDigest: async () => {
        const { artifactDigest } = await import("@octavo/artifacts/checkpoint/artifact-digest");
        return artifactDigest(weights.checkpoint);
      },
      generation: options.generationConfig === "vllm" ? {} : checkpoint.generation,
      tokenizer,
      templates,
      backend,
      engine,
      adapters,
      images: sight !== undefined && "input" in sight ? sight.input : undefined,
      imageRefusal: sight !== undefined && "refusal" in sight ? sight.refusal : textOnly,
      weightBytes: loaded.weightBytes + stageBytes,
      get packed() {
        return Promise.all(sleepers.map((part) => part.loaded.packed)).then(() => undefined);
      },
      get saved() {
        return loaded.saved;
      },
      sleepMode: vacating && sleeping && new sleeping.ModelSleep(engine, vacating, sleepers),
      maxNumSeqs: sizes.maxNumSeqs,
      owned,
    };
  } catch (error) {
    for (const part of owned) part[Symbol.dispose]();
    throw error;
  }
}

function weightCacheOf({
  weightCache,
  corruptWeights,
  pipelineParallelSize,
  onWarning,
}: ResolvedLoadOptions): WeightCache | undefined {
  if (weightCache === "off" || corruptWeights !== undefined || pipelineParallelSize > 1) return undefined;
  const folder =
    weightCache === "auto" ? join(huggingFaceHome(process.env), "octavo-weights") : resolve(weightCache);
  return new WeightCache({ folder, onWarning });
}

async function corruptorOf({
  corruptWeights,
  enableFaultInjection,
}: ResolvedLoadOptions): Promise<WeightCorruptor | undefined> {
  if (corruptWeights === undefined) return undefined;
  if (!enableFaultInjection)
    throw new OctavoError("invalid_option", "corrupt_weights needs enable_fault_injection", {
      param: "corrupt_weights",
    });
  const { WeightCorruptor } = await import("../faults/corrupt-weights.js");
  return new WeightCorruptor(corruptWeights);
}

async function gpuOf(options: ResolvedLoadOptions): Promise<Backend | undefined> {
  if (options.device === "cpu") {
    if (options.gpuProducts === "f32") return undefined;
    throw new OctavoError(
      "invalid_option",
      "gpu_products is an option of GPUs; the model is to run on the CPU.",
      {
        param: "gpu_products",
      },
    );
  }
  const { openGpuBackend } = await import("./open-gpu-backend.js");
  return openGpuBackend(options);
}

function cannotSleep({ name }: BackendInfo): OctavoError {
  return new OctavoError("invalid_option", `models on ${name} do not sleep; on the CPU they do`, {
    param: "enable_sleep_mode",
  });
}

function warnOfMachine({ info }: Backend, { onWarning }: ResolvedLoadOptions): void {
  if (onWarning === undefined) return;
  const facts = { info, numProcessors: processorCount(), wantedIsa: process.env["OCTAVO_ISA"] };
  for (const warning of machineWarnings(facts)) onWarning(warning);
}

function numericsOf(
  { name, instructionSet, features }: BackendInfo,
  config: ModelConfig,
  kv: KvShape,
  { dtype }: ResolvedLoadOptions,
): string {
  const weights = dtype === "auto" || config.dtype === "quantized" ? config.dtype : dtype;
  return [name, instructionSet, ...features, `weights:${weights}`, `kv:${kv.dtype}`].join(" ");
}

interface Contents {
  readonly loaded: LoadedModel;
  readonly tokenizer: Tokenizer;
  readonly templates: ModelTemplates;
  readonly createEngine: typeof createEngine;
  readonly prepareEngine: typeof prepareEngine;
}

/**
 * The backend's threads pack weights while this thread imports the rest of the engine and builds the tokenizer. If that fails,
 * packing is aborted and its memory freed.
 */
async function loadContents(
  backend: Backend,
  checkpoint: Checkpoint,
  sizes: Sizes,
  options: ResolvedLoadOptions,
  corruptor: WeightCorruptor | undefined,
  head: OpenedHead | undefined,
): Promise<Contents> {
  const failure = new AbortController();
  const signal =
    options.signal === undefined ? failure.signal : AbortSignal.any([options.signal, failure.signal]);
  const packing = packWeights(backend, checkpoint, sizes, { ...options, signal }, corruptor, head);
  // Awaited below in every case; until then a rejection must not count as unhandled.
  packing.catch(() => undefined);
  try {
    await untilPackingRuns();
    const parts = await import("./parts-beside-weights.js");
    const tokenizer = parts.createTokenizer(checkpoint.tokenizer);
    const templates = parts.compileTemplates(
      checkpoint.tokenizer.config,
      options.chatTemplate,
      options.onWarning,
    );
    const { createEngine, prepareEngine } = parts;
    return { loaded: await packing, tokenizer, templates, createEngine, prepareEngine };
  } catch (error) {
    failure.abort();
    await packing.then(
      (loaded) => loaded[Symbol.dispose](),
      () => undefined,
    );
    throw error;
  }
}

/** Packing jobs reach the backend within one turn of the event loop. */
function untilPackingRuns(): Promise<void> {
  return new Promise((done) => setImmediate(done));
}

async function packWeights(
  backend: Backend,
  checkpoint: Checkpoint,
  { maxNumBatchedTokens: maxTokens, maxModelLen }: Sizes,
  options: ResolvedLoadOptions,
  corruptor: WeightCorruptor | undefined,
  head: OpenedHead | undefined,
): Promise<LoadedModel> {
  const { dtype, onProgress, onWarning, signal } = options;
  const loaded = await loadModel(backend, checkpoint, {
    cache: weightCacheOf(options),
    inPlace: options.weightsInPlace,
    packLaterFrom: packLaterFromBytes,
    onWarning,
    corruptor,
    plan: head?.planModel,
    maxTokens,
    maxModelLen,
    activations: options.activations,
    stage: { index: options.pipelineParallelSize - 1, count: options.pipelineParallelSize },
    dtype: dtype === "auto" ? undefined : dtype,
    signal,
    onProgress:
      onProgress &&
      ((doneBytes, totalBytes) => onProgress({ phase: "loading weights", doneBytes, totalBytes })),
  });
  const declared = declaredActivations(checkpoint.tensors);
  if (declared !== undefined && options.activations !== "declared") {
    onWarning?.(
      `The checkpoint declares ${describeActivations(declared)}. They are not rounded here, so other engines may answer worse than this one.`,
    );
  }
  const unused = loaded.unusedTensors.filter(
    (name) => head?.head.ownPrefix === undefined || !name.startsWith(head.head.ownPrefix),
  );
  for (const line of describeUnused(unused, checkpoint.config)) onWarning?.(line);
  return loaded;
}

/** What a model that takes no images says of those. */
const textOnly = "this model reads text only";

function servedAsText({ container }: Checkpoint, refusal: string): string {
  return `${container?.name} is served as text, and ${container?.skippedTensors} tensors are not loaded: ${refusal}.`;
}

/** Tensors that the model does not use; those of further layers stand behind its own. */
export function describeUnused(
  names: readonly string[],
  { architecture, numLayers }: Pick<ModelConfig, "architecture" | "numLayers">,
): string[] {
  const isFurther = (name: string): boolean =>
    name.startsWith("mtp.") || Number(/^model\.layers\.(\d+)\./.exec(name)?.[1] ?? -1) >= numLayers;
  const further = names.filter(isFurther);
  const others = names.filter((name) => !isFurther(name));
  const lines: string[] = [];
  if (further.length > 0)
    lines.push(
      `${further.length} tensors of layers that predict further tokens (multi-token prediction) are not loaded.`,
    );
  if (others.length > 0)
    lines.push(
      `${others.length} tensors of the checkpoint are not used by ${architecture}: ${others.slice(0, 3).join(", ")} ...`,
    );
  return lines;
}

interface EngineParts {
  readonly backend: Backend;
  readonly checkpoint: Checkpoint;
  readonly tokenizer: Tokenizer;
  readonly loaded: LoadedModel;
  readonly sizes: Sizes;
  readonly speculation: SpeculationOptions | undefined;
  readonly renewal: ModelRenewal | undefined;
}

function engineOptionsOf(parts: EngineParts, options: ResolvedLoadOptions): EngineOptions {
  const { backend, checkpoint, tokenizer, loaded, sizes, speculation, renewal } = parts;
  const { config } = checkpoint;
  return {
    ...pickOptions(schedulingOptions, options),
    backend,
    program: loaded.program,
    tokenizer,
    vocabSize: config.vocabSize,
    hiddenSize: config.hiddenSize,
    rowSize: config.classifier?.labels.length ?? config.embedding?.dense?.at(-1)?.rows,
    poolsRows: config.encoder !== undefined,
    hasHead: config.hasHead ?? true,
    eosTokenIds: config.eosTokenIds,
    kv: sizes.kv,
    states: sizes.states,
    numBlocks: sizes.numBlocks,
    blockSize: sizes.blockSize,
    maxModelLen: sizes.maxModelLen,
    onWarning: options.onWarning,
    maxLoras: options.enableLora ? options.maxLoras : undefined,
    speculation,
    renewal,
    hooks: options.hooks,
  };
}
