import { type GgmlLayout, ggmlLayouts } from "./types.js";

/** Types that a mix puts tensors in, by ggml's names. */
export type GgufMixType =
  | "F32"
  | "F16"
  | "BF16"
  | "Q4_0"
  | "Q4_1"
  | "Q5_0"
  | "Q5_1"
  | "Q8_0"
  | "IQ4_NL"
  | "IQ4_XS"
  | "Q2_K"
  | "Q3_K"
  | "Q4_K"
  | "Q5_K"
  | "Q6_K";

/** A file type of llama.cpp: which tensor gets which type. Source: llama_tensor_get_type_impl in llama.cpp's llama-quant.cpp. */
export interface GgufMix {
  /** As users know it, e.g. "Q4_K_M". */
  readonly name: string;
  /** `general.file_type` (enum llama_ftype). */
  readonly fileType: number;
  /** The type of a matrix, regardless of whether the type's blocks divide its rows (see `fittingGgufType`). */
  readonly typeOf: (matrix: MixedMatrix) => GgufMixType;
  /** Its scales are chosen by an importance matrix where there is one; floats and Q8_0 are not worth it. */
  readonly takesImportance: boolean;
}

/** Where a matrix stands in the model. */
export interface MixedMatrix {
  /** Its name in GGUF without the layer, e.g. "attn_v.weight", "ffn_down_exps.weight", "token_embd.weight". */
  readonly kind: string;
  readonly layer: number;
  readonly numLayers: number;
  readonly tiedEmbeddings: boolean;
  /** Query heads per key-value head. */
  readonly headsPerKv: number;
  /** 0 for dense models. */
  readonly numExperts: number;
  /** Scales are chosen by what the matrix multiplies. */
  readonly hasImportance?: boolean;
}

/** Roles that the rules distinguish: fused q, k and v count as v, experts' matrices as those of a dense MLP. */
type Role = "v" | "k" | "o" | "down" | "other";

const roles: Readonly<Record<string, Role>> = {
  attn_v: "v",
  attn_qkv: "v",
  attn_k: "k",
  attn_output: "o",
  ffn_down: "down",
  ffn_down_exps: "down",
  ffn_down_shexp: "down",
};

function roleOf({ kind }: MixedMatrix): Role {
  const stem = kind.replace(/\.weight$/, "");
  return Object.hasOwn(roles, stem) ? (roles[stem] ?? "other") : "other";
}

/** The first eighth of the layers, the last one, and every third between: where llama.cpp spends more bits. */
function takesMoreBits({ layer, numLayers }: MixedMatrix): boolean {
  const eighth = Math.floor(numLayers / 8);
  return layer < eighth || layer >= Math.floor((7 * numLayers) / 8) || (layer - eighth) % 3 === 2;
}

type Rule = (role: Role, matrix: MixedMatrix) => GgufMixType | undefined;

const finest: readonly GgufMixType[] = ["F32", "F16", "BF16"];

/** The output head, or the embedding that serves as one, has Q6_K unless the mix is finer. */
function mixOf(name: string, fileType: number, base: GgufMixType, rule: Rule = () => undefined): GgufMix {
  const isFloat = finest.includes(base);
  const head: GgufMixType = isFloat || base === "Q8_0" ? base : "Q6_K";
  return {
    name,
    fileType,
    takesImportance: head === "Q6_K",
    typeOf: (matrix) => {
      const isHead = matrix.kind === (matrix.tiedEmbeddings ? "token_embd.weight" : "output.weight");
      if (isHead) return head;
      if (isFloat) return base;
      const role = roleOf(matrix);
      const chosen = rule(role, matrix) ?? base;
      // In models of eight experts, k and v are small beside the experts.
      if (matrix.numExperts === 8 && (role === "v" || role === "k")) return "Q8_0";
      // 70B models share each value head among eight query heads, so these are small too.
      const isLarge = matrix.numLayers === 80 && matrix.headsPerKv > 1 && role === "v";
      return isLarge && (chosen === "Q3_K" || chosen === "Q4_K") ? "Q5_K" : chosen;
    },
  };
}

/** The output projection's type: Q5_K in models of eight experts, else `otherwise`. */
function output({ numExperts }: MixedMatrix, otherwise: GgufMixType | undefined): GgufMixType | undefined {
  return numExperts === 8 ? "Q5_K" : otherwise;
}

/** The first eighth of the layers, whose down projections round badly. */
function isEarlyDown(role: Role, { layer, numLayers }: MixedMatrix): boolean {
  return role === "down" && layer < Math.floor(numLayers / 8);
}

/** With an importance matrix, the down projections of the first layers have an offset too. */
function offsetEarlyDown(withOffset: GgufMixType): Rule {
  return (role, matrix) => (matrix.hasImportance && isEarlyDown(role, matrix) ? withOffset : undefined);
}

function nonlinear(role: Role, matrix: MixedMatrix): GgufMixType | undefined {
  if (role === "v") return matrix.headsPerKv >= 4 ? "Q5_K" : undefined;
  if (isEarlyDown(role, matrix)) return matrix.hasImportance ? undefined : "Q5_K";
  return role === "o" ? output(matrix, undefined) : undefined;
}

const mixes: readonly GgufMix[] = [
  mixOf("F16", 1, "F16"),
  mixOf("BF16", 32, "BF16"),
  mixOf("Q4_0", 2, "Q4_0", offsetEarlyDown("Q4_1")),
  mixOf("Q4_1", 3, "Q4_1"),
  mixOf("Q5_0", 8, "Q5_0", offsetEarlyDown("Q5_1")),
  mixOf("Q5_1", 9, "Q5_1"),
  mixOf("Q8_0", 7, "Q8_0"),
  mixOf("Q2_K", 10, "Q2_K", (role, matrix) => {
    if (role === "v") return matrix.headsPerKv >= 4 ? "Q4_K" : "Q3_K";
    return role === "down" ? "Q3_K" : role === "o" ? output(matrix, "Q3_K") : undefined;
  }),
  mixOf("Q3_K_S", 11, "Q3_K", (role, matrix) => (role === "o" ? output(matrix, undefined) : undefined)),
  mixOf("Q3_K_M", 12, "Q3_K", (role, matrix) => {
    if (role === "v") return matrix.layer < 2 ? "Q5_K" : "Q4_K";
    if (role === "down") return matrix.layer < Math.floor(matrix.numLayers / 16) ? "Q5_K" : "Q4_K";
    return role === "o" ? output(matrix, "Q4_K") : undefined;
  }),
  mixOf("Q3_K_L", 13, "Q3_K", (role, { numExperts }) => {
    if (role === "o") return numExperts === 8 ? undefined : "Q5_K";
    return role === "v" || role === "down" ? "Q5_K" : undefined;
  }),
  mixOf("Q4_K_S", 14, "Q4_K", (role, matrix) => {
    if (role === "v") return matrix.layer < 4 ? "Q5_K" : undefined;
    if (role === "down") return isEarlyDown(role, matrix) ? "Q5_K" : undefined;
    return role === "o" ? output(matrix, undefined) : undefined;
  }),
  mixOf("Q4_K_M", 15, "Q4_K", (role, matrix) =>
    role === "o" ? output(matrix, undefined) : moreBits(role, matrix),
  ),
  mixOf("Q5_K_S", 16, "Q5_K"),
  mixOf("Q5_K_M", 17, "Q5_K", moreBits),
  mixOf("Q6_K", 18, "Q6_K"),
  mixOf("IQ4_NL", 25, "IQ4_NL", nonlinear),
  mixOf("IQ4_XS", 30, "IQ4_XS", nonlinear),
];

function moreBits(role: Role, matrix: MixedMatrix): GgufMixType | undefined {
  return (role === "v" || role === "down") && takesMoreBits(matrix) ? "Q6_K" : undefined;
}

export const ggufMixes: ReadonlyMap<string, GgufMix> = new Map(mixes.map((mix) => [mix.name, mix]));

/** Types whose blocks of 256 do not divide a row are replaced as llama.cpp replaces them. */
const smaller: Partial<Readonly<Record<GgufMixType, GgufMixType>>> = {
  Q2_K: "IQ4_NL",
  Q3_K: "IQ4_NL",
  Q4_K: "Q5_0",
  Q5_K: "Q5_1",
  Q6_K: "Q8_0",
  IQ4_XS: "IQ4_NL",
};

const layouts = new Map([...ggmlLayouts.values()].map((layout) => [layout.name, layout]));

export function ggmlLayoutOf(type: GgufMixType): GgmlLayout {
  return layouts.get(type)!;
}

/** The type that a row of `cols` elements can be stored in: what was asked for, its replacement, or F16. */
export function fittingGgufType(wanted: GgufMixType, cols: number): GgufMixType {
  const fits = (type: GgufMixType): boolean => cols % ggmlLayoutOf(type).blockElements === 0;
  const name = fits(wanted) ? wanted : (smaller[wanted] ?? "F16");
  return fits(name) ? name : "F16";
}
