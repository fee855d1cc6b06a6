import { type Backend, type KvCache, kvLayersOf } from "@octavo/kernels";
import type { Checkpoint, Qwen25VisionPart } from "@octavo/artifacts/checkpoint/checkpoint";
import type { ModelPlan } from "@octavo/artifacts/program/model-plan";
import { layerSpans, type Qwen25VisionConfig } from "@octavo/artifacts/vision/qwen25-vision";
import { planQwen25Layers, planQwen25Merger } from "@octavo/artifacts/vision/qwen25-vl";
import { OctavoError } from "@octavo/protocol/errors";
import { type LoadedModel, loadModel } from "../model/load-model.js";
import { type PatchGrid, patchOrder } from "./patches.js";
import { towerBlockSize, mostPatches, patchAxes, type SeenPatches, towerStep } from "./tower-step.js";

/** Qwen2.5-VL's: patches in order of their windows through the layers, a layer a step, then those of a token through the merger. */
export class Qwen25Tower implements Disposable {
  readonly #backend: Backend;
  readonly #vision: Qwen25VisionConfig;
  /** Of each of the `layerSpans`. */
  readonly #layers: readonly LoadedModel[];
  readonly #merger: LoadedModel;
  readonly #cache: KvCache;
  #latest: Promise<unknown> = Promise.resolve();

  private constructor(
    backend: Backend,
    vision: Qwen25VisionConfig,
    layers: readonly LoadedModel[],
    merger: LoadedModel,
    cache: KvCache,
  ) {
    this.#backend = backend;
    this.#vision = vision;
    this.#layers = layers;
    this.#merger = merger;
    this.#cache = cache;
  }

  static async load(
    backend: Backend,
    checkpoint: Checkpoint,
    { config: vision, tensors, processing }: Qwen25VisionPart,
    signal?: AbortSignal,
  ): Promise<Qwen25Tower> {
    const maxPatches = mostPatches(vision, processing);
    const maxTokens = maxPatches / vision.poolSize ** 2;
    const tower = { ...checkpoint, tensors };
    const made: LoadedModel[] = [];
    const load = async (plan: ModelPlan, rows: number): Promise<LoadedModel> => {
      const loaded = await loadModel(backend, tower, { maxTokens: rows, plan: () => plan, signal });
      made.push(loaded);
      return loaded;
    };
    try {
      const plans = layerSpans(vision).map((span) =>
        planQwen25Layers(vision, checkpoint.config, tensors, maxPatches, span),
      );
      const layers: LoadedModel[] = [];
      for (const plan of plans) layers.push(await load(plan, maxPatches));
      const merger = await load(planQwen25Merger(vision, checkpoint.config, tensors, maxPatches), maxTokens);
      // Each window begins with a block; there are as many as tokens at most.
      const numBlocks = Math.ceil(maxPatches / towerBlockSize) + maxTokens;
      const kvLayers = kvLayersOf(plans.flatMap(({ ops }) => ops));
      const cache = backend.createKvCache({
        layers: kvLayers,
        numBlocks,
        blockSize: towerBlockSize,
        dtype: "f32",
      });
      return new Qwen25Tower(backend, vision, layers, merger, cache);
    } catch (error) {
      for (const each of made) each[Symbol.dispose]();
      throw error;
    }
  }

  /** Memory that it takes: weights, and what a step holds of the largest image. */
  static byteLength(checkpoint: Checkpoint, { config, processing, tensors }: Qwen25VisionPart): number {
    const maxPatches = mostPatches(config, processing);
    const [first] = layerSpans(config);
    if (first === undefined) throw new OctavoError("internal_error", "The vision tower has no layers.");
    const { buffers } = planQwen25Layers(config, checkpoint.config, tensors, maxPatches, first);
    const width = buffers.reduce((sum, own) => sum + own, 8 * config.hiddenSize);
    const weightBytes = [...tensors.values()].reduce((sum, { byteLength }) => sum + byteLength, 0);
    return weightBytes + 4 * width * maxPatches;
  }

  /** `patches` as the processor cuts them. */
  see(patches: Float32Array, grid: PatchGrid): Promise<SeenPatches> {
    const own = this.#latest.then(() => this.#run(patches, grid));
    this.#latest = own.catch(() => undefined);
    return own;
  }

  async #run(patches: Float32Array, grid: PatchGrid): Promise<SeenPatches> {
    const { poolSize, windowSize } = this.#vision;
    const tokens = { rows: grid.rows / poolSize, columns: grid.columns / poolSize };
    const { order, lengths } = windowsOf(tokens, windowSize);
    const perToken = poolSize ** 2;
    const positions = rowsIn(patchOrder(grid, poolSize), perToken, order);
    const axes = patchAxes(positions, grid.columns);
    const steps = {
      whole: towerStep([positions.length]),
      windows: towerStep(lengths.map((count) => count * perToken)),
    };
    let stream = rowsIn(patches, patches.length / order.length, order);
    for (const [at, { first, end, seesWhole }] of layerSpans(this.#vision).entries()) {
      const { program } = this.#layers[at] ?? this.#merger;
      const step = { ...(seesWhole ? steps.whole : steps.windows), axes, received: stream };
      for (let index = 0; index < end - first; index++) {
        const part = { index, count: end - first };
        const { sent } = await this.#backend.execute(program, this.#cache, { ...step, part });
        if (sent !== undefined) stream = sent;
      }
    }
    const { sent: merged = new Float32Array(0) } = await this.#backend.execute(
      this.#merger.program,
      this.#cache,
      { ...towerStep([order.length]), received: stream },
    );
    if (!merged.every(Number.isFinite))
      throw new OctavoError("internal_error", "The vision tower gave values that are not finite.");
    const places = new Int32Array(order.length);
    for (const [at, token] of order.entries()) places[token] = at;
    return { rows: rowsIn(merged, this.#vision.outSize, places), added: new Float32Array(0), grid: tokens };
  }

  [Symbol.dispose](): void {
    this.#cache[Symbol.dispose]();
    for (const each of [...this.#layers, this.#merger]) each[Symbol.dispose]();
  }
}

/** Tokens window by window, and how many each window has: those at the right and at the bottom may have fewer. */
function windowsOf(
  { rows, columns }: PatchGrid,
  size: number,
): { readonly order: Int32Array; readonly lengths: readonly number[] } {
  const order: number[] = [];
  const lengths: number[] = [];
  for (let top = 0; top < rows; top += size)
    for (let left = 0; left < columns; left += size) {
      const [bottom, right] = [Math.min(top + size, rows), Math.min(left + size, columns)];
      for (let row = top; row < bottom; row++)
        for (let column = left; column < right; column++) order.push(row * columns + column);
      lengths.push((bottom - top) * (right - left));
    }
  return { order: Int32Array.from(order), lengths };
}

/** Runs of `width` values in another order. */
function rowsIn<T extends Float32Array | Int32Array>(values: T, width: number, order: Int32Array): T {
  const turned = values.slice() as T;
  for (const [at, from] of order.entries())
    turned.set(values.subarray(from * width, (from + 1) * width), at * width);
  return turned;
}
