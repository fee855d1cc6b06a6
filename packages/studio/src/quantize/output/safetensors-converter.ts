import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readTensor } from "@octavo/artifacts/checkpoint/read-tensor";
import type { TensorInfo } from "@octavo/engine";
import { store } from "../formats/half.js";
import type { ModuleFormat } from "../formats/module-format.js";
import {
  floatType,
  moduleOf,
  readTensorFloats,
  type SourceModel,
  type SourceUnit,
} from "../source/source-model.js";
import { weightError } from "../report/errors.js";
import { type EncodedMatrix, type OutputTensor, safetensorsFile } from "./output-tensor.js";
import { copySideFiles } from "./side-files.js";
import type { UnitConverter } from "./unit-converter.js";
import type { ModuleRecord, UnitRecord, UnitToWrite, WorkFolder } from "./work-folder.js";

/** What becomes of a unit's tensors: encoded matrices by the tensor they replace, and changed values of others. */
export interface ConvertedWeights {
  readonly encoded: ReadonlyMap<string, EncodedMatrix>;
  readonly changed: ReadonlyMap<string, Float32Array>;
  /** Relative squared errors of the outputs, by tensor, where they were measured. */
  readonly outputErrors: ReadonlyMap<string, number>;
  readonly state?: UnitRecord["state"];
}

/** A model's weights on their way, a unit at a time. */
export interface WeightConversion {
  resume(finished: readonly UnitRecord[], work: WorkFolder): Promise<number>;
  /** @param chosen the unit's tensors that are to be quantised */
  convert(unit: SourceUnit, chosen: readonly TensorInfo[], work: WorkFolder): Promise<ConvertedWeights>;
}

/** Every chosen matrix by itself, without looking at what it multiplies. */
export function plainConversion(format: ModuleFormat): WeightConversion {
  return {
    resume: (finished) => Promise.resolve(finished.length),
    convert: async (_unit, chosen) => {
      const encoded = new Map<string, EncodedMatrix>();
      for (const tensor of chosen) {
        const [rows = 0, cols = 0] = tensor.shape;
        encoded.set(
          tensor.name,
          format.encode(moduleOf(tensor.name), await readTensorFloats(tensor), rows, cols),
        );
      }
      return { encoded, changed: new Map(), outputErrors: new Map() };
    },
  };
}

/** Writes a folder in Hugging Face's layout: a shard per unit, an index, config.json with a quantization_config. */
export class SafetensorsConverter implements UnitConverter {
  /** Every shard is whole by itself. */
  readonly layout: Uint8Array = new Uint8Array();
  readonly #source: SourceModel;
  readonly #format: ModuleFormat;
  readonly #conversion: WeightConversion;
  readonly #chosen: ReadonlySet<string>;

  /** @param chosen names of the tensors to be quantised */
  constructor(
    source: SourceModel,
    format: ModuleFormat,
    conversion: WeightConversion,
    chosen: ReadonlySet<string>,
  ) {
    this.#source = source;
    this.#format = format;
    this.#conversion = conversion;
    this.#chosen = chosen;
  }

  [Symbol.dispose](): void {}

  resume(finished: readonly UnitRecord[], work: WorkFolder): Promise<number> {
    return this.#conversion.resume(finished, work);
  }

  async convert(unit: SourceUnit, index: number, work: WorkFolder): Promise<UnitToWrite> {
    const chosen = unit.tensors.filter((tensor) => this.#chosen.has(tensor.name));
    const { encoded, changed, outputErrors, state } = await this.#conversion.convert(unit, chosen, work);
    const tensors: OutputTensor[] = [];
    const modules: ModuleRecord[] = [];
    for (const tensor of unit.tensors) {
      const matrix = encoded.get(tensor.name);
      if (matrix === undefined) {
        tensors.push(await plainTensor(tensor, changed.get(tensor.name)));
        continue;
      }
      tensors.push(...matrix.tensors);
      const error =
        outputErrors.get(tensor.name) ?? weightError(await readTensorFloats(tensor), matrix.values);
      modules.push({ name: moduleOf(tensor.name), type: this.#format.name, error });
    }
    return {
      file: this.#shardName(index),
      offset: 0,
      chunks: safetensorsFile(tensors),
      tensors: tensors.map(({ name, bytes }) => ({ name, byteLength: bytes.byteLength })),
      modules,
      ...(state !== undefined && { state }),
    };
  }

  async finish(work: WorkFolder): Promise<void> {
    const { path } = this.#source.checkpoint;
    const weightMap: Record<string, string> = {};
    let totalSize = 0;
    for (const unit of work.units) {
      for (const { name, byteLength } of unit.tensors) {
        weightMap[name] = unit.file;
        totalSize += byteLength;
      }
    }
    await work.file(
      "model.safetensors.index.json",
      json({ metadata: { total_size: totalSize }, weight_map: weightMap }),
    );
    const config = JSON.parse(readFileSync(join(path, "config.json"), "utf8")) as Record<string, unknown>;
    const { linears, routers } = this.#source;
    const kept = [...linears, ...routers].filter((name) => !this.#chosen.has(name)).map(moduleOf);
    await work.file(
      "config.json",
      json({ ...config, quantization_config: this.#format.configuration(kept) }),
    );
    await copySideFiles(path, work);
  }

  #shardName(index: number): string {
    const pad = (value: number): string => String(value).padStart(5, "0");
    return `model-${pad(index + 1)}-of-${pad(this.#source.units.length)}.safetensors`;
  }
}

async function plainTensor(tensor: TensorInfo, values: Float32Array | undefined): Promise<OutputTensor> {
  const type = floatType(tensor);
  const bytes = values === undefined ? await readTensor(tensor) : store(values, type).bytes;
  const dtype = ({ f32: "F32", f16: "F16", bf16: "BF16" } as const)[type];
  return { name: tensor.name, dtype, shape: tensor.shape, bytes };
}

export function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
