import { type Backend, createCpuBackend, type KvDtype, kvLayersOf } from "@octavo/kernels";
import { AdapterSet } from "../../adapters/adapter-set.js";
import { interleavedHeadDimOf } from "../../adapters/pack-adapter.js";
import { loadModel } from "../../model/load-model.js";
import type { PackingOptions } from "../../model/weight-packer.js";
import { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { planModel } from "@octavo/artifacts/program/registry";
import type { ModelUnderTest } from "../schedules/schedule-properties.js";

const MAX_MODEL_LEN = 64;

export interface NativeModelOptions extends Pick<PackingOptions, "packLaterFrom"> {
  /** Default the CPU's. Disposed with the model. */
  readonly backend?: Backend;
}

/** A fixture checkpoint on a backend with adapters loaded from folders, for suites that run their own engines. */
export async function openNativeModel(
  path: string,
  kvDtype: KvDtype,
  adapterFolders: readonly string[] = [],
  { packLaterFrom, backend = createCpuBackend({ numThreads: 2 }) }: NativeModelOptions = {},
): Promise<ModelUnderTest> {
  const checkpoint = await openCheckpoint(path);
  const { vocabSize, hiddenSize, eosTokenIds } = checkpoint.config;
  const maxStepTokens = 2 * MAX_MODEL_LEN;
  const model = await loadModel(backend, checkpoint, { maxTokens: maxStepTokens, packLaterFrom });
  const adapters = new AdapterSet({
    target: { backend, program: model.program, interleavedHeadDim: interleavedHeadDimOf(checkpoint) },
    adaptable: model.adaptable,
    maxLoras: adapterFolders.length,
    maxLoaded: adapterFolders.length,
    maxRank: 64,
    resolve: (folder) => Promise.resolve(folder),
  });
  for (const folder of adapterFolders) await adapters.load({ name: folder, path: folder });
  return {
    parts: {
      ...(adapterFolders.length > 0 && { adapters: adapters.list() }),
      backend,
      program: model.program,
      tokenizer: createTokenizer(checkpoint.tokenizer),
      vocabSize,
      hiddenSize,
      eosTokenIds,
      kv: { layers: kvLayersOf(planModel(checkpoint.config).ops), dtype: kvDtype },
      ...(model.stateWidths(0).length > 0 && { stateWidths: (drafts) => model.stateWidths(drafts) }),
      maxModelLen: MAX_MODEL_LEN,
    },
    maxStepTokens,
    dispose: () => {
      adapters[Symbol.dispose]();
      model[Symbol.dispose]();
      backend[Symbol.dispose]();
    },
  };
}
