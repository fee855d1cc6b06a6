import { type GgmlTypeName, ggmlTypes, type WrittenGgmlType } from "./ggml-types.js";

/** A file type of llama.cpp: which tensor gets which type. Source: llama_tensor_get_type in llama.cpp's llama-quant.cpp. */
export interface GgufMix {
  /** As users know it, e.g. "Q4_K_M". */
  readonly name: string;
  /** `general.file_type` (enum llama_ftype). */
  readonly fileType: number;
  /** The type of a matrix, before widths that its blocks do not divide are considered. */
  readonly typeOf: (tensor: PlacedTensor) => GgmlTypeName;
}

/** Where a matrix stands in the model. */
export interface PlacedTensor {
  /** Its name in GGUF without the layer, e.g. "attn_v.weight", "token_embd.weight". */
  readonly kind: string;
  readonly layer: number;
  readonly numLayers: number;
  readonly tiedEmbeddings: boolean;
  /** Query heads per key-value head. */
  readonly headsPerKv: number;
}

/** The first eighth of the layers, the last one, and every third between: where llama.cpp spends more bits. */
function takesMoreBits({ layer, numLayers }: PlacedTensor): boolean {
  const eighth = Math.floor(numLayers / 8);
  return layer < eighth || layer >= Math.floor((7 * numLayers) / 8) || (layer - eighth) % 3 === 2;
}

type Rule = (tensor: PlacedTensor) => GgmlTypeName | undefined;

/** The output head, or the embedding that serves as one, has Q6_K unless the mix is finer. */
function mixOf(name: string, fileType: number, base: GgmlTypeName, rule: Rule = () => undefined): GgufMix {
  const finer: readonly GgmlTypeName[] = ["F32", "F16", "BF16", "Q8_0"];
  const head: GgmlTypeName = finer.includes(base) ? base : "Q6_K";
  return {
    name,
    fileType,
    typeOf: (tensor) => {
      const isHead = tensor.kind === (tensor.tiedEmbeddings ? "token_embd.weight" : "output.weight");
      return isHead ? head : (rule(tensor) ?? base);
    },
  };
}

const mixes: readonly GgufMix[] = [
  mixOf("F16", 1, "F16"),
  mixOf("BF16", 32, "BF16"),
  mixOf("Q4_0", 2, "Q4_0"),
  mixOf("Q4_1", 3, "Q4_1"),
  mixOf("Q5_0", 8, "Q5_0"),
  mixOf("Q5_1", 9, "Q5_1"),
  mixOf("Q8_0", 7, "Q8_0"),
  mixOf("Q2_K", 10, "Q2_K", ({ kind, headsPerKv }) => {
    if (kind === "attn_v.weight") return headsPerKv >= 4 ? "Q4_K" : "Q3_K";
    return kind === "ffn_down.weight" || kind === "attn_output.weight" ? "Q3_K" : undefined;
  }),
  mixOf("Q3_K_S", 11, "Q3_K"),
  mixOf("Q3_K_M", 12, "Q3_K", (tensor) => {
    if (tensor.kind === "attn_v.weight") return tensor.layer < 2 ? "Q5_K" : "Q4_K";
    if (tensor.kind === "ffn_down.weight")
      return tensor.layer < Math.floor(tensor.numLayers / 16) ? "Q5_K" : "Q4_K";
    return tensor.kind === "attn_output.weight" ? "Q4_K" : undefined;
  }),
  mixOf("Q3_K_L", 13, "Q3_K", ({ kind }) =>
    ["attn_v.weight", "ffn_down.weight", "attn_output.weight"].includes(kind) ? "Q5_K" : undefined,
  ),
  mixOf("Q4_K_S", 14, "Q4_K", ({ kind, layer, numLayers }) => {
    if (kind === "attn_v.weight") return layer < 4 ? "Q5_K" : undefined;
    return kind === "ffn_down.weight" && layer < Math.floor(numLayers / 8) ? "Q5_K" : undefined;
  }),
  mixOf("Q4_K_M", 15, "Q4_K", moreBits),
  mixOf("Q5_K_S", 16, "Q5_K"),
  mixOf("Q5_K_M", 17, "Q5_K", moreBits),
  mixOf("Q6_K", 18, "Q6_K"),
];

function moreBits(tensor: PlacedTensor): GgmlTypeName | undefined {
  const isSensitive = tensor.kind === "attn_v.weight" || tensor.kind === "ffn_down.weight";
  return isSensitive && takesMoreBits(tensor) ? "Q6_K" : undefined;
}

export const ggufMixes: ReadonlyMap<string, GgufMix> = new Map(mixes.map((mix) => [mix.name, mix]));

/** Types whose blocks of 256 do not divide a row are replaced as llama.cpp replaces them. */
const smaller: Partial<Readonly<Record<GgmlTypeName, GgmlTypeName>>> = {
  Q2_K: "IQ4_NL",
  Q3_K: "IQ4_NL",
  Q4_K: "Q5_0",
  Q5_K: "Q5_1",
  Q6_K: "Q8_0",
};

/** The type that a row of `cols` elements can be stored in: what was asked for, its replacement, or F16. */
export function fittingType(wanted: GgmlTypeName, cols: number): WrittenGgmlType {
  let name = wanted;
  if (cols % ggmlTypes[name].blockElements !== 0) name = smaller[name] ?? "F16";
  return cols % ggmlTypes[name].blockElements === 0 ? ggmlTypes[name] : ggmlTypes.F16;
}
