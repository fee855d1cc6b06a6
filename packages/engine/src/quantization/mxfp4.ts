import type { MatrixRecipe, TensorInfo } from "../weights/checkpoint.js";
import { readTensor } from "../weights/read-tensor.js";
import type { QuantizationScheme } from "./quantization-scheme.js";
import type { QuantizedModule } from "./quantized-module.js";

/** Values of E2M1 (OCP Microscaling Formats, version 1.0). */
const values = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6];
const groupSize = 32;
const blockBytes = groupSize / 2;

/**
 * MXFP4 as GPT-OSS has it, for the experts' matrices alone: `blocks` U8 `[experts, rows, cols / 32, 16]`, two codes of E2M1 a byte, low
 * nibble first, and `scales` U8 `[experts, rows, cols / 32]`, exponents with a bias of 127. Rows of gate_up_proj are gate and up in turn.
 */
export const mxfp4: QuantizationScheme = {
  methods: ["mxfp4"],
  leaves: ["blocks", "scales"],
  joint: "_",
  open: () => readExperts,
};

function readExperts(module: QuantizedModule): TensorInfo {
  const blocks = module.need("blocks", ["U8"]);
  const [experts = 0, rows = 0, groups = 0, bytes] = blocks.shape;
  if (blocks.shape.length !== 4 || bytes !== blockBytes) {
    throw module.invalid(
      "blocks",
      `has the shape [${blocks.shape.join(", ")}]; [experts, rows, groups, ${blockBytes}] is expected`,
    );
  }
  const scales = module.need("scales", ["U8"]);
  module.expectShape("scales", [experts, rows, groups], "blocks of that shape");
  const isInterleaved = module.name.endsWith("gate_up_proj");
  if (isInterleaved && rows % 2 !== 0)
    throw module.invalid("blocks", `has ${rows} rows of gate and up in turn`);

  const recipe = (first: number, count: number): MatrixRecipe => ({
    layout: "mxfp4",
    assemble: async () => {
      const rowBytes = groups * blockBytes;
      const part = (tensor: typeof blocks, rowLength: number): Promise<Uint8Array> =>
        readTensor({
          ...tensor,
          offset: tensor.offset + first * rows * rowLength,
          byteLength: count * rows * rowLength,
        });
      const codes = inOrder(await part(blocks, rowBytes), rowBytes, rows, isInterleaved);
      const exponents = inOrder(await part(scales, groups), groups, rows, isInterleaved);
      return {
        values: codes,
        scales: Float32Array.from(exponents, (exponent) => 2 ** (exponent - 127)),
        groupSize,
        table: Float32Array.from(values),
      };
    },
    slices: (parts) =>
      Array.from({ length: parts }, (_, index) => recipe(first + (index * count) / parts, count / parts)),
  });
  return {
    ...module.matrix("table4", rows, groups * groupSize, recipe(0, experts)),
    name: module.name,
    shape: [experts, rows, groups * groupSize],
  };
}

/** The rows of each expert, gate's before up's where they stand in turn. */
function inOrder(bytes: Uint8Array, rowBytes: number, rows: number, isInterleaved: boolean): Uint8Array {
  if (!isInterleaved) return bytes;
  const ordered = new Uint8Array(bytes.byteLength);
  const half = rows / 2;
  for (let at = 0; at * rowBytes < bytes.byteLength; at++) {
    const row = at % rows;
    const target = at - row + (row % 2) * half + Math.floor(row / 2);
    ordered.set(bytes.subarray(at * rowBytes, (at + 1) * rowBytes), target * rowBytes);
  }
  return ordered;
}
