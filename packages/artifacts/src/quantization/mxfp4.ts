import type { MatrixRecipe, TensorInfo } from "../checkpoint/checkpoint.js";
import { readTensor } from "../checkpoint/read-tensor.js";
import type { QuantizationScheme } from "./quantization-scheme.js";
import type { QuantizedModule } from "./quantized-module.js";

const groupSize = 32;
const blockBytes = groupSize / 2;

/**
 * MXFP4 (OCP Microscaling Formats, version 1.0) as GPT-OSS has it, for the experts' matrices alone: `blocks` U8
 * `[experts, rows, cols / 32, 16]`, two codes of E2M1 a byte, low nibble first, and `scales` U8 `[experts, rows, cols / 32]`, exponents
 * with a bias of 127. Rows of gate_up_proj are gate and up in turn.
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
      const part = (tensor: typeof blocks, rowLength: number): Promise<Uint8Array> =>
        readTensor({
          ...tensor,
          offset: tensor.offset + first * rows * rowLength,
          byteLength: count * rows * rowLength,
        });
      const codes = await part(blocks, groups * blockBytes);
      const exponents = await part(scales, groups);
      return { values: mxfp4Blocks(codes, exponents, { rows, groups, isInterleaved }) };
    },
    slices: (parts) =>
      Array.from({ length: parts }, (_, index) => recipe(first + (index * count) / parts, count / parts)),
  });
  return {
    ...module.matrix("mxfp4", rows, groups * groupSize, recipe(0, experts)),
    name: module.name,
    shape: [experts, rows, groups * groupSize],
  };
}

/**
 * GGUF's blocks: an exponent, then bytes whose i-th holds columns i and i + 16, where the file's holds 2i and 2i + 1. Of each expert,
 * the rows of gate before those of up where they stand in turn.
 */
export function mxfp4Blocks(
  codes: Uint8Array,
  exponents: Uint8Array,
  { rows, groups, isInterleaved = false }: { rows: number; groups: number; isInterleaved?: boolean },
): Uint8Array {
  const blocks = new Uint8Array(codes.length + exponents.length);
  const numRows = exponents.length / groups;
  const half = blockBytes / 2;
  for (let from = 0; from < numRows; from++) {
    const row = from % rows;
    const target = isInterleaved ? from - row + (row % 2) * (rows / 2) + (row >> 1) : from;
    let out = target * groups * (blockBytes + 1);
    for (let group = from * groups; group < (from + 1) * groups; group++) {
      blocks[out++] = exponents[group] ?? 0;
      for (let at = group * blockBytes; at < group * blockBytes + half; at++) {
        const low = codes[at] ?? 0;
        const high = codes[at + half] ?? 0;
        blocks[out++] = (low & 15) | ((high & 15) << 4);
        blocks[out++] = (low >> 4) | (high & 0xf0);
      }
    }
  }
  return blocks;
}
