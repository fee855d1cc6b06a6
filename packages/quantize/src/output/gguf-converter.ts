import { encodeGgufHeader, ggufName, type GgufValue } from "@octavo/engine/artifacts";
import type { TensorInfo } from "@octavo/engine";
import { EncodePool } from "../gguf/encode-pool.js";
import { type EncodedStretch, encodeStretch } from "../gguf/encoded-stretch.js";
import { ggmlTypes, tensorBytesOf, type WrittenGgmlType } from "../gguf/ggml-types.js";
import { fittingType, type GgufMix } from "../gguf/mixes.js";
import { ggufArchitecture, modelMetadata, ropeFactors } from "../gguf/model-metadata.js";
import { tokenizerMetadata } from "../gguf/tokenizer-metadata.js";
import { relativeError } from "../report/errors.js";
import { layerOf, moduleOf, readRows, type SourceModel, type Unit } from "../source/source-model.js";
import type { UnitConverter } from "./unit-converter.js";
import type { ModuleRecord, UnitRecord, UnitToWrite } from "./work-folder.js";

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
  readonly source: TensorInfo | Float32Array;
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
  readonly #interleaved: { readonly headDim: number } | undefined;
  readonly #pool: EncodePool;

  constructor(source: SourceModel, mix: GgufMix, numThreads: number) {
    const { checkpoint, units } = source;
    const metadata: Record<string, GgufValue> = {
      ...modelMetadata(checkpoint, mix.fileType),
      ...tokenizerMetadata(checkpoint),
    };
    const placed = units.map((unit, index) => placeTensors(source, unit, mix, index === 0));
    const tensors = placed.flat().map((tensor) => ({ ...tensor, typeId: tensor.type.id }));
    this.#header = encodeGgufHeader({ metadata, tensors, alignment });
    let offset = this.#header.byteLength;
    this.#units = placed.map((own, index) => {
      const unit = { tensors: own, offset: index === 0 ? 0 : offset };
      offset += own.reduce((sum, tensor) => sum + padded(tensor.byteLength), 0);
      return unit;
    });
    const { interleavesRotary } = ggufArchitecture(checkpoint);
    this.#interleaved = interleavesRotary ? { headDim: checkpoint.config.headDim } : undefined;
    this.#file = `model-${mix.name}.gguf`;
    this.#pool = new EncodePool(numThreads);
  }

  [Symbol.dispose](): void {
    this.#pool[Symbol.dispose]();
  }

  get layout(): Uint8Array {
    return this.#header;
  }

  resume(finished: readonly UnitRecord[]): Promise<number> {
    return Promise.resolve(finished.length);
  }

  async convert(_unit: Unit, index: number): Promise<UnitToWrite> {
    const unit = this.#units[index]!;
    const chunks: Uint8Array[] = index === 0 ? [this.#header] : [];
    const modules: ModuleRecord[] = [];
    for (const tensor of unit.tensors) {
      const { source, type, byteLength } = tensor;
      const isComputed = source instanceof Float32Array;
      const parts = isComputed ? [encodeStretch(type, source)] : await this.#encode(source, type);
      for (const { bytes } of parts) chunks.push(bytes);
      if (!isComputed && source.shape.length === 2) {
        const error = relativeError(parts.map((part) => part.error));
        modules.push({ name: moduleOf(source.name), type: type.name, error });
      }
      chunks.push(new Uint8Array(padded(byteLength) - byteLength));
    }
    return {
      file: this.#file,
      offset: unit.offset,
      chunks,
      tensors: unit.tensors.map(({ name, byteLength }) => ({ name, byteLength })),
      modules,
    };
  }

  /** All of it is in the file. */
  finish(): Promise<void> {
    return Promise.resolve();
  }

  /** A tensor in stretches of whole rows, and of whole heads where those are interleaved. */
  async #encode(tensor: TensorInfo, type: WrittenGgmlType): Promise<EncodedStretch[]> {
    const [numRows = 1, cols = 1] = tensor.shape;
    const rotates = /\.self_attn\.[qk]_proj\.(?:weight|bias)$/.test(tensor.name);
    const headDim = rotates ? this.#interleaved?.headDim : undefined;
    const unit = headDim ?? 1;
    const rowsPerStretch = Math.max(1, Math.floor(stretchElements / (cols * unit))) * unit;
    const parts: Promise<EncodedStretch>[] = [];
    for (let first = 0; first < numRows; first += rowsPerStretch) {
      const read = await readRows(tensor, first, Math.min(rowsPerStretch, numRows - first));
      const values = headDim === undefined ? read : interleaveRows(read, cols, headDim);
      // So many stretches are in memory as threads can work on, and one more.
      await parts.at(-this.#pool.numThreads);
      const part =
        numRows * cols < fewElements
          ? Promise.resolve(encodeStretch(type, values))
          : this.#pool.encode(type.name, values);
      // Whoever awaits the parts in their order hears of it; until then it is nobody's.
      part.catch(() => undefined);
      parts.push(part);
    }
    return Promise.all(parts);
  }
}

function placeTensors(source: SourceModel, unit: Unit, mix: GgufMix, isFirst: boolean): PlacedTensor[] {
  const { config } = source.checkpoint;
  const factors = isFirst ? ropeFactors(config) : undefined;
  const placed: PlacedTensor[] = unit.tensors.flatMap((tensor) => {
    const name = ggufName(tensor.name);
    // A tied model may store its head once more; the file would then hold it twice.
    if (name === undefined || (name === "output.weight" && config.tieWordEmbeddings)) return [];
    const isMatrix = tensor.shape.length === 2;
    const wanted = mix.typeOf({
      kind: name.replace(/^blk\.\d+\./, ""),
      layer: layerOf(tensor.name) ?? 0,
      numLayers: config.numLayers,
      tiedEmbeddings: config.tieWordEmbeddings,
      headsPerKv: config.numHeads / config.numKvHeads,
    });
    const type = isMatrix ? fittingType(wanted, tensor.shape[1] ?? 0) : ggmlTypes.F32;
    const numElements = tensor.shape.reduce((product, size) => product * size, 1);
    return [
      { name, type, shape: tensor.shape, byteLength: tensorBytesOf(type, numElements), source: tensor },
    ];
  });
  if (factors !== undefined) {
    const { length, byteLength } = factors;
    placed.push({
      name: "rope_freqs.weight",
      type: ggmlTypes.F32,
      shape: [length],
      byteLength,
      source: factors,
    });
  }
  return placed;
}

function padded(byteLength: number): number {
  return Math.ceil(byteLength / alignment) * alignment;
}

/** Rows i and i + d/2 of a head, which rotate together, become rows 2i and 2i + 1. */
function interleaveRows(values: Float32Array, cols: number, headDim: number): Float32Array {
  const out = new Float32Array(values.length);
  const half = headDim / 2;
  for (let row = 0; row < values.length / cols; row++) {
    const within = row % headDim;
    const target = row - within + 2 * (within % half) + (within < half ? 0 : 1);
    out.set(values.subarray(row * cols, (row + 1) * cols), target * cols);
  }
  return out;
}
