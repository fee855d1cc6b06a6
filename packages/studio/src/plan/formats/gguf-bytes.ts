import { fittingGgufType, ggmlLayoutOf, type GgufMix } from "@octavo/artifacts/gguf/mixes";
import { elementsOf, type ModelShape, type Part, type WeightMatrix } from "../shape/model-shape.js";

/** GGUF's names of what mixes tell apart; routers stay in F32. */
const kinds: Readonly<Record<Exclude<Part, "router">, string>> = {
  embedding: "token_embd.weight",
  head: "output.weight",
  q: "attn_q.weight",
  k: "attn_k.weight",
  v: "attn_v.weight",
  o: "attn_output.weight",
  latent: "attn_latent.weight",
  gate: "ffn_gate.weight",
  up: "ffn_up.weight",
  down: "ffn_down.weight",
};

/** Bytes of a matrix as llama.cpp's quantiser would write it. */
export function ggufBytes(matrix: WeightMatrix, shape: ModelShape, mix: GgufMix): number {
  const { elements, bytes } = blockOf(matrix, shape, mix);
  return (elementsOf(matrix) / elements) * bytes;
}

function blockOf(
  { part, layer = 0, cols }: WeightMatrix,
  shape: ModelShape,
  mix: GgufMix,
): { readonly elements: number; readonly bytes: number } {
  if (part === "router") return { elements: 1, bytes: 4 };
  const wanted = mix.typeOf({
    kind: isFused(part, shape) ? "attn_qkv.weight" : kinds[part],
    layer,
    numLayers: shape.numLayers,
    tiedEmbeddings: shape.isTied,
    headsPerKv: shape.numHeads / shape.numKvHeads,
    numExperts: shape.experts?.count ?? 0,
  });
  const { blockElements, blockBytes } = ggmlLayoutOf(fittingGgufType(wanted, cols));
  return { elements: blockElements, bytes: blockBytes };
}

/** Phi-3 keeps q, k and v in one tensor. */
function isFused(part: Part, { family }: ModelShape): boolean {
  return family === "phi3" && (part === "q" || part === "k" || part === "v");
}
