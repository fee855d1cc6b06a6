import type { MatrixRecipe, TensorInfo } from "../checkpoint/checkpoint.js";
import { readTensor } from "../checkpoint/read-tensor.js";

/** Names of the tensors that hold all experts' matrices. */
export interface FusedExpertNames {
  readonly gateUp: string;
  readonly down: string;
  /** Floats lie as `[experts, inputs, outputs]`, gate's and up's outputs in turn, or gate's before up's. */
  readonly transposed?: "in_turn" | "gate_first";
}

/**
 * Floats that lie as `[experts, cols, rows]`, read as `[experts, rows, cols]`. Where rows of gate and up stand in turn, those of gate come
 * before those of up.
 */
export function transposedExperts(tensor: TensorInfo, isInterleaved: boolean): TensorInfo {
  const [count = 0, cols = 0, rows = 0] = tensor.shape;
  const byteLength = tensor.byteLength / count;
  const elementBytes = byteLength / (rows * cols);
  const recipe = (first: number): MatrixRecipe => ({
    layout: "transposed",
    assemble: async () => {
      const bytes = await readTensor({ ...tensor, offset: tensor.offset + first * byteLength, byteLength });
      const stored = elementsIn(bytes, elementBytes);
      const values = stored.slice();
      for (let from = 0; from < rows; from++) {
        const row = isInterleaved ? (from % 2) * (rows / 2) + (from >> 1) : from;
        for (let col = 0; col < cols; col++) values[row * cols + col] = stored[col * rows + from] ?? 0;
      }
      return { values: new Uint8Array(values.buffer, values.byteOffset, values.byteLength) };
    },
    slices: (parts) => Array.from({ length: parts }, (_, index) => recipe(index)),
  });
  return { ...tensor, shape: [count, rows, cols], recipe: recipe(0) };
}

function elementsIn(
  { buffer, byteOffset, byteLength }: Uint8Array,
  elementBytes: number,
): Uint32Array | Uint16Array {
  const length = byteLength / elementBytes;
  return elementBytes === 4
    ? new Uint32Array(buffer, byteOffset, length)
    : new Uint16Array(buffer, byteOffset, length);
}
