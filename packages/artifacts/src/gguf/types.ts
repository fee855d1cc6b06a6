import type { WeightType } from "@octavo/kernels";
import { lowBitLayouts, type LowBitName } from "./low-bits/layouts.js";

/** Block layout of a ggml tensor type that the kernels take, or that is unpacked into one. */
export interface GgmlLayout {
  /** ggml's, as users know it. */
  readonly name: string;
  readonly type: WeightType;
  readonly blockElements: number;
  readonly blockBytes: number;
  /** How the blocks are unpacked, if the kernels do not take them. */
  readonly lowBits?: LowBitName;
}

/** Types that are unpacked at load, by ggml's number. */
const lowBitTypes = {
  16: "IQ2_XXS",
  17: "IQ2_XS",
  18: "IQ3_XXS",
  19: "IQ1_S",
  21: "IQ3_S",
  22: "IQ2_S",
  29: "IQ1_M",
  34: "TQ1_0",
  35: "TQ2_0",
  40: "NVFP4",
} as const satisfies Record<number, LowBitName>;

/** Keyed by ggml's type number (enum ggml_type in ggml.h). */
export const ggmlLayouts: ReadonlyMap<number, GgmlLayout> = new Map<number, GgmlLayout>([
  [0, { name: "F32", type: "f32", blockElements: 1, blockBytes: 4 }],
  [1, { name: "F16", type: "f16", blockElements: 1, blockBytes: 2 }],
  [2, { name: "Q4_0", type: "q4_0", blockElements: 32, blockBytes: 18 }],
  [3, { name: "Q4_1", type: "q4_1", blockElements: 32, blockBytes: 20 }],
  [6, { name: "Q5_0", type: "q5_0", blockElements: 32, blockBytes: 22 }],
  [7, { name: "Q5_1", type: "q5_1", blockElements: 32, blockBytes: 24 }],
  [8, { name: "Q8_0", type: "q8_0", blockElements: 32, blockBytes: 34 }],
  [10, { name: "Q2_K", type: "q2_k", blockElements: 256, blockBytes: 84 }],
  [11, { name: "Q3_K", type: "q3_k", blockElements: 256, blockBytes: 110 }],
  [12, { name: "Q4_K", type: "q4_k", blockElements: 256, blockBytes: 144 }],
  [13, { name: "Q5_K", type: "q5_k", blockElements: 256, blockBytes: 176 }],
  [14, { name: "Q6_K", type: "q6_k", blockElements: 256, blockBytes: 210 }],
  [20, { name: "IQ4_NL", type: "iq4_nl", blockElements: 32, blockBytes: 18 }],
  [23, { name: "IQ4_XS", type: "iq4_xs", blockElements: 256, blockBytes: 136 }],
  [30, { name: "BF16", type: "bf16", blockElements: 1, blockBytes: 2 }],
  [39, { name: "MXFP4", type: "mxfp4", blockElements: 32, blockBytes: 17 }],
  ...Object.entries(lowBitTypes).map(([id, name]): [number, GgmlLayout] => {
    const { type, blockElements, blockBytes } = lowBitLayouts[name];
    return [Number(id), { name, type, blockElements, blockBytes, lowBits: name }];
  }),
]);

/** Names of the other types, for the message that refuses them. */
const otherTypes: ReadonlyMap<number, string> = new Map([
  [9, "Q8_1"],
  [15, "Q8_K"],
  [24, "I8"],
  [25, "I16"],
  [26, "I32"],
  [27, "I64"],
  [28, "F64"],
]);

export function ggmlTypeName(typeId: number): string {
  const known = ggmlLayouts.get(typeId)?.name ?? otherTypes.get(typeId);
  return known === undefined ? `type ${typeId}` : `${known} (type ${typeId})`;
}

export const supportedGgmlTypes: string = [...ggmlLayouts.values()].map((layout) => layout.name).join(", ");
