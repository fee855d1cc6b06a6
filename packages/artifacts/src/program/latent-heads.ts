import { OctavoError } from "@octavo/protocol/errors";
import type { MatrixRecipe, TensorInfo } from "../checkpoint/checkpoint.js";
import { readTensor } from "../checkpoint/read-tensor.js";
import { tensorSlices } from "../checkpoint/tensor-slices.js";
import { isFloatType } from "../checkpoint/tensor-storage.js";
import { readFloat8Rows } from "../quantization/fp8-rows.js";
import type { LatentConfig } from "./model-config.js";
import type { MatrixPlan } from "./model-plan.js";
import type { ProgramBuilder } from "./program-builder.js";

/** A layer's matrices by head: `[kvRank, plainDim]`, which queries go through, and `[valueDim, kvRank]`, which latents go through. */
interface LatentHeads {
  readonly keys: readonly MatrixPlan[];
  readonly values: readonly MatrixPlan[];
}

/**
 * From `kv_b_proj`, `[heads * (plainDim + valueDim), kvRank]`, or from the two tensors that llama.cpp's converter makes of it, of which
 * `k_b_proj` is transposed already.
 * @throws OctavoError `artifact_unsupported` for a `kv_b_proj` in a format that it cannot be taken apart in
 */
export function latentHeads(builder: ProgramBuilder, name: string, latent: LatentConfig): LatentHeads {
  const { kvRank, plainDim, valueDim } = latent;
  const { numHeads } = builder.config;
  if (builder.has(`${name}.k_b_proj.weight`)) {
    const byHead = (part: string, rows: number, cols: number): MatrixPlan[] =>
      tensorSlices(builder.tensor(`${name}.${part}.weight`, [numHeads, rows, cols])).map((slice) =>
        planOf(slice),
      );
    return { keys: byHead("k_b_proj", kvRank, plainDim), values: byHead("v_b_proj", valueDim, kvRank) };
  }
  const rows = plainDim + valueDim;
  const whole = builder.tensor(`${name}.kv_b_proj.weight`, [numHeads * rows, kvRank]);
  const readRows = rowReader(whole);
  const heads = Array.from({ length: numHeads }, (_, head) => head * rows);
  return {
    keys: heads.map((first) => planOf(rowsOf(whole, first, plainDim, readRows, true))),
    values: heads.map((first) => planOf(rowsOf(whole, first + plainDim, valueDim, readRows, false))),
  };
}

function planOf(source: TensorInfo): MatrixPlan {
  const [rows = 0, cols = 0] = source.shape;
  return { kind: "matrix", rows, cols, sources: [source] };
}

type RowReader = (first: number, count: number) => Promise<Uint8Array>;

/** Reads rows as floats of the tensor's type, those of FP8 in single precision. */
function rowReader(whole: TensorInfo): RowReader {
  const { recipe, ...bytes } = whole;
  if (recipe === undefined && isFloatType(whole.type)) {
    const rowBytes = whole.byteLength / (whole.shape[0] ?? 1);
    return (first, count) =>
      readTensor({ ...bytes, offset: bytes.offset + first * rowBytes, byteLength: count * rowBytes });
  }
  if (recipe !== undefined && whole.type === "f8_e4m3") return readFloat8Rows(recipe, whole);
  throw new OctavoError(
    "artifact_unsupported",
    `Tensor "${whole.name}" in ${whole.path} is stored as ${whole.type}, but has to be taken apart by heads; ` +
      "Octavo reads it in floats, in FP8, or from a GGUF file with attn_k_b and attn_v_b, which converters of llama.cpp write since April 2025.",
  );
}

/** Rows [first, first + count) as a matrix, or its transposed. */
function rowsOf(
  { recipe, activations: _activations, loadedBytes: _loadedBytes, ...whole }: TensorInfo,
  first: number,
  count: number,
  readRows: RowReader,
  isTransposed: boolean,
): TensorInfo {
  const [rows = 1, cols = 0] = whole.shape;
  const isFloat8 = recipe !== undefined;
  const byteLength = (whole.byteLength / rows) * count;
  const name = `${whole.name}[${first}:${first + count}]`;
  if (!isFloat8 && !isTransposed)
    return {
      ...whole,
      name,
      shape: [count, cols],
      offset: whole.offset + first * (byteLength / count),
      byteLength,
    };
  const own: MatrixRecipe = {
    layout: isTransposed ? "transposed" : "rows",
    assemble: async () => {
      const bytes = await readRows(first, count);
      return { values: isTransposed ? transposed(bytes, count, cols) : bytes };
    },
  };
  return {
    ...whole,
    name,
    type: isFloat8 ? "f32" : whole.type,
    shape: isTransposed ? [cols, count] : [count, cols],
    byteLength,
    ...(isFloat8 && { loadedBytes: 4 * count * cols }),
    recipe: own,
  };
}

function transposed(bytes: Uint8Array, rows: number, cols: number): Uint8Array {
  const { buffer, byteOffset, byteLength } = bytes;
  const elementBytes = byteLength / (rows * cols);
  const [stored, values] =
    elementBytes === 4
      ? [new Uint32Array(buffer, byteOffset, rows * cols), new Uint32Array(rows * cols)]
      : [new Uint16Array(buffer, byteOffset, rows * cols), new Uint16Array(rows * cols)];
  for (let row = 0; row < rows; row++)
    for (let col = 0; col < cols; col++) values[col * rows + row] = stored[row * cols + col] ?? 0;
  return new Uint8Array(values.buffer);
}
