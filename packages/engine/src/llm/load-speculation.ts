import { loadedBytesOf } from "@octavo/artifacts/checkpoint/tensor-storage";
import { availableMemoryBytes, type Backend, kvTokenBytes } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { formatBinaryBytes } from "@octavo/protocol/options";
import type { KvShape } from "../kv-cache/plan-kv-cache.js";
import { type LoadedModel, loadModel } from "../model/load-model.js";
import { packLaterFromBytes } from "../model/weight-packer.js";
import { ModelDrafter } from "../speculation/model-drafter.js";
import { NgramDrafter } from "../speculation/ngram-drafter.js";
import type { SpeculationOptions } from "../speculation/speculation.js";
import type { ResolvedSpeculativeConfig } from "../speculation/speculative-config.js";
import { SuffixDrafter } from "../speculation/suffix-drafter.js";
import { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import type { ResolvedLoadOptions } from "./load-options.js";
import { kvShapeOf, type MemoryPlan } from "./memory-plan.js";
import type { SleepingWeights } from "./model-sleep.js";
import { loadHead, type OpenedHead } from "./load-head.js";
import { openModel, reopen } from "./open-model.js";
import { checkSameVocabulary } from "./same-vocabulary.js";

type DraftModelSettings = Extract<ResolvedSpeculativeConfig, { method: "draft_model" }>;

/** A draft model whose weights are not loaded yet. */
export interface DraftSource {
  readonly checkpoint: Checkpoint;
  readonly weightBytes: number;
}

/** The target model. */
interface Target {
  readonly backend: Backend;
  readonly checkpoint: Checkpoint;
  readonly model: LoadedModel;
  readonly tokenizer: Tokenizer;
  readonly sizes: MemoryPlan & {
    readonly blockSize: number;
    readonly maxNumSeqs: number;
    readonly maxNumBatchedTokens: number;
  };
  readonly options: ResolvedLoadOptions;
}

/** Speculation for an engine, and the model to dispose after it. */
export interface LoadedSpeculation {
  readonly options: SpeculationOptions;
  readonly owned: Disposable | undefined;
  readonly sleeping?: SleepingWeights;
}

export async function openDraft(
  settings: DraftModelSettings,
  options: ResolvedLoadOptions,
): Promise<DraftSource> {
  const { model, revision, quantization } = settings;
  const checkpoint = await openModel(model, { ...options, revision, quantization });
  let weightBytes = 0;
  for (const tensor of checkpoint.tensors.values()) weightBytes += loadedBytesOf(tensor);
  return { checkpoint, weightBytes };
}

/** Throws `invalid_option` if a draft model has another vocabulary, `out_of_memory` if its cache does not fit. */
export async function loadSpeculation(
  settings: ResolvedSpeculativeConfig,
  draft: DraftSource | undefined,
  head: OpenedHead | undefined,
  target: Target,
): Promise<LoadedSpeculation> {
  const { numSpeculativeTokens } = settings;
  if (settings.method === "ngram") {
    const createDrafter = (): NgramDrafter => new NgramDrafter(settings);
    return { options: { createDrafter, numSpeculativeTokens }, owned: undefined };
  }
  if (settings.method === "suffix") {
    const createDrafter = (): SuffixDrafter =>
      new SuffixDrafter({
        maxTreeDepth: settings.suffixDecodingMaxTreeDepth,
        maxCachedRequests: settings.suffixDecodingMaxCachedRequests,
        maxSpecFactor: settings.suffixDecodingMaxSpecFactor,
        minTokenProb: settings.suffixDecodingMinTokenProb,
      });
    return { options: { createDrafter, numSpeculativeTokens }, owned: undefined };
  }
  if (head !== undefined) return loadHead(head, numSpeculativeTokens, target);
  if (settings.method !== "draft_model" || draft === undefined)
    throw new OctavoError("internal_error", "the draft model was not opened");
  const loaded = await loadDraftModel(numSpeculativeTokens, draft, target);
  const { checkpoint } = draft;
  const reopenDraft = (): Promise<Checkpoint> => reopen(checkpoint, settings.quantization);
  return { ...loaded, sleeping: { loaded: loaded.owned, checkpoint, reopen: reopenDraft } };
}

async function loadDraftModel(
  numSpeculativeTokens: number,
  draft: DraftSource,
  target: Target,
): Promise<{ readonly options: SpeculationOptions; readonly owned: LoadedModel }> {
  const { backend, sizes, options } = target;
  const { config } = draft.checkpoint;
  if (config.recurrence !== undefined) {
    throw new OctavoError(
      "invalid_option",
      `${draft.checkpoint.name} has recurrent layers and cannot draft for another model; take one with attention alone.`,
      { param: "speculative_config" },
    );
  }
  checkVocabulary(draft, target);
  const kv = kvShapeOf(config, options.kvCacheDtype);
  checkMemory(draft, kv, sizes);
  const { maxNumBatchedTokens, numBlocks, blockSize, maxNumSeqs } = sizes;
  const loaded = await loadModel(backend, draft.checkpoint, {
    maxTokens: maxNumBatchedTokens,
    maxModelLen: Math.min(config.maxPositionEmbeddings, sizes.maxModelLen),
    dtype: options.dtype === "auto" ? undefined : options.dtype,
    signal: options.signal,
    packLaterFrom: packLaterFromBytes,
    onWarning: options.onWarning,
  });
  const createDrafter = (): ModelDrafter =>
    new ModelDrafter({
      backend,
      program: loaded.program,
      kv,
      numBlocks,
      blockSize,
      vocabSize: config.vocabSize,
      targetVocabSize: target.checkpoint.config.vocabSize,
      maxModelLen: config.maxPositionEmbeddings,
      maxNumSeqs,
      maxNumBatchedTokens,
    });
  return { options: { createDrafter, numSpeculativeTokens }, owned: loaded };
}

function checkVocabulary({ checkpoint }: DraftSource, target: Target): void {
  const tokenizer = createTokenizer(checkpoint.tokenizer);
  try {
    checkSameVocabulary(
      { name: checkpoint.name, tokenizer },
      { name: target.checkpoint.name, tokenizer: target.tokenizer },
    );
  } finally {
    tokenizer[Symbol.dispose]?.();
  }
}

/** The draft model's KV cache holds as many tokens as the target's, and comes on top of the memory given to that. */
function checkMemory({ checkpoint, weightBytes }: DraftSource, kv: KvShape, sizes: Target["sizes"]): void {
  const { numBlocks, blockSize } = sizes;
  const draftBytes = weightBytes + cacheBytes(kv, numBlocks, blockSize);
  const freeBytes = availableMemoryBytes() - cacheBytes(sizes.kv, numBlocks, blockSize) - stateBytes(sizes);
  if (draftBytes <= freeBytes) return;
  throw new OctavoError(
    "out_of_memory",
    `The draft model ${checkpoint.name} takes ${formatBinaryBytes(draftBytes)} with its KV cache, but beside the model's own cache only ` +
      `${formatBinaryBytes(Math.max(freeBytes, 0))} are free. Lower --kv-cache-memory or --max-model-len, or take a smaller draft model.`,
    { param: "speculative_config" },
  );
}

function stateBytes({ states }: Target["sizes"]): number {
  return states === undefined
    ? 0
    : 4 * states.numSlots * states.widths.reduce((sum, width) => sum + width, 0);
}

function cacheBytes({ layers, dtype }: KvShape, blocks: number, size: number): number {
  return kvTokenBytes(layers, dtype) * blocks * size;
}
