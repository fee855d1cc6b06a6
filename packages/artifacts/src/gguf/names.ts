import type { ExpertNames } from "../program/mixture-of-experts.js";

/**
 * GGUF's tensor names in Hugging Face's terms. Source: MODEL_TENSORS in llama.cpp's gguf-py/gguf/constants.py and tensor_mapping.py.
 */
const globalNames: Readonly<Record<string, string>> = {
  "token_embd.weight": "model.embed_tokens.weight",
  "output_norm.weight": "model.norm.weight",
  "output.weight": "lm_head.weight",
};

/** Names within a layer, without `.weight` and `.bias`, or with `=` in front in full, or with `@` in full of a tensor outside the layers; a `*` stands for the expert's index, in tensors that hold those of all experts. */
export type LayerNames = Readonly<Record<string, string>>;

/** Names for decoder-only models of the Llama layout. */
export const llamaLayerNames: LayerNames = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_output: "self_attn.o_proj",
  attn_q_norm: "self_attn.q_norm",
  attn_k_norm: "self_attn.k_norm",
  ffn_norm: "post_attention_layernorm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
};

/** With a norm after each block. */
export const postNormLayerNames: LayerNames = {
  ...llamaLayerNames,
  post_attention_norm: "post_attention_layernorm",
  ffn_norm: "pre_feedforward_layernorm",
  post_ffw_norm: "post_feedforward_layernorm",
};

/** q, k and v, and gate and up, in one tensor each. */
export const phi3LayerNames: LayerNames = {
  ...llamaLayerNames,
  attn_qkv: "self_attn.qkv_proj",
  ffn_up: "mlp.gate_up_proj",
};

/** A mixture's router and experts, of which GGUF keeps all in one tensor. */
export function expertLayerNames({ router, expert, shared }: ExpertNames): LayerNames {
  const { gate, up, down } = expert("*");
  return {
    ffn_gate_inp: router,
    ffn_gate_exps: gate,
    ...(up !== undefined && { ffn_up_exps: up }),
    ffn_down_exps: down,
    ...(shared !== undefined && {
      ...(shared.gate !== undefined && { ffn_gate_inp_shexp: shared.gate }),
      ffn_gate_shexp: `${shared.mlp}.gate_proj`,
      ffn_up_shexp: `${shared.mlp}.up_proj`,
      ffn_down_shexp: `${shared.mlp}.down_proj`,
    }),
  };
}

/** The Hugging Face name; undefined for a tensor the architecture does not have. */
export function huggingFaceName(name: string, layerNames: LayerNames = llamaLayerNames): string | undefined {
  if (Object.hasOwn(layerNames, `@${name}`)) return layerNames[`@${name}`];
  if (Object.hasOwn(globalNames, name)) return globalNames[name];
  const whole = /^blk\.(0|[1-9]\d{0,4})\.([a-z_\d.]+)$/.exec(name);
  if (whole === null) return undefined;
  const [, layer, rest = ""] = whole;
  const exact = Object.hasOwn(layerNames, `=${rest}`) ? layerNames[`=${rest}`] : undefined;
  if (exact !== undefined) return `model.layers.${layer}.${exact}`;
  const [, part = "", kind] = /^([a-z_\d]+)\.(weight|bias)$/.exec(rest) ?? [];
  const mapped = Object.hasOwn(layerNames, part) ? layerNames[part] : undefined;
  return mapped === undefined ? undefined : `model.layers.${layer}.${mapped}.${kind}`;
}

/** Where a tensor goes in a GGUF file. */
interface GgufPlace {
  readonly name: string;
  /** Index of its expert, in a tensor that holds those of all experts. */
  readonly expert?: number;
}

/** The inverse of `huggingFaceName`; undefined for names that GGUF has no counterpart of. */
export function ggufPlace(
  huggingFace: string,
  layerNames: LayerNames = llamaLayerNames,
): GgufPlace | undefined {
  for (const [gguf, name] of Object.entries(layerNames))
    if (gguf.startsWith("@") && name === huggingFace) return { name: gguf.slice(1) };
  for (const [gguf, name] of Object.entries(globalNames)) if (name === huggingFace) return { name: gguf };
  const [, ofLayer, rest] = /^model\.layers\.(\d+)\.(.+)$/.exec(huggingFace) ?? [];
  for (const [gguf, name] of Object.entries(layerNames))
    if (gguf.startsWith("=") && name === rest) return { name: `blk.${ofLayer}.${gguf.slice(1)}` };
  const match = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(huggingFace);
  if (match === null) return undefined;
  const [, layer, part = "", kind] = match;
  const expert = /\.experts\.(\d+)\./.exec(part)?.[1];
  const wanted = expert === undefined ? part : part.replace(`.experts.${expert}.`, ".experts.*.");
  for (const [gguf, name] of Object.entries(layerNames)) {
    if (name !== wanted) continue;
    return { name: `blk.${layer}.${gguf}.${kind}`, ...(expert !== undefined && { expert: Number(expert) }) };
  }
  return undefined;
}

export function ggufName(huggingFace: string, layerNames?: LayerNames): string | undefined {
  return ggufPlace(huggingFace, layerNames)?.name;
}

/** Tensors outside the layers: divisors of the inverse rotary frequencies. */
export const ropeFactorNames = {
  always: "rope_freqs.weight",
  /** LongRoPE's, beyond the original context and within it. */
  long: "rope_factors_long.weight",
  short: "rope_factors_short.weight",
} as const;

/**
 * Layers that predict further tokens, which are not run; and what converters of 2023 wrote, whose values are those the rotary embedding
 * computes anyway.
 */
export function isIgnoredGgufTensor(name: string): boolean {
  return (
    /^blk\.\d+\.nextn\./.test(name) ||
    /^(?:blk\.\d+\.)?attn_rot_embd(?:\.weight)?$/.test(name) ||
    /^blk\.\d+\.rope_freqs\.weight$/.test(name)
  );
}
