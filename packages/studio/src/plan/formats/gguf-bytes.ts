import { fittingGgufType, ggmlLayoutOf, type GgufMix } from "@octavo/artifacts/gguf/mixes";
import { elementsOf, type ModelShape, routerKind, type WeightMatrix } from "../shape/model-shape.js";

const f32Bytes = 4;

/** Bytes of a matrix as llama.cpp's quantiser would write it; routers stay in F32. */
export function ggufBytes(matrix: WeightMatrix, shape: ModelShape, mix: GgufMix): number {
  const { kind, layer = 0, cols } = matrix;
  if (kind === routerKind) return elementsOf(matrix) * f32Bytes;
  const wanted = mix.typeOf({
    kind,
    layer,
    numLayers: shape.numLayers,
    tiedEmbeddings: shape.isTied,
    headsPerKv: shape.numHeads / shape.numKvHeads,
    numExperts: shape.experts?.count ?? 0,
  });
  const { blockElements, blockBytes } = ggmlLayoutOf(fittingGgufType(wanted, cols));
  return (elementsOf(matrix) / blockElements) * blockBytes;
}
