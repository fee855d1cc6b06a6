import { type GgufMix, ggufMixes } from "@octavo/artifacts/gguf/mixes";
import type { ComputeType } from "../hardware/hardware.js";
import {
  elementsOf,
  embeddingKind,
  headKind,
  type ModelShape,
  routerKind,
  type WeightMatrix,
} from "../shape/model-shape.js";
import { ggufBytes } from "./gguf-bytes.js";

/** How weights are stored, and in what type their products are computed. */
export interface WeightFormat {
  readonly name: string;
  /** What the products run in where the hardware has it; otherwise bf16. */
  readonly compute: ComputeType;
  /** What the bytes consist of, shown in the plan. */
  readonly note: string;
  bytesOf(matrix: WeightMatrix, shape: ModelShape): number;
  /** Bytes of one element of norms and biases. */
  readonly vectorBytes: number;
  /** Bytes of one element of a vision tower; 0 where images are not read from this format. */
  readonly towerBytes: number;
}

const bf16Bytes = 2;

/** Linear layers alone are quantised; embedding, head and routers stay in bf16, as the tools that write these formats leave them. */
function linear(
  name: string,
  compute: ComputeType,
  note: string,
  bytes: (matrix: WeightMatrix) => number,
): WeightFormat {
  const isKept = ({ kind }: WeightMatrix): boolean =>
    kind === embeddingKind || kind === headKind || kind === routerKind;
  return {
    name,
    compute,
    note,
    bytesOf: (matrix) => (isKept(matrix) ? elementsOf(matrix) * bf16Bytes : bytes(matrix)),
    vectorBytes: bf16Bytes,
    towerBytes: bf16Bytes,
  };
}

function rowsOf(matrix: WeightMatrix): number {
  return matrix.rows * matrix.copies;
}

const int4Group = 128;

function gguf(mix: GgufMix): WeightFormat {
  return {
    name: `gguf ${mix.name}`,
    compute: "bf16",
    note: "llama.cpp's mix of block types",
    bytesOf: (matrix, shape) => ggufBytes(matrix, shape, mix),
    vectorBytes: 4,
    towerBytes: 0,
  };
}

/** The most common mixes. */
const plannedMixes = ["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0"];

/** Every format a plan is made for, largest first. */
export const weightFormats: readonly WeightFormat[] = [
  linear("bf16", "bf16", "16 bits a weight", (matrix) => elementsOf(matrix) * bf16Bytes),
  linear(
    "fp8",
    "fp8",
    "E4M3, an f32 scale per output row",
    (matrix) => elementsOf(matrix) + 4 * rowsOf(matrix),
  ),
  linear(
    "int8",
    "int8",
    "W8A8, an f32 scale per output row",
    (matrix) => elementsOf(matrix) + 4 * rowsOf(matrix),
  ),
  linear(
    "int4 (awq, gptq)",
    "bf16",
    `4 bits, an f16 scale and a 4-bit zero per ${int4Group} weights`,
    (matrix) => elementsOf(matrix) / 2 + rowsOf(matrix) * Math.ceil(matrix.cols / int4Group) * 2.5,
  ),
  ...plannedMixes.flatMap((name) => ggufMixes.get(name) ?? []).map(gguf),
];

/** Bytes of all weights in a format. */
export function weightBytes(shape: ModelShape, format: WeightFormat): number {
  return shape.matrices.reduce(
    (sum, matrix) => sum + format.bytesOf(matrix, shape),
    shape.vectorElements * format.vectorBytes + shape.towerElements * format.towerBytes,
  );
}
