import {
  type Backend,
  type KvCache,
  kvLayersOf,
  type OutputRow,
  type StepPlan,
  type StepResult,
} from "@octavo/kernels";
import type { Checkpoint, SiglipPart } from "@octavo/artifacts/checkpoint/checkpoint";
import { planSiglip } from "@octavo/artifacts/vision/siglip";
import { OctavoError } from "@octavo/protocol/errors";
import { type LoadedModel, loadModel } from "../model/load-model.js";
import { patchPositions } from "./patches.js";

const blockSize = 16;

/** Makes rows of a decoder's stream from an image's patches: one image at a time, a layer a step, so that the engine's own steps run between. */
export class VisionTower implements Disposable {
  readonly #backend: Backend;
  readonly #loaded: LoadedModel;
  readonly #cache: KvCache;
  readonly #step: Omit<StepPlan, "received">;
  readonly #numParts: number;
  #latest: Promise<unknown> = Promise.resolve();

  private constructor(backend: Backend, vision: SiglipPart, loaded: LoadedModel, cache: KvCache) {
    this.#backend = backend;
    this.#loaded = loaded;
    this.#cache = cache;
    this.#step = stepOf(vision);
    this.#numParts = vision.config.numLayers;
  }

  static async load(
    backend: Backend,
    checkpoint: Checkpoint,
    vision: SiglipPart,
    signal?: AbortSignal,
  ): Promise<VisionTower> {
    const numPatches = vision.config.patchesPerSide ** 2;
    const plan = planSiglip(vision.config, checkpoint.config, vision.tensors);
    const tower = { ...checkpoint, tensors: vision.tensors };
    const loaded = await loadModel(backend, tower, { maxTokens: numPatches, plan: () => plan, signal });
    try {
      const spec = { numBlocks: Math.ceil(numPatches / blockSize), blockSize, dtype: "f32" as const };
      const cache = backend.createKvCache({ layers: kvLayersOf(plan.ops), ...spec });
      return new VisionTower(backend, vision, loaded, cache);
    } catch (error) {
      loaded[Symbol.dispose]();
      throw error;
    }
  }

  /** Memory that it takes: weights, and what a step holds of an image. */
  static byteLength(checkpoint: Checkpoint, { config, tensors }: SiglipPart): number {
    const { buffers, ops } = planSiglip(config, checkpoint.config, tensors);
    const kvWidth = kvLayersOf(ops).reduce(
      (sum, { numKvHeads, headDim }) => sum + 2 * numKvHeads * headDim,
      0,
    );
    const width = buffers.reduce((sum, own) => sum + own, kvWidth);
    const weightBytes = [...tensors.values()].reduce((sum, { byteLength }) => sum + byteLength, 0);
    return weightBytes + 4 * width * config.patchesPerSide ** 2;
  }

  /** `[tokens, width of the decoder's stream]`. */
  rows(patches: Float32Array): Promise<Float32Array> {
    const own = this.#latest.then(() => this.#run(patches));
    this.#latest = own.catch(() => undefined);
    return own;
  }

  async #run(patches: Float32Array): Promise<Float32Array> {
    const execute = (plan: Partial<StepPlan>): Promise<StepResult> =>
      this.#backend.execute(this.#loaded.program, this.#cache, { ...this.#step, received: patches, ...plan });
    const count = this.#numParts;
    for (let index = 0; index < count - 1; index++) await execute({ part: { index, count }, outputs: [] });
    const { rows } = await execute({ part: { index: count - 1, count } });
    const width = rows[0]?.hidden?.length ?? 0;
    const joined = new Float32Array(rows.length * width);
    for (const [index, { hidden, error }] of rows.entries()) {
      if (hidden === undefined || error !== undefined)
        throw new OctavoError("internal_error", "The vision tower gave values that are not finite.");
      joined.set(hidden, index * width);
    }
    return joined;
  }

  [Symbol.dispose](): void {
    this.#cache[Symbol.dispose]();
    this.#loaded[Symbol.dispose]();
  }
}

function stepOf({ config }: SiglipPart): Omit<StepPlan, "received"> {
  const { patchesPerSide, poolSize } = config;
  const numTokens = patchesPerSide ** 2;
  const perToken = poolSize ** 2;
  const numOutputs = numTokens / perToken;
  const numBlocks = Math.ceil(numTokens / blockSize);
  const pooled: OutputRow = { kind: "hidden", pool: { kind: "mean", tokens: perToken } };
  return {
    numTokens,
    numSequences: 1,
    tokenIds: new Int32Array(numTokens),
    positions: patchPositions(config),
    slots: Int32Array.from({ length: numTokens }, (_, patch) => patch),
    queryStarts: Int32Array.of(0, numTokens),
    contextLengths: Int32Array.of(numTokens),
    blockTables: Int32Array.from({ length: numBlocks }, (_, block) => block),
    blockTableStarts: Int32Array.of(0, numBlocks),
    outputTokens: Int32Array.from({ length: numOutputs }, (_, token) => (token + 1) * perToken - 1),
    outputs: Array.from({ length: numOutputs }, () => pooled),
  };
}
