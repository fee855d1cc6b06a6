import type { WeightType } from "@octavo/kernels";

/** Block layout of a ggml tensor type that the kernels take. */
export interface GgmlLayout {
  readonly type: WeightType;
  readonly blockElements: number;
  readonly blockBytes: number;
}

/** Keyed by ggml's type number (enum ggml_type in ggml.h). */
export const ggmlLayouts: ReadonlyMap<number, GgmlLayout> = new Map<number, GgmlLayout>([
  [0, { type: "f32", blockElements: 1, blockBytes: 4 }],
  [1, { type: "f16", blockElements: 1, blockBytes: 2 }],
  [2, { type: "q4_0", blockElements: 32, blockBytes: 18 }],
  [6, { type: "q5_0", blockElements: 32, blockBytes: 22 }],
  [8, { type: "q8_0", blockElements: 32, blockBytes: 34 }],
  [12, { type: "q4_k", blockElements: 256, blockBytes: 144 }],
  [13, { type: "q5_k", blockElements: 256, blockBytes: 176 }],
  [14, { type: "q6_k", blockElements: 256, blockBytes: 210 }],
  [30, { type: "bf16", blockElements: 1, blockBytes: 2 }],
]);

/** Names of the other types, for the message that refuses them. */
const otherTypes: ReadonlyMap<number, string> = new Map([
  [3, "Q4_1"],
  [7, "Q5_1"],
  [9, "Q8_1"],
  [10, "Q2_K"],
  [11, "Q3_K"],
  [15, "Q8_K"],
  [16, "IQ2_XXS"],
  [17, "IQ2_XS"],
  [18, "IQ3_XXS"],
  [19, "IQ1_S"],
  [20, "IQ4_NL"],
  [21, "IQ3_S"],
  [22, "IQ2_S"],
  [23, "IQ4_XS"],
  [24, "I8"],
  [25, "I16"],
  [26, "I32"],
  [27, "I64"],
  [28, "F64"],
  [29, "IQ1_M"],
  [34, "TQ1_0"],
  [35, "TQ2_0"],
  [39, "MXFP4"],
  [40, "NVFP4"],
]);

export function ggmlTypeName(typeId: number): string {
  const known = ggmlLayouts.get(typeId)?.type.toUpperCase() ?? otherTypes.get(typeId);
  return known === undefined ? `type ${typeId}` : `${known} (type ${typeId})`;
}

export const supportedGgmlTypes: string = [...ggmlLayouts.values()]
  .map((layout) => layout.type.toUpperCase())
  .join(", ");
