import { encodeGgufHeader } from "@octavo/artifacts/gguf/write-header";
import { fittingGgufType, type GgufMix } from "@octavo/artifacts/gguf/mixes";
import { ropeFactorNames } from "@octavo/artifacts/gguf/names";
import { type RopeFactors } from "@octavo/artifacts/gguf/config";
import type { ImportanceMatrix } from "../calibration/importance-matrix.js";
import { EncodePool } from "../gguf/encode-pool.js";
import { type EncodedStretch, encodeStretch } from "../gguf/encoded-stretch.js";
import { ggmlTypes, tensorBytesOf, type WrittenGgmlType } from "../gguf/ggml-types.js";
import { describeGguf, type GgufModel } from "../gguf/model-metadata.js";
import { type GgufTensor, placeTensors, type RowRange } from "../gguf/placement.js";
import { tokenizerMetadata } from "../gguf/tokenizer-metadata.js";
import { relativeError } from "../report/errors.js";
import { readTensorRows, type SourceModel, type SourceUnit } from "../source/source-model.js";
import type { UnitConverter } from "./unit-converter.js";
import type { ModuleRecord, UnitRecord, UnitToWrite, WorkFolder } from "./work-folder.js";

const alignment = 32;
/** Elements read and encoded together: an embedding as a whole would be gigabytes in single precision. */
const stretchElements = 2 ** 21;
/** Tensors of fewer elements are not worth a thread. */
const fewElements = 2 ** 17;

interface PlacedTensor {
  readonly name: string;
  readonly type: WrittenGgmlType;
  readonly shape: readonly number[];
  readonly byteLength: number;
  readonly source: GgufTensor | Float32Array;
  /** Its name on the card; undefined for vectors and routers, which the card leaves out. */
  readonly module: string | undefined;
}

interface PlacedUnit {
  readonly tensors: readonly PlacedTensor[];
  /** Where its bytes begin in the file. The first unit's are preceded by the header. */
  readonly offset: number;
}

/** Writes one GGUF file; where each tensor lies follows from the mix alone, so units are appended as they come. */
export class GgufConverter implements UnitConverter {
  readonly #file: string;
  readonly #header: Uint8Array;
  readonly #units: readonly PlacedUnit[];
  readonly #model: GgufModel;
  readonly #heads: Heads;
  /** Files hold the norms' whole weights, this included. */
  readonly #normOffset: number;
  readonly #pool: EncodePool;
  readonly #importance: ImportanceMatrix | undefined;

  /** @param importance of the columns, by which scales are chosen */
  constructor(source: SourceModel, mix: GgufMix, numThreads: number, importance?: ImportanceMatrix) {
    const { checkpoint, units } = source;
    const model = describeGguf(checkpoint, mix.fileType, tokenizerMetadata(checkpoint));
    const placed = units.map((unit, index) => [
      ...placeTensors(source, unit, model.layerNames).map((tensor) =>
        typed(tensor, source, mix, importance !== undefined),
      ),
      ...(index === 0 ? factorTensors(model.ropeFactors) : []),
    ]);
    const tensors = placed.flat().map((tensor) => ({ ...tensor, typeId: tensor.type.id }));
    this.#header = encodeGgufHeader({ metadata: model.metadata, tensors, alignment });
    let offset = this.#header.byteLength;
    this.#units = placed.map((own, index) => {
      const unit = { tensors: own, offset: index === 0 ? 0 : offset };
      offset += own.reduce((sum, tensor) => sum + padded(tensor.byteLength), 0);
      return unit;
    });
    const { headDim, rope } = checkpoint.config;
    this.#normOffset = checkpoint.config.normWeightOffset ?? 0;
    this.#heads = { headDim, rotaryDim: rope.rotaryDim };
    this.#model = model;
    this.#file = `model-${mix.name}.gguf`;
    this.#pool = new EncodePool(numThreads);
    this.#importance = importance;
  }

  [Symbol.dispose](): void {
    this.#pool[Symbol.dispose]();
  }

  get layout(): Uint8Array {
    return this.#header;
  }

  resume(finished: readonly UnitRecord[], work: WorkFolder): Promise<number> {
    return this.#importance?.resume(finished, work) ?? Promise.resolve(finished.length);
  }

  async convert(sourceUnit: SourceUnit, index: number, work: WorkFolder): Promise<UnitToWrite> {
    const { byWeight, state } = (await this.#importance?.of(sourceUnit, work)) ?? {};
    const unit = this.#units[index]!;
    const chunks: Uint8Array[] = index === 0 ? [this.#header] : [];
    const modules: ModuleRecord[] = [];
    for (const tensor of unit.tensors) {
      const { source, type, byteLength, module } = tensor;
      const parts =
        source instanceof Float32Array
          ? [encodeStretch(type, source)]
          : await this.#encode(source, type, byWeight);
      for (const { bytes } of parts) chunks.push(bytes);
      if (module !== undefined) {
        const error = relativeError(parts.map((part) => part.error));
        modules.push({ name: module, type: type.name, error });
      }
      chunks.push(new Uint8Array(padded(byteLength) - byteLength));
    }
    return {
      file: this.#file,
      offset: unit.offset,
      chunks,
      tensors: unit.tensors.map(({ name, byteLength }) => ({ name, byteLength })),
      modules,
      ...(state !== undefined && { state }),
    };
  }

  /** Nothing is left to write. */
  finish(): Promise<void> {
    return Promise.resolve();
  }

  /** A tensor in stretches of whole rows, and of whole heads where those are interleaved. */
  async #encode(
    { name, rows }: GgufTensor,
    type: WrittenGgmlType,
    byWeight: ReadonlyMap<string, Float32Array> | undefined,
  ): Promise<EncodedStretch[]> {
    const { interleavesRotary } = this.#model;
    const heads = interleavesRotary && /\.attn_[qk]\.(?:weight|bias)$/.test(name) ? this.#heads : undefined;
    const shift = name.endsWith("_norm.weight") ? this.#normOffset : 0;
    const parts: Promise<EncodedStretch>[] = [];
    for (const range of rows.flatMap((whole) => stretchesOf(whole, heads?.headDim ?? 1))) {
      const { tensor, first, count, weight } = range;
      const read = await readTensorRows(tensor, first, count);
      const cols = read.length / count;
      const values = heads === undefined ? read : interleaveRows(read, cols, heads);
      if (shift !== 0) for (let i = 0; i < values.length; i++) values[i] = values[i]! + shift;
      const importance = byWeight?.get(weight);
      // At most one more stretch than threads is in memory.
      await parts.at(-this.#pool.numThreads);
      const part =
        values.length < fewElements
          ? Promise.resolve(encodeStretch(type, values, importance))
          : this.#pool.encode(type.name, values, importance);
      // Awaited in order below; until then a rejection must not count as unhandled.
      part.catch(() => undefined);
      parts.push(part);
    }
    return Promise.all(parts);
  }
}

interface Heads {
  readonly headDim: number;
  /** The first elements of a head, which are rotated. */
  readonly rotaryDim: number;
}

/** @param unit - rows that must stay together */
function stretchesOf({ tensor, first, count, weight }: RowRange, unit: number): RowRange[] {
  const [, cols = 1] = tensor.shape;
  const most = Math.max(1, Math.floor(stretchElements / (cols * unit))) * unit;
  return Array.from({ length: Math.ceil(count / most) }, (_, index) => ({
    tensor,
    first: first + index * most,
    count: Math.min(most, count - index * most),
    weight,
  }));
}

/** Vectors, routers and the shared expert's gate stay in single precision. */
function typed(tensor: GgufTensor, source: SourceModel, mix: GgufMix, hasImportance: boolean): PlacedTensor {
  const { config } = source.checkpoint;
  const { name, shape, module } = tensor;
  const isMatrix = shape.length > 1 && !name.endsWith(".ffn_gate_inp.weight");
  const wanted = mix.typeOf({
    kind: name.replace(/^blk\.\d+\./, ""),
    layer: Number(/^blk\.(\d+)\./.exec(name)?.[1] ?? 0),
    numLayers: config.numLayers,
    tiedEmbeddings: config.tieWordEmbeddings,
    headsPerKv: config.numHeads / config.numKvHeads,
    numExperts: config.experts?.count ?? 0,
    hasImportance,
  });
  const type = isMatrix ? ggmlTypes[fittingGgufType(wanted, shape.at(-1) ?? 0)] : ggmlTypes.F32;
  const numElements = shape.reduce((product, size) => product * size, 1);
  const byteLength = tensorBytesOf(type, numElements);
  return { name, type, shape, byteLength, source: tensor, module: isMatrix ? module : undefined };
}

function factorTensors(factors: RopeFactors): PlacedTensor[] {
  return (["always", "long", "short"] as const).flatMap((kind) => {
    const source = factors[kind];
    if (source === undefined) return [];
    const { length, byteLength } = source;
    const name = ropeFactorNames[kind];
    return [{ name, type: ggmlTypes.F32, shape: [length], byteLength, source, module: undefined }];
  });
}

function padded(byteLength: number): number {
  return Math.ceil(byteLength / alignment) * alignment;
}

/** Rows i and i + r/2 of the r first of a head, which rotate together, become rows 2i and 2i + 1. */
function interleaveRows(values: Float32Array, cols: number, { headDim, rotaryDim }: Heads): Float32Array {
  const out = new Float32Array(values.length);
  const half = rotaryDim / 2;
  for (let row = 0; row < values.length / cols; row++) {
    const within = row % headDim;
    const place = within >= rotaryDim ? within : 2 * (within % half) + (within < half ? 0 : 1);
    out.set(values.subarray(row * cols, (row + 1) * cols), (row - within + place) * cols);
  }
  return out;
}
