import type { WeightType } from "@octavo/kernels";
import type { MatrixRecipe, TensorInfo } from "../../checkpoint/checkpoint.js";
import { readTensor } from "../../checkpoint/read-tensor.js";

/**
 * GGUF's types of one to three bits, and NVFP4. The kernels have no such blocks: each is unpacked at load, without loss, to codes of
 * 4 bits that index a table (2 bits for ternary weights) and a scale per group. Source of the layouts: ggml-common.h and
 * ggml-quants.c of llama.cpp.
 */
export interface LowBitLayout {
  /** What it is unpacked to. */
  readonly type: Extract<WeightType, "table4" | "int2">;
  readonly groupSize: number;
  readonly blockElements: number;
  readonly blockBytes: number;
}

const coded = (blockBytes: number, groupSize: number, blockElements = 256): LowBitLayout => ({
  type: "table4",
  groupSize,
  blockElements,
  blockBytes,
});
const ternary = (blockBytes: number): LowBitLayout => ({
  type: "int2",
  groupSize: 256,
  blockElements: 256,
  blockBytes,
});

/** By ggml's name of the type. */
export const lowBitLayouts = {
  IQ2_XXS: coded(66, 32),
  IQ2_XS: coded(74, 16),
  IQ2_S: coded(82, 16),
  IQ3_XXS: coded(98, 32),
  IQ3_S: coded(110, 32),
  IQ1_S: coded(50, 32),
  IQ1_M: coded(56, 16),
  TQ1_0: ternary(54),
  TQ2_0: ternary(66),
  NVFP4: coded(36, 16, 64),
} satisfies Record<string, LowBitLayout>;

export type LowBitName = keyof typeof lowBitLayouts;

/** What unpacked blocks take: codes, and scales and zeros of 4 bytes. */
function unpackedBytes(name: LowBitName, byteLength: number): number {
  const { type, groupSize, blockElements, blockBytes } = lowBitLayouts[name];
  const elements = (byteLength / blockBytes) * blockElements;
  const [codes, perGroup] = type === "int2" ? [elements / 4, 8] : [elements / 2, 4];
  return codes + (perGroup * elements) / groupSize;
}

interface BlockRange {
  readonly name: string;
  readonly path: string;
  readonly offset: number;
  readonly byteLength: number;
}

/** A tensor of such blocks, which are read and unpacked when the matrix is packed. */
export function lowBitTensor(name: LowBitName, tensor: TensorInfo): TensorInfo {
  const loadedBytes = unpackedBytes(name, tensor.byteLength);
  return { ...tensor, loadedBytes, recipe: lowBitRecipe(name, tensor) };
}

function lowBitRecipe(name: LowBitName, range: BlockRange): MatrixRecipe {
  return {
    layout: name,
    assemble: async () => {
      // the grids are read only for files that need them
      const { unpackBlocks } = await import("./unpack.js");
      return unpackBlocks(name, await readTensor(range));
    },
    slices: (count) => {
      const byteLength = range.byteLength / count;
      return Array.from({ length: count }, (_, index) =>
        lowBitRecipe(name, { ...range, offset: range.offset + index * byteLength, byteLength }),
      );
    },
  };
}
