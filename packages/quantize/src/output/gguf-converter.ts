import { encodeGgufHeader, ggufName, type GgufValue } from "@octavo/engine/artifacts";
import type { TensorInfo } from "@octavo/engine";
import { encodeGgml, type GgmlType, ggmlTypes, tensorBytesOf } from "../gguf/ggml-types.js";
import { fittingType, type GgufMix } from "../gguf/mixes.js";
import { ggufArchitecture, modelMetadata, ropeFactors } from "../gguf/model-metadata.js";
import { tokenizerMetadata } from "../gguf/tokenizer-metadata.js";
import { weightError } from "../report/errors.js";
import { layerOf, moduleOf, readFloats, type SourceModel, type Unit } from "../source/source-model.js";
import type { UnitConverter } from "./unit-converter.js";
import type { ModuleRecord, UnitRecord, UnitToWrite } from "./work-folder.js";

const alignment = 32;

interface PlacedTensor {
  readonly name: string;
  readonly type: GgmlType;
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

  constructor(source: SourceModel, mix: GgufMix) {
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
      const values = source instanceof Float32Array ? source : await this.#values(source);
      const stored = values.slice();
      chunks.push(encodeGgml(type, stored));
      if (!(source instanceof Float32Array) && source.shape.length === 2) {
        modules.push({ name: moduleOf(source.name), type: type.name, error: weightError(values, stored) });
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

  async #values(tensor: TensorInfo): Promise<Float32Array> {
    const values = await readFloats(tensor);
    const rotates = /\.self_attn\.[qk]_proj\.(?:weight|bias)$/.test(tensor.name);
    if (this.#interleaved === undefined || !rotates) return values;
    return interleaveRows(values, tensor.shape[1] ?? 1, this.#interleaved.headDim);
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
