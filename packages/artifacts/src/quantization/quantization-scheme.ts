import type { TensorInfo } from "../checkpoint/checkpoint.js";
import type { QuantizedModule } from "./quantized-module.js";

/** One way of quantising checkpoints. Schemes enter in `schemes.ts`. */
export interface QuantizationScheme {
  /** Values of `quantization_config.quant_method`; the first is the scheme's name. */
  readonly methods: readonly string[];
  /** What the names of its tensors end in, after the module's name; `bias` and float `weight`s belong to no scheme. */
  readonly leaves: readonly string[];
  /** What stands between the module's name and those; default a dot. */
  readonly joint?: string;
  /**
   * Checks the settings and says how a module is read.
   * @throws OctavoError `artifact_invalid` or `artifact_unsupported`
   */
  open(settings: QuantizationSettings): ModuleReader;
}

/** Reads headers and small tensors only. Errors name the tensor. */
type ModuleReader = (module: QuantizedModule) => TensorInfo;

export interface QuantizationSettings {
  /** The file they stand in, for messages. */
  readonly path: string;
  /** `quantization_config`; empty when the user named the scheme of a checkpoint without one. */
  readonly fields: Readonly<Record<string, unknown>>;
}
