/** Values of `--quantization`; in a file of their own, so that they can be listed without loading the schemes. */
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
