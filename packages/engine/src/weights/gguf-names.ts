/**
 * GGUF's tensor names in Hugging Face's terms, for decoder-only models of the Llama layout.
 * Source: MODEL_TENSORS in llama.cpp's gguf-py/gguf/constants.py and tensor_mapping.py.
 */
const globalNames: Readonly<Record<string, string>> = {
  "token_embd.weight": "model.embed_tokens.weight",
  "output_norm.weight": "model.norm.weight",
  "output.weight": "lm_head.weight",
};

const layerNames: Readonly<Record<string, string>> = {
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

/** The Hugging Face name; undefined for a tensor these architectures do not have. */
export function huggingFaceName(name: string): string | undefined {
  if (Object.hasOwn(globalNames, name)) return globalNames[name];
  const match = /^blk\.(0|[1-9]\d{0,4})\.([a-z_]+)\.(weight|bias)$/.exec(name);
  if (match === null) return undefined;
  const [, layer, part = "", kind] = match;
  const mapped = Object.hasOwn(layerNames, part) ? layerNames[part] : undefined;
  return mapped === undefined ? undefined : `model.layers.${layer}.${mapped}.${kind}`;
}

/** The inverse of `huggingFaceName`; undefined for names that GGUF has no word for. */
export function ggufName(huggingFace: string): string | undefined {
  for (const [gguf, name] of Object.entries(globalNames)) if (name === huggingFace) return gguf;
  const match = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(huggingFace);
  if (match === null) return undefined;
  const [, layer, part, kind] = match;
  for (const [gguf, name] of Object.entries(layerNames))
    if (name === part) return `blk.${layer}.${gguf}.${kind}`;
  return undefined;
}

/** Tensors that decide something but are no weights of a layer. */
export const ropeFactorsName = "rope_freqs.weight";

/** Written by converters of 2023; the values are those the rotary embedding computes anyway. */
export function isIgnoredGgufTensor(name: string): boolean {
  return (
    /^(?:blk\.\d+\.)?attn_rot_embd(?:\.weight)?$/.test(name) || /^blk\.\d+\.rope_freqs\.weight$/.test(name)
  );
}
