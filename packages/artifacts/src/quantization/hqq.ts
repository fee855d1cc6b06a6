import { z } from "zod";
import { parseForm } from "@octavo/text/files/bounded-json";
import type { StoredTensor, TensorInfo } from "../checkpoint/checkpoint.js";
import { readTensor, readTensorNow } from "../checkpoint/read-tensor.js";
import { packNibbles } from "./bit-layouts.js";
import { floatDtypes, type QuantizedModule, readFloats } from "./quantized-module.js";
import type { QuantizationScheme } from "./quantization-scheme.js";

const parametersSchema = z.looseObject({
  nbits: z.number().nullish(),
  group_size: z.number().nullish(),
  axis: z.number().nullish(),
});
const settingsSchema = z.looseObject({
  quant_config: z.looseObject({ weight_quant_params: parametersSchema.nullish() }).nullish(),
  weight_quant_params: parametersSchema.nullish(),
});

type Parameters = z.infer<typeof parametersSchema>;

/**
 * HQQ (Badri and Shaji, "Half-Quadratic Quantization", 2023): w = (q - zero) * scale with fractional zero points, over the matrix
 * reshaped to `[out * in / g, g]` (axis 1: a row is a group) or `[g, out * in / g]` (axis 0: a column is one). W_q has a byte per
 * code for 8 bits; for 4 bits the first half of the reshaped rows lies in the high nibbles, the second in the low ones. Settings
 * that are no tensors are stored as tensors beside W_q.
 */
export const hqq: QuantizationScheme = {
  methods: ["hqq"],
  leaves: [
    "W_q",
    "scale",
    "zero",
    "nbits",
    "group_size",
    "axis",
    "shape",
    "packing",
    "unpack_view_dtype",
    "view_as_float",
    "quant_scale",
    "quant_zero",
    "compute_dtype",
    "offload_meta",
    "encoded_state_dict",
    "stores_quant_config",
    "channel_wise",
    "optimize",
    "round_zero",
  ],
  open({ path, fields }) {
    const settings = parseForm(path, fields, settingsSchema);
    const parameters = settings.quant_config?.weight_quant_params ?? settings.weight_quant_params ?? {};
    return (module) => readModule(module, parameters);
  },
};

function readModule(module: QuantizedModule, parameters: Parameters): TensorInfo {
  const weight = module.need("W_q", ["U8"]);
  const [rows = 0, cols = 0] = readIntegers(module, "shape") ?? [];
  if (!(rows >= 1 && cols >= 1 && Number.isSafeInteger(rows * cols))) {
    throw module.invalid("shape", "gives no matrix; it must hold the weight's rows and columns");
  }
  const setting = (leaf: "nbits" | "group_size" | "axis"): number | undefined =>
    readIntegers(module, leaf)?.[0] ?? parameters[leaf] ?? undefined;
  for (const leaf of ["quant_scale", "quant_zero", "view_as_float"]) {
    if ((readIntegers(module, leaf)?.[0] ?? 0) !== 0)
      throw module.unsupported(leaf, "is on, which is not supported");
  }
  const bits = setting("nbits") ?? 4;
  const axis = setting("axis") ?? 1;
  const groupSize = setting("group_size") ?? (axis === 1 ? cols : rows);
  if (bits !== 4 && bits !== 8) throw module.unsupported("W_q", `has ${bits} bits; 4 and 8 are supported`);
  if (axis !== 0 && axis !== 1) throw module.invalid("axis", `is ${axis}; it must be 0 or 1`);
  const bytes = (rows * cols * bits) / 8;
  if (weight.byteLength !== bytes) {
    throw module.invalid(
      "W_q",
      `has ${weight.byteLength} bytes; [${rows}, ${cols}] at ${bits} bits takes ${bytes}`,
    );
  }
  const groups = (rows * cols) / groupSize;
  for (const leaf of ["scale", "zero"]) {
    module.need(leaf, floatDtypes);
    module.expectShape(
      leaf,
      axis === 1 ? [groups, 1] : [1, groups],
      `[${rows}, ${cols}] in groups of ${groupSize}`,
    );
  }
  const shape = { rows, cols, groupSize };
  if (axis === 1) return alongRows(module, weight, bits, shape);
  return alongColumns(module, weight, bits, shape);
}

interface Shape {
  readonly rows: number;
  readonly cols: number;
  readonly groupSize: number;
}

function alongRows(module: QuantizedModule, weight: StoredTensor, bits: 4 | 8, shape: Shape): TensorInfo {
  const { rows, cols, groupSize } = shape;
  module.checkGroups("W_q", cols, groupSize);
  return module.matrix(bits === 8 ? "uint8" : "int4", rows, cols, {
    layout: `${groupSize} with zeros`,
    assemble: async () => ({
      values: bits === 8 ? weight : packNibbles(halvesOf(await readTensor(weight))),
      scales: await readFloats(module.need("scale", floatDtypes)),
      zeros: await readFloats(module.need("zero", floatDtypes)),
      groupSize,
    }),
  });
}

/** A column of the reshaped matrix holds element i of every `rows / groupSize`-th row, and has a scale of its own. */
function alongColumns(module: QuantizedModule, weight: StoredTensor, bits: 4 | 8, shape: Shape): TensorInfo {
  const { rows, cols, groupSize } = shape;
  if (rows % groupSize !== 0) {
    throw module.invalid("W_q", `has groups of ${groupSize}, which do not divide its ${rows} outputs`);
  }
  return module.matrix(bits === 8 ? "uint8" : "table4", rows, cols, {
    layout: module.name,
    assemble: async () => ({
      values: bits === 8 ? weight : packNibbles(halvesOf(await readTensor(weight))),
      scales: await readFloats(module.need("scale", floatDtypes)),
      zeros: await readFloats(module.need("zero", floatDtypes)),
      scaleRows: rows / groupSize,
      groupSize: 1,
      ...(bits === 4 && { table: Float32Array.from({ length: 16 }, (_, code) => code) }),
    }),
  });
}

/** One code per byte: those in the high nibbles come first. */
function halvesOf(bytes: Uint8Array): Uint8Array {
  const codes = new Uint8Array(bytes.length * 2);
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    codes[i] = byte >> 4;
    codes[bytes.length + i] = byte & 15;
  }
  return codes;
}

/** A setting's values; undefined when the module does not store it. */
function readIntegers(module: QuantizedModule, leaf: string): readonly number[] | undefined {
  if (!module.has(leaf)) return undefined;
  const tensor = module.need(leaf, ["U8", "I32", "I64"]);
  if (tensor.byteLength > 64)
    throw module.invalid(leaf, `has ${tensor.byteLength} bytes; a number is expected`);
  const bytes = readTensorNow(tensor);
  if (tensor.dtype === "U8") return [...bytes];
  if (tensor.dtype === "I32") return [...new Int32Array(bytes.buffer)];
  return Array.from(new BigInt64Array(bytes.buffer), Number);
}
