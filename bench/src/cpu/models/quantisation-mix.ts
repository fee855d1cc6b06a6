import {
  fittingGgufType,
  ggmlLayoutOf,
  type GgufMix,
  type GgufMixType,
  ggufMixes,
} from "@octavo/artifacts/gguf/mixes";
import { OctavoError } from "@octavo/protocol/errors";
import type { BenchShape } from "./shapes.js";

/** The kinds of files that are measured, by the names that llama.cpp's `quantize` gives them. */
export const fileTypes = ["q4_0", "q4_k_m", "q8_0", "bf16", "f16"] as const;
export type FileType = (typeof fileTypes)[number];

export type TensorType = "f32" | "bf16" | "f16" | "q4_0" | "q5_0" | "q8_0" | "q4_k" | "q6_k";

const ggmlNames: Readonly<Record<TensorType, GgufMixType>> = {
  f32: "F32",
  bf16: "BF16",
  f16: "F16",
  q4_0: "Q4_0",
  q5_0: "Q5_0",
  q8_0: "Q8_0",
  q4_k: "Q4_K",
  q6_k: "Q6_K",
};

export function blockLayout(type: TensorType): { readonly elements: number; readonly bytes: number } {
  const { blockElements, blockBytes } = ggmlLayoutOf(ggmlNames[type]);
  return { elements: blockElements, bytes: blockBytes };
}

/** `weight` stands for the other matrices of a layer. */
export type TensorRole = "embedding" | "attn_v" | "ffn_down" | "weight";

const kinds: Readonly<Record<TensorRole, string>> = {
  embedding: "token_embd.weight",
  attn_v: "attn_v.weight",
  ffn_down: "ffn_down.weight",
  weight: "attn_q.weight",
};

/** `general.file_type`: llama_ftype of llama.h. */
export function fileTypeId(file: FileType): number {
  return mixOf(file).fileType;
}

/** What llama.cpp's `quantize` makes of a tensor; the embedding serves as output head. */
export function tensorType(
  file: FileType,
  role: TensorRole,
  layer: number,
  columns: number,
  shape: BenchShape,
): TensorType {
  const wanted = mixOf(file).typeOf({
    kind: kinds[role],
    layer,
    numLayers: shape.numLayers,
    tiedEmbeddings: true,
    headsPerKv: shape.numHeads / shape.numKvHeads,
    numExperts: 0,
  });
  const name = fittingGgufType(wanted, columns);
  for (const [type, ggml] of Object.entries(ggmlNames)) if (ggml === name) return type as TensorType;
  throw new OctavoError("internal_error", `no random blocks are made of ${name}`);
}

function mixOf(file: FileType): GgufMix {
  const mix = ggufMixes.get(file.toUpperCase());
  if (mix === undefined) throw new OctavoError("internal_error", `${file} is no mix`);
  return mix;
}
