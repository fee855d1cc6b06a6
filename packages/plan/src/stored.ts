import type { ModelDescription, TensorSize } from "@octavo/engine";
import type { ComputeType } from "./hardware/hardware.js";
import type { ReadBytes } from "./roofline.js";

/** An artifact's own bytes, as its files lie on disk. */
export interface StoredWeights {
  readonly bytes: number;
  readonly read: ReadBytes;
  readonly compute: ComputeType;
}

/** Undefined where the weights are not at hand. */
export function storedWeights({ source, tensors }: ModelDescription): StoredWeights | undefined {
  if (tensors === undefined || tensors.length === 0) return undefined;
  const hasHead = tensors.some(({ name }) => /(?:^|\.)(?:lm_head|output)\.(?:weight|qweight)/.test(name));
  let bytes = 0;
  let always = 0;
  let routed = 0;
  for (const tensor of tensors) {
    bytes += tensor.byteLength;
    if (isExpert(tensor)) routed += tensor.byteLength;
    else if (!(hasHead && /embed_tokens\.|token_embd\./.test(tensor.name))) always += tensor.byteLength;
  }
  return { bytes, read: { always, routed }, compute: computeOf(source) };
}

function isExpert({ name }: TensorSize): boolean {
  return /\.experts\.|_exps\./.test(name) && !/shared/.test(name);
}

/** fp8 where the config says that activations are quantised too; all other formats multiply in bf16 or may do so. */
function computeOf(source: ModelDescription["source"]): ComputeType {
  if (source.kind === "gguf") return "bf16";
  const { quantization_config: quantization } = (source.json ?? {}) as { quantization_config?: unknown };
  const { quant_method: method } = (quantization ?? {}) as { quant_method?: unknown };
  return method === "fp8" ? "fp8" : "bf16";
}
