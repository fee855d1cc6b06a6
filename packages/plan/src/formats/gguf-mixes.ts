import { elementsOf, type ModelShape, type WeightMatrix } from "../shape/model-shape.js";

/** Elements and bytes of a block (ggml-common.h). */
const blocks = {
  f32: [1, 4],
  f16: [1, 2],
  q4_0: [32, 18],
  q5_0: [32, 22],
  q5_1: [32, 24],
  q8_0: [32, 34],
  q4_k: [256, 144],
  q5_k: [256, 176],
  q6_k: [256, 210],
} as const satisfies Record<string, readonly [number, number]>;

type BlockType = keyof typeof blocks;

/** What llama.cpp's quantiser gives most matrices, and those it treats better. */
export interface GgufMix {
  readonly base: BlockType;
  /** Of v and down projections in the layers that `usesMoreBits` picks. */
  readonly better: BlockType;
  readonly head: BlockType;
}

export const ggufMixes: Readonly<Record<string, GgufMix>> = {
  Q8_0: { base: "q8_0", better: "q8_0", head: "q8_0" },
  Q6_K: { base: "q6_k", better: "q6_k", head: "q6_k" },
  Q5_K_M: { base: "q5_k", better: "q6_k", head: "q6_k" },
  Q4_K_M: { base: "q4_k", better: "q6_k", head: "q6_k" },
  Q4_0: { base: "q4_0", better: "q4_0", head: "q6_k" },
};

/** Types for rows that 256 does not divide. */
const fallback: Readonly<Partial<Record<BlockType, BlockType>>> = {
  q4_k: "q5_0",
  q5_k: "q5_1",
  q6_k: "q8_0",
};

/** Bytes of a matrix as llama.cpp's quantiser would write it. Rules: llama_tensor_get_type in llama-quant.cpp. */
export function ggufBytes(matrix: WeightMatrix, shape: ModelShape, mix: GgufMix): number {
  const wanted = typeOf(matrix, shape, mix);
  const type = matrix.cols % blocks[wanted][0] === 0 ? wanted : (fallback[wanted] ?? "f16");
  const [elements, bytes] = matrix.cols % blocks[type][0] === 0 ? blocks[type] : blocks.f16;
  return (elementsOf(matrix) / elements) * bytes;
}

function typeOf({ part, layer = 0 }: WeightMatrix, shape: ModelShape, mix: GgufMix): BlockType {
  const isMixed = mix.base !== mix.better;
  const hasEightExperts = shape.experts?.count === 8;
  switch (part) {
    case "router":
      return "f32";
    case "head":
      return mix.head;
    case "embedding":
      return shape.isTied ? mix.head : mix.base;
    case "k":
      return isMixed && hasEightExperts ? "q8_0" : mix.base;
    case "v":
      if (isMixed && hasEightExperts) return "q8_0";
      return usesMoreBits(layer, shape.numLayers) ? mix.better : mix.base;
    case "down":
      return usesMoreBits(layer, shape.numLayers) ? mix.better : mix.base;
    case "o":
      return mix.base === "q4_k" && hasEightExperts ? "q5_k" : mix.base;
    case "q":
    case "latent":
    case "gate":
    case "up":
      return mix.base;
  }
}

/** The first and last eighth of the layers, and every third between. */
function usesMoreBits(layer: number, numLayers: number): boolean {
  const eighth = Math.floor(numLayers / 8);
  return layer < eighth || layer >= Math.floor((7 * numLayers) / 8) || (layer - eighth) % 3 === 2;
}
