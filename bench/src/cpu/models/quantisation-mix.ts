import type { ModelShape } from "./shapes.js";

/** The kinds of files that are measured, by the names that llama.cpp's `quantize` gives them. */
export const fileTypes = ["q4_0", "q4_k_m", "q8_0", "bf16"] as const;
export type FileType = (typeof fileTypes)[number];

export type TensorType = "f32" | "bf16" | "q4_0" | "q5_0" | "q8_0" | "q4_k" | "q6_k";

export const blockLayouts: Readonly<
  Record<TensorType, { readonly elements: number; readonly bytes: number }>
> = {
  f32: { elements: 1, bytes: 4 },
  bf16: { elements: 1, bytes: 2 },
  q4_0: { elements: 32, bytes: 18 },
  q5_0: { elements: 32, bytes: 22 },
  q8_0: { elements: 32, bytes: 34 },
  q4_k: { elements: 256, bytes: 144 },
  q6_k: { elements: 256, bytes: 210 },
};

/** `general.file_type`: llama_ftype of llama.h. */
export const fileTypeIds: Readonly<Record<FileType, number>> = { q4_0: 2, q4_k_m: 15, q8_0: 7, bf16: 32 };

/** `weight` stands for the other matrices of a layer. */
export type TensorRole = "embedding" | "attn_v" | "ffn_down" | "weight";

/**
 * What llama.cpp's `quantize` makes of a tensor (llama_tensor_get_type_impl and tensor_type_fallback in llama-quant.cpp): a tied
 * embedding serves as output head and is kept in Q6_K; Q4_K_M keeps half of the value and down projections in Q6_K; rows that
 * 256 does not divide fall back from Q4_K to Q5_0 and from Q6_K to Q8_0.
 */
export function tensorType(
  file: FileType,
  role: TensorRole,
  layer: number,
  columns: number,
  shape: ModelShape,
): TensorType {
  if (file === "bf16" || file === "q8_0") return file;
  if (role === "embedding") return fallBack("q6_k", columns);
  if (file === "q4_0") return "q4_0";
  const isKeptFiner = (role === "attn_v" || role === "ffn_down") && usesMoreBits(layer, shape.numLayers);
  return fallBack(isKeptFiner ? "q6_k" : "q4_k", columns);
}

function usesMoreBits(layer: number, numLayers: number): boolean {
  const eighth = Math.floor(numLayers / 8);
  return layer < eighth || layer >= Math.floor((7 * numLayers) / 8) || (layer - eighth) % 3 === 2;
}

function fallBack(type: "q4_k" | "q6_k", columns: number): TensorType {
  if (columns % 256 === 0) return type;
  return type === "q4_k" ? "q5_0" : "q8_0";
}
