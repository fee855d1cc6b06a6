/** What `--quantization` takes; apart from the schemes, which only a quantised safetensors folder needs. */
export const quantizationNames = [
  "awq",
  "gptq",
  "fp8",
  "compressed-tensors",
  "bitsandbytes",
  "hqq",
  "mxfp4",
] as const;

export type QuantizationName = (typeof quantizationNames)[number];
