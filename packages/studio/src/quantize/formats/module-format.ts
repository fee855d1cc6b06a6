import type { MethodSettings } from "../options.js";
import type { EncodedMatrix } from "../output/output-tensor.js";
import { packAwq } from "./awq.js";
import { encodeFp8 } from "./fp8.js";
import { packGptq } from "./gptq.js";
import { encodeInt8 } from "./int8.js";
import { type IntegerGroups, roundToNearest } from "./integer-groups.js";
import { encodeNf4 } from "./nf4.js";

/** How quantised matrices lie in a safetensors folder. */
export interface ModuleFormat {
  /** Name of the stored type, e.g. "int4". */
  readonly name: string;
  /** Why a matrix of this shape cannot be stored; undefined when it can. */
  problem(rows: number, cols: number): string | undefined;
  /** Rounds each weight to its nearest code. */
  encode(module: string, weight: Float32Array, rows: number, cols: number): EncodedMatrix;
  /** config.json's `quantization_config`. */
  configuration(kept: readonly string[]): Readonly<Record<string, unknown>>;
}

/** A format of integers with scales per group, whose codes a method may choose. */
export interface IntegerFormat extends ModuleFormat {
  readonly bits: number;
  readonly symmetric: boolean;
  /** Columns that share a scale, in a matrix of `cols`. */
  groupSizeOf(cols: number): number;
  pack(module: string, matrix: IntegerGroups): EncodedMatrix;
}

type SafetensorsSettings = Exclude<MethodSettings, { kind: "gguf" }>;

export function moduleFormat(settings: SafetensorsSettings, dtype: "f32" | "f16" | "bf16"): ModuleFormat {
  switch (settings.kind) {
    case "awq":
    case "gptq":
      return integerFormat(settings);
    case "fp8":
      return {
        name: "fp8",
        problem: () => undefined,
        encode: encodeFp8,
        configuration: (kept) => compressedTensors("float-quantized", "float", kept),
      };
    case "int8":
      return {
        name: "int8",
        problem: (_, cols) => (cols % 32 === 0 ? undefined : `has ${cols} inputs, which 32 does not divide`),
        encode: encodeInt8,
        configuration: (kept) => compressedTensors("int-quantized", "int", kept),
      };
    case "nf4":
      return nf4Format(settings, dtype);
  }
}

export function integerFormat(settings: Extract<MethodSettings, { kind: "awq" | "gptq" }>): IntegerFormat {
  const bits = settings.kind === "awq" ? 4 : settings.bits;
  const symmetric = settings.kind === "gptq";
  const pack = settings.kind === "awq" ? packAwq : packGptq;
  const groupSizeOf = (cols: number): number => (settings.groupSize === -1 ? cols : settings.groupSize);
  return {
    name: `int${bits}`,
    bits,
    symmetric,
    groupSizeOf,
    pack,
    problem(rows, cols) {
      const groupSize = groupSizeOf(cols);
      if (cols % groupSize !== 0) return `has ${cols} inputs, which groups of ${groupSize} do not divide`;
      if (cols % 32 !== 0) return `has ${cols} inputs, which 32 does not divide`;
      return rows % 32 === 0 ? undefined : `has ${rows} outputs, which do not fill whole words`;
    },
    encode(module, weight, rows, cols) {
      const groupSize = groupSizeOf(cols);
      return pack(module, roundToNearest(weight, { rows, cols, bits, groupSize }, symmetric));
    },
    configuration: (kept) =>
      settings.kind === "awq"
        ? {
            quant_method: "awq",
            bits,
            group_size: settings.groupSize,
            zero_point: true,
            version: "gemm",
            modules_to_not_convert: kept.length === 0 ? null : kept,
          }
        : {
            quant_method: "gptq",
            bits,
            group_size: settings.groupSize,
            desc_act: settings.actOrder,
            sym: true,
            static_groups: false,
            true_sequential: false,
            damp_percent: 0.01,
            lm_head: false,
            checkpoint_format: "gptq",
            modules_to_not_convert: kept.length === 0 ? null : kept,
            dynamic: exceptions(kept),
          },
  };
}

/** Unquantised modules as GPTQModel and vLLM read them: regular expressions after "-:". The head has a field of its own. */
function exceptions(kept: readonly string[]): Readonly<Record<string, object>> {
  const modules = kept.filter((module) => module !== "lm_head");
  return Object.fromEntries(modules.map((module) => [`-:${module.replaceAll(".", "\\.")}$`, {}]));
}

function nf4Format(
  { blockSize, doubleQuant }: Extract<SafetensorsSettings, { kind: "nf4" }>,
  dtype: "f32" | "f16" | "bf16",
): ModuleFormat {
  return {
    name: "nf4",
    problem: (_, cols) =>
      cols % blockSize === 0 ? undefined : `has ${cols} inputs, which blocks of ${blockSize} do not divide`,
    encode: (module, weight, rows, cols) =>
      encodeNf4(module, weight, rows, cols, { blockSize, doubleQuant, dtype }),
    configuration: (kept) => ({
      quant_method: "bitsandbytes",
      load_in_4bit: true,
      load_in_8bit: false,
      _load_in_4bit: true,
      _load_in_8bit: false,
      bnb_4bit_quant_type: "nf4",
      bnb_4bit_use_double_quant: doubleQuant,
      bnb_4bit_compute_dtype: { f32: "float32", f16: "float16", bf16: "bfloat16" }[dtype],
      bnb_4bit_quant_storage: "uint8",
      llm_int8_skip_modules: kept.length === 0 ? ["lm_head"] : kept,
      llm_int8_enable_fp32_cpu_offload: false,
      llm_int8_has_fp16_weight: false,
    }),
  };
}

/** One group of layers, weights per output channel, activations per token and while the model runs. */
function compressedTensors(
  format: string,
  type: "float" | "int",
  kept: readonly string[],
): Readonly<Record<string, unknown>> {
  const shared = {
    num_bits: 8,
    type,
    symmetric: true,
    group_size: null,
    block_structure: null,
    actorder: null,
  };
  return {
    quant_method: "compressed-tensors",
    format,
    quantization_status: "compressed",
    global_compression_ratio: null,
    kv_cache_scheme: null,
    // Readers expect a tied head to be listed, although the file has no such tensor.
    ignore: [...new Set(["lm_head", ...kept])],
    config_groups: {
      group_0: {
        targets: ["Linear"],
        weights: { ...shared, strategy: "channel", dynamic: false, observer: "minmax" },
        input_activations: { ...shared, strategy: "token", dynamic: true, observer: null },
        output_activations: null,
      },
    },
  };
}
