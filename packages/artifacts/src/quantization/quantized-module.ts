import type { WeightType } from "@octavo/kernels";
import type { OctavoError } from "@octavo/protocol/errors";
import { convertFloats } from "../program/float-conversion.js";
import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { MatrixRecipe, StoredTensor, TensorInfo } from "../checkpoint/checkpoint.js";
import { readTensor } from "../checkpoint/read-tensor.js";
import { floatTypeOf } from "../safetensors/safetensors-file.js";

/** The kernels' granularity: columns come in groups of 32. */
const columnUnit = 32;

/** The tensors of one quantised linear layer. */
export class QuantizedModule {
  /** e.g. "model.layers.0.self_attn.q_proj" */
  readonly name: string;
  readonly #tensors: ReadonlyMap<string, StoredTensor>;

  readonly #joint: string;

  constructor(name: string, tensors: ReadonlyMap<string, StoredTensor>, joint = ".") {
    this.name = name;
    this.#tensors = tensors;
    this.#joint = joint;
  }

  has(leaf: string): boolean {
    return this.#tensors.has(leaf);
  }

  find(leaf: string): StoredTensor | undefined {
    return this.#tensors.get(leaf);
  }

  /** The tensor `name.leaf`, of one of the dtypes. */
  need(leaf: string, dtypes: readonly string[]): StoredTensor {
    const tensor = this.#tensors.get(leaf);
    if (tensor === undefined) {
      const present = [...this.#tensors.keys()].map((other) => JSON.stringify(other)).join(", ");
      throw artifactInvalid(
        this.#path(),
        `lacks tensor ${JSON.stringify(`${this.name}${this.#joint}${leaf}`)}; of that layer it has ${present}`,
      );
    }
    if (!dtypes.includes(tensor.dtype)) {
      throw this.invalid(leaf, `is ${tensor.dtype}; ${dtypes.join(" or ")} is expected`);
    }
    return tensor;
  }

  /** A matrix of any of the dtypes, as `[rows, cols]`. */
  needMatrix(leaf: string, dtypes: readonly string[]): { tensor: StoredTensor; rows: number; cols: number } {
    const tensor = this.need(leaf, dtypes);
    const [rows = 0, cols = 0] = tensor.shape;
    if (tensor.shape.length !== 2 || rows < 1 || cols < 1) {
      throw this.invalid(leaf, `has the shape [${tensor.shape.join(", ")}]; a matrix is expected`);
    }
    return { tensor, rows, cols };
  }

  /** Checks a tensor's shape. */
  expectShape(leaf: string, shape: readonly number[], why: string): void {
    const found = this.#tensors.get(leaf)?.shape ?? [];
    if (found.length === shape.length && found.every((size, axis) => size === shape[axis])) return;
    throw this.invalid(leaf, `has the shape [${found.join(", ")}]; ${why} implies [${shape.join(", ")}]`);
  }

  /** Refuses group sizes that do not divide the columns, or that the kernels do not take. */
  checkGroups(leaf: string, cols: number, groupSize: number): void {
    if (!Number.isInteger(groupSize) || groupSize < 1 || cols % groupSize !== 0) {
      throw this.invalid(leaf, `has groups of ${groupSize}, which do not divide its ${cols} inputs`);
    }
    if (groupSize % columnUnit !== 0) {
      throw this.unsupported(leaf, `has groups of ${groupSize}; multiples of ${columnUnit} are supported`);
    }
  }

  /** The layer's weight as one matrix `[rows, cols]`, put together when it is packed. */
  matrix(type: WeightType, rows: number, cols: number, recipe: MatrixRecipe): TensorInfo {
    let byteLength = 0;
    for (const tensor of this.#tensors.values()) byteLength += tensor.byteLength;
    return {
      name: `${this.name}.weight`,
      type,
      shape: [rows, cols],
      path: this.#path(),
      offset: 0,
      byteLength,
      recipe,
    };
  }

  invalid(leaf: string, problem: string): OctavoError {
    return artifactInvalid(
      this.#path(leaf),
      `tensor ${JSON.stringify(`${this.name}${this.#joint}${leaf}`)} ${problem}`,
    );
  }

  unsupported(leaf: string, problem: string): OctavoError {
    return artifactUnsupported(
      this.#path(leaf),
      `tensor ${JSON.stringify(`${this.name}${this.#joint}${leaf}`)} ${problem}`,
    );
  }

  #path(leaf?: string): string {
    const named = leaf === undefined ? undefined : this.#tensors.get(leaf);
    return (named ?? [...this.#tensors.values()][0])?.path ?? this.name;
  }
}

export const floatDtypes: readonly string[] = ["F16", "BF16", "F32"];

/** A tensor of floats in single precision. */
export async function readFloats(tensor: StoredTensor): Promise<Float32Array> {
  const bytes = await readTensor(tensor);
  const single = convertFloats(bytes, floatTypeOf(tensor.dtype) ?? "f32", "f32");
  return new Float32Array(single.buffer, single.byteOffset, single.byteLength / 4);
}

/** A tensor of 32-bit words. */
export async function readWords(tensor: StoredTensor): Promise<Uint32Array> {
  const bytes = await readTensor(tensor);
  return new Uint32Array(bytes.buffer, 0, bytes.byteLength / 4);
}
