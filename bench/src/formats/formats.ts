import type { QuantizeOptions } from "@octavo/studio/quantize";

/** One row: what is made of an unquantised model. */
export interface Format {
  readonly name: string;
  /** Undefined leaves the model as it is. */
  readonly options: FormatOptions | undefined;
  /** Takes texts: left out where only speed is measured, which they do not change. */
  readonly isCalibrated: boolean;
}

export type FormatOptions = Pick<QuantizeOptions, "method" | "bits">;

const calibrated = (name: string, options: FormatOptions): Format => ({ name, options, isCalibrated: true });
const plain = (name: string, method: string): Format => ({ name, options: { method }, isCalibrated: false });
const gguf = (mix: string): Format => plain(`GGUF ${mix}`, `gguf:${mix}`);

/** From the largest to the smallest. */
export const formats: readonly Format[] = [
  { name: "bf16", options: undefined, isCalibrated: false },
  plain("FP8", "fp8"),
  calibrated("int8 (W8A8)", { method: "int8" }),
  gguf("Q8_0"),
  calibrated("GPTQ 8 bit", { method: "gptq", bits: 8 }),
  gguf("Q6_K"),
  gguf("Q5_K_M"),
  gguf("Q4_K_M"),
  gguf("Q4_0"),
  calibrated("AWQ 4 bit", { method: "awq" }),
  calibrated("GPTQ 4 bit", { method: "gptq", bits: 4 }),
  plain("NF4", "nf4"),
  gguf("Q3_K_M"),
  calibrated("GPTQ 3 bit", { method: "gptq", bits: 3 }),
  gguf("Q2_K"),
];
