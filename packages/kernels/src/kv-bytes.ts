import type { KvDtype, KvLayerShape, Op } from "./backend.js";

/** The types a KV cache knows. */
export const kvDtypes: readonly KvDtype[] = ["f32", "f16", "bf16", "int8"];

/** Bytes of one token's key, or value, of one kv head: its elements and, in an int8 cache, their f32 scale. */
export function kvHeadBytes(dtype: KvDtype, headDim: number): number {
  switch (dtype) {
    case "f32":
      return headDim * 4;
    case "f16":
    case "bf16":
      return headDim * 2;
    case "int8":
      return headDim + 4;
  }
}

/** Bytes of one token's keys and values in all layers. */
export function kvTokenBytes(layers: readonly KvLayerShape[], dtype: KvDtype): number {
  return layers.reduce(
    (sum, { numKvHeads, headDim, isLatent }) =>
      sum + (isLatent === true ? 1 : 2) * numKvHeads * kvHeadBytes(dtype, headDim),
    0,
  );
}

/** What each layer of the cache holds, as the program's attention says; ops that share a layer have one shape. */
export function kvLayersOf(ops: readonly { readonly op: string }[]): KvLayerShape[] {
  const layers: KvLayerShape[] = [];
  for (const op of ops) if (attends(op)) layers[op.layer] = kvLayerOf(op);
  return layers;
}

/** What an attention op's layer of the cache holds. */
export function kvLayerOf({ numKvHeads, headDim, v }: KvNeed): KvLayerShape {
  return v === undefined ? { numKvHeads, headDim, isLatent: true } : { numKvHeads, headDim };
}

export function isSameKvLayer(a: KvLayerShape, b: KvLayerShape): boolean {
  return a.numKvHeads === b.numKvHeads && a.headDim === b.headDim && a.isLatent === b.isLatent;
}

type KvNeed = Pick<Extract<Op, { op: "attention" }>, "op" | "layer" | "numKvHeads" | "headDim" | "v">;

function attends(op: { readonly op: string }): op is KvNeed {
  return op.op === "attention";
}
