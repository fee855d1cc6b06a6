import { loadedBytesOf } from "@octavo/artifacts/checkpoint/tensor-storage";
import { isTowerTensor } from "@octavo/artifacts/vision/read-vision";
import type { ModelDescription, TensorSize } from "@octavo/engine";
import type { ComputeType } from "./hardware/hardware.js";
import type { ReadBytes } from "./roofline.js";

/** An artifact's own bytes, as its files lie on disk. */
interface StoredWeights {
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
    bytes += loadedBytesOf(tensor);
    // a token of text does not pass through it
    if (isTowerTensor(tensor.name)) continue;
    if (isExpert(tensor)) routed += loadedBytesOf(tensor);
    else if (!(hasHead && /embed_tokens\.|token_embd\./.test(tensor.name))) always += loadedBytesOf(tensor);
  }
  return { bytes, read: { always, routed }, compute: computeOf(source) };
}

function isExpert({ name }: TensorSize): boolean {
  return /\.experts\.|_exps\./.test(name) && !/shared/.test(name);
}

/** The type of the activations where the config says that they are quantised too; all other formats multiply in bf16, or may do so. */
function computeOf(source: ModelDescription["source"]): ComputeType {
  if (source.kind === "gguf") return "bf16";
  const quantization = fieldsOf(fieldsOf(source.json)["quantization_config"]);
  if (quantization["quant_method"] === "fp8") return "fp8";
  if (quantization["quant_method"] !== "compressed-tensors") return "bf16";
  for (const group of Object.values(fieldsOf(quantization["config_groups"]))) {
    const { type, num_bits: bits } = fieldsOf(fieldsOf(group)["input_activations"]);
    if (bits === 8 && (type === "float" || type === "int")) return type === "float" ? "fp8" : "int8";
  }
  return "bf16";
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
