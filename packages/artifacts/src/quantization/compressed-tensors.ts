import { z } from "zod";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm } from "@octavo/text/files/bounded-json";
import type { DeclaredActivations, MatrixParts, TensorInfo } from "../checkpoint/checkpoint.js";
import { readTensor, readTensorNow } from "../checkpoint/read-tensor.js";
import { bitField, packNibbles, reorderBytes, reorderFields, unpackRows } from "./bit-layouts.js";
import { readFloat4 } from "./float4.js";
import { readFloat8 } from "./fp8.js";
import { columnOrder, orderKey } from "./group-index.js";
import { floatDtypes, type QuantizedModule, readFloats, readWords } from "./quantized-module.js";
import type { QuantizationScheme } from "./quantization-scheme.js";

const settingsSchema = z.looseObject({
  format: z.string().nullish(),
  config_groups: z
    .record(
      z.string(),
      z.looseObject({
        weights: z
          .looseObject({ block_structure: z.array(z.number().int().positive()).length(2).nullish() })
          .nullish(),
        input_activations: z
          .looseObject({
            num_bits: z.number().nullish(),
            type: z.string().nullish(),
            strategy: z.string().nullish(),
            dynamic: z.union([z.boolean(), z.string()]).nullish(),
            group_size: z.number().int().positive().nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
  sparsity_config: z.looseObject({ format: z.string().nullish() }).nullish(),
});

const formats = [
  "pack-quantized",
  "int-quantized",
  "float-quantized",
  "naive-quantized",
  "nvfp4-pack-quantized",
  "mxfp4-pack-quantized",
  "mixed-precision",
  "dense",
];

/**
 * compressed-tensors, as llm-compressor writes it. What a layer is follows from its tensors, so layers of several precisions
 * and ignored ones need no rules.
 *
 * pack-quantized: weight_packed I32 `[out, in * bits / 32]`, a dense bit stream along each row holding q + 2^(bits - 1);
 * weight_scale `[out, groups]`; weight_shape `[2]`; weight_zero_point, packed the same way along the rows of each column.
 * float-quantized: as `fp8.ts` says. nvfp4-pack-quantized and mxfp4-pack-quantized: as `float4.ts` says. int-quantized: weight I8 `[out, in]`, weight_scale `[out, 1]` or `[1]`. w = (q - z) * s
 *
 * Activations are quantised by the kernels themselves, per 32 columns of a token, or 128 beside int8 weights with one scale a row: finer
 * than either of the format's ways, so static `input_scale`s are not read.
 */
export const compressedTensors: QuantizationScheme = {
  methods: ["compressed-tensors", "compressed_tensors"],
  leaves: [
    "weight",
    "weight_packed",
    "weight_scale",
    "weight_global_scale",
    "weight_shape",
    "weight_zero_point",
    "weight_g_idx",
    "input_scale",
    "input_global_scale",
    "input_zero_point",
    "output_scale",
  ],
  open({ path, fields }) {
    const settings = parseForm(path, fields, settingsSchema);
    const sparsity = settings.sparsity_config?.format ?? "dense";
    if (sparsity !== "dense") {
      throw artifactUnsupported(
        path,
        `has weights in the sparse format ${JSON.stringify(sparsity.slice(0, 50))}`,
      );
    }
    if (settings.format && !formats.includes(settings.format)) {
      throw artifactUnsupported(
        path,
        `has the compressed-tensors format ${JSON.stringify(settings.format.slice(0, 50))}; supported are ${formats.join(", ")}`,
      );
    }
    const blocks = Object.values(settings.config_groups ?? {}).map((group) => group.weights?.block_structure);
    const [rows = 128, cols = 128] = blocks.find((block) => block) ?? [];
    const activations = declaredFloat8(settings);
    return (module) => {
      if (module.find("weight_packed")?.dtype === "U8") return readFloat4(module, "weight_packed");
      if (module.has("weight_packed")) return readPacked(module);
      const isFloat8 = module.find("weight")?.dtype === "F8_E4M3";
      return isFloat8 ? readFloat8(module, [rows, cols], activations) : readBytes(module);
    };
  },
};

interface Shape {
  readonly rows: number;
  readonly cols: number;
  readonly bits: number;
  readonly groups: number;
  readonly groupSize: number;
}

/** What the first group that rounds activations to FP8 says; the others' weights are of other types. */
function declaredFloat8({
  config_groups: groups,
}: z.infer<typeof settingsSchema>): DeclaredActivations | undefined {
  for (const { input_activations: asked } of Object.values(groups ?? {})) {
    if (asked?.type !== "float" || asked.num_bits !== 8) continue;
    const isDynamic = asked.dynamic === true && asked.strategy !== "tensor";
    const groupSize = asked.strategy === "group" ? (asked.group_size ?? undefined) : undefined;
    return { scales: isDynamic ? "dynamic" : "static", ...(groupSize !== undefined && { groupSize }) };
  }
  return undefined;
}

function readPacked(module: QuantizedModule): TensorInfo {
  const packed = module.needMatrix("weight_packed", ["I32"]);
  const [rows, cols] = readShape(module);
  const bits = Math.floor((packed.cols * 32) / cols);
  if (![2, 3, 4, 8].includes(bits)) {
    throw module.unsupported("weight_packed", `has ${bits} bits per weight; 2, 3, 4 and 8 are supported`);
  }
  module.expectShape(
    "weight_packed",
    [rows, Math.ceil((cols * bits) / 32)],
    `weight_shape [${rows}, ${cols}] at ${bits} bits`,
  );
  const { groups, groupSize } = readScaleShape(module, rows, cols);
  const shape = { rows, cols, bits, groups, groupSize };
  if (module.has("weight_zero_point")) {
    module.need("weight_zero_point", ["I32"]);
    const words = Math.ceil((rows * bits) / 32);
    module.expectShape(
      "weight_zero_point",
      [words, groups],
      `weight_shape [${rows}, ${cols}] at ${bits} bits`,
    );
  }
  const order = columnOrder(module, "weight_g_idx", { inputs: cols, groups, groupSize });
  return module.matrix(bits === 8 ? "int8" : "int4", rows, cols, {
    layout: `${groupSize} ${bits === 8 ? "" : `zeros: ${hasZeros(module, bits)}`} ${orderKey(order)}`,
    assemble: async () => ({
      ...(bits === 8
        ? { values: await packedBytes(module, shape, order) }
        : await packedNibbles(module, shape, order)),
      scales: await readScales(module, rows, groups),
      groupSize,
      ...(order !== undefined && { columnOrder: order }),
    }),
  });
}

/** Stored codes are 2^(bits - 1) above the signed ones: 8 for nibbles, which is what the kernels take by default. */
function hasZeros(module: QuantizedModule, bits: number): boolean {
  return bits !== 4 || module.has("weight_zero_point");
}

async function packedNibbles(
  module: QuantizedModule,
  shape: Shape,
  order: Int32Array | undefined,
): Promise<Pick<MatrixParts, "values" | "zeros">> {
  const { rows, cols, bits } = shape;
  const tensor = module.need("weight_packed", ["I32"]);
  const zeros = hasZeros(module, bits) && { zeros: await readZeros(module, shape) };
  if (bits === 4 && order === undefined) return { values: tensor, ...zeros };
  const nibbles =
    bits === 4
      ? await readTensor(tensor)
      : packNibbles(unpackRows(await readWords(tensor), rows, cols, bits));
  return { values: order === undefined ? nibbles : reorderFields(nibbles, rows, cols, 4, order), ...zeros };
}

async function packedBytes(
  module: QuantizedModule,
  shape: Shape,
  order: Int32Array | undefined,
): Promise<Uint8Array> {
  if (module.has("weight_zero_point")) {
    const zeros = await readZeros(module, shape);
    const odd = zeros.find((zero) => zero !== 128);
    if (odd !== undefined) {
      throw module.unsupported("weight_zero_point", `holds ${odd - 128}; 8-bit weights must be symmetric`);
    }
  }
  const words = await readWords(module.need("weight_packed", ["I32"]));
  for (let i = 0; i < words.length; i++) words[i] = (words[i] ?? 0) ^ 0x80808080;
  const bytes = new Uint8Array(words.buffer);
  return order === undefined ? bytes : reorderBytes(bytes, shape.rows, shape.cols, order);
}

async function readZeros(module: QuantizedModule, { rows, groups, bits }: Shape): Promise<Float32Array> {
  const zeros = new Float32Array(rows * groups).fill(1 << (bits - 1));
  if (!module.has("weight_zero_point")) return zeros;
  const words = await readWords(module.need("weight_zero_point", ["I32"]));
  const column = new Uint32Array(words.length / groups);
  for (let group = 0; group < groups; group++) {
    for (let i = 0; i < column.length; i++) column[i] = words[i * groups + group] ?? 0;
    for (let row = 0; row < rows; row++) zeros[row * groups + group] = bitField(column, 0, row, bits);
  }
  return zeros;
}

/** int-quantized and naive-quantized: whole bytes. */
function readBytes(module: QuantizedModule): TensorInfo {
  const weight = module.needMatrix("weight", ["I8"]);
  const { rows, cols } = weight;
  const { groups, groupSize } = readScaleShape(module, rows, cols);
  return module.matrix("int8", rows, cols, {
    layout: `${groupSize}`,
    assemble: async () => {
      const zeros = module.find("weight_zero_point");
      if (zeros !== undefined && (await readTensor(zeros)).some((byte) => byte !== 0)) {
        throw module.unsupported("weight_zero_point", "is not zero; 8-bit weights must be symmetric");
      }
      return { values: weight.tensor, scales: await readScales(module, rows, groups), groupSize };
    },
  });
}

function readShape(module: QuantizedModule): [rows: number, cols: number] {
  const tensor = module.need("weight_shape", ["I64", "I32"]);
  module.expectShape("weight_shape", [2], "a matrix");
  const { buffer } = readTensorNow(tensor);
  const sizes =
    tensor.dtype === "I64" ? Array.from(new BigInt64Array(buffer), Number) : [...new Int32Array(buffer)];
  const [rows = 0, cols = 0] = sizes;
  if (!(rows >= 1 && cols >= 1 && rows <= 0x7fffffff && cols <= 0x7fffffff)) {
    throw module.invalid("weight_shape", `says [${sizes.join(", ")}]`);
  }
  return [rows, cols];
}

/** One scale per tensor counts as one per row. */
function readScaleShape(
  module: QuantizedModule,
  rows: number,
  cols: number,
): { groups: number; groupSize: number } {
  const scale = module.need("weight_scale", floatDtypes);
  const count = scale.shape.reduce((product, size) => product * size, 1);
  const groups = count === 1 ? 1 : (scale.shape[1] ?? 1);
  if (count !== 1 && (scale.shape[0] !== rows || scale.shape.length > 2)) {
    module.expectShape("weight_scale", [rows, groups], `a weight of ${rows} rows`);
  }
  const groupSize = cols / groups;
  module.checkGroups("weight_scale", cols, groupSize);
  return { groups, groupSize };
}

async function readScales(module: QuantizedModule, rows: number, groups: number): Promise<Float32Array> {
  const scales = await readFloats(module.need("weight_scale", floatDtypes));
  return scales.length === 1 ? new Float32Array(rows * groups).fill(scales[0] ?? 0) : scales;
}
