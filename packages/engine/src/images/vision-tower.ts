import { type Backend, type KvCache, kvLayersOf, type OutputRow, type StepPlan } from "@octavo/kernels";
import type { Checkpoint, Gemma4VisionPart, SiglipPart } from "@octavo/artifacts/checkpoint/checkpoint";
import type { ModelPlan } from "@octavo/artifacts/program/model-plan";
import { type ClipBounds, planGemma4Tower } from "@octavo/artifacts/vision/gemma4-tower";
import { planSiglip } from "@octavo/artifacts/vision/siglip";
import { OctavoError } from "@octavo/protocol/errors";
import { type LoadedModel, loadModel } from "../model/load-model.js";
import { gemma4Inputs, readClipBounds } from "./gemma4-parts.js";
import { type PatchGrid, patchOrder } from "./patches.js";
import { towerBlockSize, towerStep } from "./tower-step.js";

/** Towers whose rows pool a token's patches within one program. */
type PoolingPart = SiglipPart | Gemma4VisionPart;

/** What a step takes of an image beside the layout of its tokens. */
type TowerInputs = (patches: Float32Array, grid: PatchGrid) => Partial<StepPlan>;

/** Makes rows of a decoder's stream from an image's patches: one image at a time, a layer a step, so that the engine's own steps run between. */
export class VisionTower implements Disposable {
  readonly #backend: Backend;
  readonly #vision: PoolingPart;
  readonly #loaded: LoadedModel;
  readonly #cache: KvCache;
  readonly #inputs: TowerInputs;
  #latest: Promise<unknown> = Promise.resolve();

  private constructor(
    backend: Backend,
    vision: PoolingPart,
    loaded: LoadedModel,
    cache: KvCache,
    inputs: TowerInputs,
  ) {
    this.#backend = backend;
    this.#vision = vision;
    this.#loaded = loaded;
    this.#cache = cache;
    this.#inputs = inputs;
  }

  static async load(
    backend: Backend,
    checkpoint: Checkpoint,
    vision: PoolingPart,
    signal?: AbortSignal,
  ): Promise<VisionTower> {
    const numPatches = mostPatches(vision);
    const isSiglip = vision.kind === "siglip";
    const plan = planOf(vision, checkpoint, isSiglip ? undefined : await readClipBounds(vision));
    const inputs: TowerInputs = isSiglip
      ? (patches, grid) => ({ received: patches, positions: patchOrder(grid, vision.config.poolSize) })
      : await gemma4Inputs(vision);
    const tower = { ...checkpoint, tensors: vision.tensors };
    const loaded = await loadModel(backend, tower, { maxTokens: numPatches, plan: () => plan, signal });
    try {
      const spec = {
        numBlocks: Math.ceil(numPatches / towerBlockSize),
        blockSize: towerBlockSize,
        dtype: "f32" as const,
      };
      const cache = backend.createKvCache({ layers: kvLayersOf(plan.ops), ...spec });
      return new VisionTower(backend, vision, loaded, cache, inputs);
    } catch (error) {
      loaded[Symbol.dispose]();
      throw error;
    }
  }

  /** Memory that it takes: weights, and what a step holds of the largest image. */
  static byteLength(checkpoint: Checkpoint, vision: PoolingPart): number {
    const { buffers, ops } = planOf(vision, checkpoint);
    const kvWidth = kvLayersOf(ops).reduce(
      (sum, { numKvHeads, headDim }) => sum + 2 * numKvHeads * headDim,
      0,
    );
    const width = buffers.reduce((sum, own) => sum + own, kvWidth);
    const weightBytes = [...vision.tensors.values()].reduce((sum, { byteLength }) => sum + byteLength, 0);
    return weightBytes + 4 * width * mostPatches(vision);
  }

  /** `[tokens, width of the decoder's stream]`. */
  rows(patches: Float32Array, grid: PatchGrid): Promise<Float32Array> {
    const own = this.#latest.then(() => this.#run(patches, grid));
    this.#latest = own.catch(() => undefined);
    return own;
  }

  async #run(patches: Float32Array, grid: PatchGrid): Promise<Float32Array> {
    const { poolSize, numLayers: count } = this.#vision.config;
    const step = { ...towerStep([grid.rows * grid.columns]), ...this.#inputs(patches, grid) };
    const execute = (part: number, plan: Partial<StepPlan> = {}) =>
      this.#backend.execute(this.#loaded.program, this.#cache, {
        ...step,
        part: { index: part, count },
        ...plan,
      });
    for (let index = 0; index < count - 1; index++) await execute(index);
    const { rows } = await execute(count - 1, pooledOutputs(step.numTokens, poolSize ** 2));
    const width = rows[0]?.hidden?.length ?? 0;
    const joinedRows = new Float32Array(rows.length * width);
    for (const [index, { hidden, error }] of rows.entries()) {
      if (hidden === undefined || error !== undefined)
        throw new OctavoError("internal_error", "The vision tower gave values that are not finite.");
      joinedRows.set(hidden, index * width);
    }
    return joinedRows;
  }

  [Symbol.dispose](): void {
    this.#cache[Symbol.dispose]();
    this.#loaded[Symbol.dispose]();
  }
}

function mostPatches(vision: PoolingPart): number {
  if (vision.kind === "siglip") return vision.config.patchesPerSide ** 2;
  return vision.processing.maxTokens * vision.config.poolSize ** 2;
}

function planOf(vision: PoolingPart, { config: text }: Checkpoint, bounds?: ClipBounds): ModelPlan {
  return vision.kind === "siglip"
    ? planSiglip(vision.config, text, vision.tensors)
    : planGemma4Tower(vision.config, text, vision.tensors, mostPatches(vision), bounds);
}

/** The mean of every `perToken` tokens, which stand side by side. */
function pooledOutputs(numTokens: number, perToken: number): Pick<StepPlan, "outputTokens" | "outputs"> {
  const numOutputs = numTokens / perToken;
  const pooled: OutputRow = { kind: "hidden", pool: { kind: "mean", tokens: perToken } };
  return {
    outputTokens: Int32Array.from({ length: numOutputs }, (_, token) => (token + 1) * perToken - 1),
    outputs: Array.from({ length: numOutputs }, () => pooled),
  };
}
