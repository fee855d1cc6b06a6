import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import { loadedBytesOf } from "@octavo/artifacts/checkpoint/tensor-storage";
import type { DraftHead } from "@octavo/artifacts/drafting/draft-head";
import { openEagle3Head } from "@octavo/artifacts/drafting/eagle3-head";
import { mtpHead } from "@octavo/artifacts/drafting/mtp-head";
import { type MatrixPlan, type ModelPlan, weightsIn } from "@octavo/artifacts/program/model-plan";
import { planModel } from "@octavo/artifacts/program/registry";
import { type Backend, type KvLayerShape, kvLayersOf, type Matrix } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { type LoadedModel, loadModel } from "../model/load-model.js";
import { HeadDrafter } from "../speculation/head-drafter.js";
import type { SpeculationOptions } from "../speculation/speculation.js";
import type { ResolvedSpeculativeConfig } from "../speculation/speculative-config.js";
import type { ResolvedLoadOptions } from "./load-options.js";
import { downloadModel } from "./open-model.js";

/** A drafting head whose weights are not loaded yet. */
export interface OpenedHead {
  readonly head: DraftHead;
  /** Its layers in the KV cache, behind the model's. */
  readonly kvLayers: readonly KvLayerShape[];
  /** Beyond those that the model's tensors take. */
  readonly weightBytes: number;
  /** The model's plan, which also gives what the head reads. */
  readonly planModel: typeof planModel;
}

/** The model that a head drafts for. */
interface HeadTarget {
  readonly backend: Backend;
  readonly checkpoint: Checkpoint;
  readonly model: LoadedModel;
  readonly options: ResolvedLoadOptions;
  readonly sizes: { readonly maxNumBatchedTokens: number; readonly maxNumSeqs: number };
}

/** Undefined where the method has no head. Throws `invalid_option` where the head cannot draft for this model. */
export async function openHead(
  settings: ResolvedSpeculativeConfig,
  checkpoint: Checkpoint,
  options: ResolvedLoadOptions,
): Promise<OpenedHead | undefined> {
  const { method } = settings;
  if (method !== "eagle3" && method !== "mtp") return undefined;
  if (options.tensorParallelSize > 1) throw refused("tensor_parallel_size above 1");
  if (options.pipelineParallelSize > 1 || options.pipelineStageAddresses.length > 0)
    throw refused("pipeline parallelism");
  if (options.enableSleepMode) throw refused("enable_sleep_mode");
  if (options.activations === "declared") throw refused("activations declared");
  const { config, tensors } = checkpoint;
  const exact = planModel(config, tensors);
  const kvLayer = kvLayersOf(exact.ops).length;
  const head =
    method === "mtp"
      ? mtpHead(checkpoint, kvLayer)
      : openEagle3Head(
          await downloadModel(settings.model, { ...options, revision: settings.revision }),
          checkpoint,
          kvLayer,
        );
  head.tap(exact);
  const sources = new Set(
    weightsIn([head.reading.ops, head.reading.head]).flatMap((weight) => weight.sources),
  );
  const known = new Set(tensors.values());
  const added = [...sources].filter((tensor) => !known.has(tensor));
  return {
    head,
    kvLayers: kvLayersOf(head.reading.ops).slice(kvLayer),
    weightBytes: added.reduce((sum, tensor) => sum + loadedBytesOf(tensor), 0),
    planModel: (asked, given) => head.tap(planModel(asked, given)),
  };
}

/** Throws `invalid_option` on a backend where heads do not run. */
export function checkHeadRuns({ info, ranks = [] }: Pick<Backend, "info" | "ranks">): void {
  if (info.hasOwnMemory === true) throw refused(`the device ${info.name}; they run on the CPU`);
  if (ranks.length > 1) throw refused("a backend of several ranks");
}

/** Compiles a head, which shares the model's matrices that it reads. The drafter's KV cache is the model's. */
export async function loadHead(
  { head }: OpenedHead,
  numSpeculativeTokens: number,
  { backend, checkpoint, model, sizes, options }: HeadTarget,
): Promise<{ readonly options: SpeculationOptions; readonly owned: Disposable }> {
  const { maxNumBatchedTokens, maxNumSeqs } = sizes;
  const load = (plan: ModelPlan, shared: (matrix: MatrixPlan) => Matrix | undefined): Promise<LoadedModel> =>
    loadModel(backend, checkpoint, {
      plan: () => plan,
      shared,
      maxTokens: maxNumBatchedTokens,
      dtype: options.dtype === "auto" ? undefined : options.dtype,
      inPlace: options.weightsInPlace,
      signal: options.signal,
      onWarning: options.onWarning,
    });
  const reading = await load(head.reading, (matrix) => model.matrixOf(matrix));
  const drafting =
    head.drafting === head.reading
      ? undefined
      : await load(head.drafting, (matrix) => reading.matrixOf(matrix)).catch((error: unknown) => {
          reading[Symbol.dispose]();
          throw error;
        });
  return {
    options: {
      createDrafter: ({ blockSize }, cache) =>
        new HeadDrafter(
          {
            backend,
            reading: reading.program,
            drafting: (drafting ?? reading).program,
            stateWidth: checkpoint.config.hiddenSize,
            targetIds: head.targetIds,
            targetVocabSize: checkpoint.config.vocabSize,
            blockSize,
            maxNumSeqs,
            maxNumBatchedTokens,
          },
          cache,
        ),
      numSpeculativeTokens,
    },
    owned: {
      [Symbol.dispose]: () => {
        drafting?.[Symbol.dispose]();
        reading[Symbol.dispose]();
      },
    },
  };
}

function refused(what: string): OctavoError {
  return new OctavoError("invalid_option", `Drafting heads (eagle3, mtp) do not go with ${what}.`, {
    param: "speculative_config",
  });
}
