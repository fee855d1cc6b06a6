import { type Backend, type KvCache, kvLayersOf } from "@octavo/kernels";
import type { Checkpoint, Qwen3VisionPart, TensorInfo } from "@octavo/artifacts/checkpoint/checkpoint";
import { readTensor } from "@octavo/artifacts/checkpoint/read-tensor";
import { isFloatType } from "@octavo/artifacts/checkpoint/tensor-storage";
import { convertFloats } from "@octavo/artifacts/program/float-conversion";
import { planQwen3Mergers, planQwen3Tower } from "@octavo/artifacts/vision/qwen3-vl";
import type { Qwen3VisionConfig } from "@octavo/artifacts/vision/qwen3-vision";
import { OctavoError } from "@octavo/protocol/errors";
import { type LoadedModel, loadModel } from "../model/load-model.js";
import { type PatchGrid, patchOrder } from "./patches.js";
import { joined, mostPatches, patchAxes, type SeenPatches, towerBlockSize, towerStep } from "./tower-step.js";

/** Qwen3-VL's: patches through the layers, a layer a step, then those of a token through the mergers. */
export class Qwen3Tower implements Disposable {
  readonly #backend: Backend;
  readonly #vision: Qwen3VisionConfig;
  readonly #layers: LoadedModel;
  readonly #mergers: LoadedModel;
  readonly #cache: KvCache;
  /** `[positions, hidden size]` */
  readonly #positions: Float32Array;
  #latest: Promise<unknown> = Promise.resolve();

  private constructor(
    backend: Backend,
    vision: Qwen3VisionConfig,
    [layers, mergers]: readonly [LoadedModel, LoadedModel],
    cache: KvCache,
    positions: Float32Array,
  ) {
    this.#backend = backend;
    this.#vision = vision;
    this.#layers = layers;
    this.#mergers = mergers;
    this.#cache = cache;
    this.#positions = positions;
  }

  static async load(
    backend: Backend,
    checkpoint: Checkpoint,
    { config: vision, tensors, processing }: Qwen3VisionPart,
    signal?: AbortSignal,
  ): Promise<Qwen3Tower> {
    const maxPatches = mostPatches(vision, processing);
    const positions = await readPositions(tensors.get("pos_embed.weight"), vision);
    const layersPlan = planQwen3Tower(vision, checkpoint.config, tensors, maxPatches);
    const mergersPlan = planQwen3Mergers(vision, checkpoint.config, tensors, maxPatches);
    const tower = { ...checkpoint, tensors };
    const made: Disposable[] = [];
    try {
      const layers = await loadModel(backend, tower, {
        maxTokens: maxPatches,
        plan: () => layersPlan,
        signal,
      });
      made.push(layers);
      const maxTokens = maxPatches / vision.poolSize ** 2;
      const mergers = await loadModel(backend, tower, { maxTokens, plan: () => mergersPlan, signal });
      made.push(mergers);
      const spec = {
        numBlocks: Math.ceil(maxPatches / towerBlockSize),
        blockSize: towerBlockSize,
        dtype: "f32" as const,
      };
      const cache = backend.createKvCache({ layers: kvLayersOf(layersPlan.ops), ...spec });
      return new Qwen3Tower(backend, vision, [layers, mergers], cache, positions);
    } catch (error) {
      for (const each of made) each[Symbol.dispose]();
      throw error;
    }
  }

  /** Memory that it takes: weights, and what a step holds of the largest image. */
  static byteLength(checkpoint: Checkpoint, { config, processing, tensors }: Qwen3VisionPart): number {
    const maxPatches = mostPatches(config, processing);
    const { buffers } = planQwen3Tower(config, checkpoint.config, tensors, maxPatches);
    const width = buffers.reduce((sum, own) => sum + own, 4 * config.hiddenSize);
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
    const { poolSize, numLayers, tappedLayers } = this.#vision;
    const numPatches = grid.rows * grid.columns;
    const order = patchOrder(grid, poolSize);
    const received = joined([patches, this.#positionsOf(grid, order)]);
    const axes = patchAxes(order, grid.columns);
    const step = { ...towerStep([numPatches]), axes, received };
    const sent: Float32Array[] = [];
    for (let index = 0; index < numLayers; index++) {
      const part = { index, count: numLayers };
      const result = await this.#backend.execute(this.#layers.program, this.#cache, { ...step, part });
      if (result.sent !== undefined) sent.push(result.sent);
    }
    const whole = joined(sent);
    const width = whole.length / (1 + tappedLayers.length);
    // The last layer's stand last, and are merged first.
    const input = joined([
      whole.subarray(width * tappedLayers.length),
      whole.subarray(0, width * tappedLayers.length),
    ]);
    const numTokens = numPatches / poolSize ** 2;
    const merged = await this.#backend.execute(this.#mergers.program, this.#cache, {
      ...towerStep([numTokens]),
      received: input,
    });
    const rows = merged.sent ?? new Float32Array(0);
    if (!rows.every(Number.isFinite))
      throw new OctavoError("internal_error", "The vision tower gave values that are not finite.");
    const rowsLength = numTokens * this.#vision.outSize;
    return {
      rows: rows.subarray(0, rowsLength),
      added: rows.subarray(rowsLength),
      grid: { rows: grid.rows / poolSize, columns: grid.columns / poolSize },
    };
  }

  /** Of each patch, between the learned ones: corners of an image have those of the corners. */
  #positionsOf(grid: PatchGrid, order: Int32Array): Float32Array {
    const { positionsPerSide: side, hiddenSize: width } = this.#vision;
    const tapsOf = (at: number, length: number): readonly (readonly [index: number, weight: number])[] => {
      const place = length === 1 ? 0 : Math.fround((at * (side - 1)) / (length - 1));
      const low = Math.floor(place);
      const part = place - low;
      return [
        [low, 1 - part],
        [Math.min(low + 1, side - 1), part],
      ];
    };
    const out = new Float32Array(order.length * width);
    for (const [patch, position] of order.entries())
      for (const [y, down] of tapsOf(Math.floor(position / grid.columns), grid.rows))
        for (const [x, along] of tapsOf(position % grid.columns, grid.columns))
          for (let column = 0; column < width; column++)
            out[patch * width + column]! += down * along * this.#positions[(y * side + x) * width + column]!;
    return out;
  }

  [Symbol.dispose](): void {
    this.#cache[Symbol.dispose]();
    this.#mergers[Symbol.dispose]();
    this.#layers[Symbol.dispose]();
  }
}

async function readPositions(
  tensor: TensorInfo | undefined,
  { positionsPerSide, hiddenSize }: Qwen3VisionConfig,
): Promise<Float32Array> {
  if (tensor === undefined || !isFloatType(tensor.type))
    throw new OctavoError("artifact_invalid", "The checkpoint has no visual.pos_embed.weight in floats.");
  const values = new Float32Array(convertFloats(await readTensor(tensor), tensor.type, "f32").slice().buffer);
  if (values.length === positionsPerSide ** 2 * hiddenSize) return values;
  throw new OctavoError(
    "artifact_invalid",
    "visual.pos_embed.weight has another shape than config.json says.",
  );
}
