import { z } from "zod";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm } from "@octavo/text/files/bounded-json";
import type { MatrixParts, TensorInfo } from "../checkpoint/checkpoint.js";
import { bitField, reorderBytes, reorderFields, transposeWords } from "./bit-layouts.js";
import { columnOrder, orderKey } from "./group-index.js";
import { floatDtypes, type QuantizedModule, readFloats, readWords } from "./quantized-module.js";
import type { QuantizationScheme } from "./quantization-scheme.js";

const settingsSchema = z.looseObject({
  bits: z.number().nullish(),
  group_size: z.number().nullish(),
  sym: z.boolean().nullish(),
  checkpoint_format: z.string().nullish(),
});

interface Settings {
  readonly bits: number | undefined;
  readonly groupSize: number | undefined;
  /** Whether every zero point is the middle of the range. */
  readonly isSymmetric: boolean;
  /** Added to stored zero points. */
  readonly zeroOffset: 0 | 1;
}

/**
 * GPTQ (Frantar et al., arXiv 2210.17323) as AutoGPTQ and GPTQModel write it: qweight `[in * bits / 32, out]`, fields down the
 * rows from the least significant bit (3-bit ones span words); qzeros `[groups, out * bits / 32]`; scales `[groups, out]`;
 * g_idx `[in]`, the group of each input. w = (q - z) * s; format 1 stores z - 1, `gptq_v2` stores z.
 *
 * Where g_idx is not ascending (act-order), the inputs are sorted by group and the matrix takes its columns in that order.
 * Fields of 2, 3 and 4 bits lie in the words of an output as the kernels take them in a row. 8-bit ones become signed bytes without
 * zero points where the settings say `sym`, else unsigned bytes with them.
 */
export const gptq: QuantizationScheme = {
  methods: ["gptq"],
  leaves: ["qweight", "qzeros", "scales", "g_idx"],
  open({ path, fields }) {
    const settings = parseForm(path, fields, settingsSchema);
    const bits = settings.bits ?? undefined;
    if (bits !== undefined && ![2, 3, 4, 8].includes(bits)) {
      throw artifactUnsupported(path, `is GPTQ of ${bits} bits; 2, 3, 4 and 8 are supported`);
    }
    const format = settings.checkpoint_format ?? "gptq";
    if (format !== "gptq" && format !== "gptq_v2") {
      throw artifactUnsupported(
        path,
        `has the GPTQ checkpoint_format ${JSON.stringify(format.slice(0, 50))}; gptq and gptq_v2 are supported`,
      );
    }
    const groupSize = settings.group_size ?? undefined;
    const isSymmetric = settings.sym ?? false;
    const zeroOffset = format === "gptq" ? 1 : 0;
    return (module) => readModule(module, { bits, groupSize, isSymmetric, zeroOffset });
  },
};

function readModule(module: QuantizedModule, settings: Settings): TensorInfo {
  const weight = module.needMatrix("qweight", ["I32"]);
  const scales = module.needMatrix("scales", floatDtypes);
  const zeros = module.needMatrix("qzeros", ["I32"]);
  const outputs = weight.cols;
  const groups = scales.rows;
  const bits = settings.bits ?? (zeros.cols * 32) / outputs;
  const inputs = (weight.rows * 32) / bits;
  if (!Number.isInteger(inputs)) {
    throw module.invalid(
      "qweight",
      `has ${weight.rows} rows of words, which do not hold whole ${bits}-bit inputs`,
    );
  }
  const why = `qweight [${weight.rows}, ${weight.cols}] in GPTQ's layout of ${bits} bits`;
  const groupSize = settings.groupSize === -1 ? inputs : (settings.groupSize ?? inputs / groups);
  module.checkGroups("qweight", inputs, groupSize);
  module.expectShape("scales", [inputs / groupSize, outputs], `${why}, with groups of ${groupSize},`);
  module.expectShape("qzeros", [groups, (outputs * bits) / 32], why);
  const order = columnOrder(module, "g_idx", { inputs, groups, groupSize });
  const shape = { bits, inputs, outputs, groups, groupSize, order };
  const type =
    ({ 2: "int2", 3: "int3", 4: "int4" } as const)[bits] ?? (settings.isSymmetric ? "int8" : "uint8");
  return module.matrix(type, outputs, inputs, {
    layout: `${groupSize} with zeros ${orderKey(order)}`,
    assemble: async () => {
      const words = await readWords(weight.tensor);
      const parts = {
        scales: transposeWords(await readFloats(scales.tensor), groups, outputs),
        groupSize,
        ...(order !== undefined && { columnOrder: order }),
      };
      const points = zeroPoints(await readWords(zeros.tensor), shape, settings.zeroOffset);
      if (type !== "int8") return { ...parts, values: packedFields(words, shape), zeros: points };
      return signedBytes(module, words, shape, points, parts);
    },
  });
}

interface Shape {
  readonly bits: number;
  readonly inputs: number;
  readonly outputs: number;
  readonly groups: number;
  readonly groupSize: number;
  readonly order: Int32Array | undefined;
}

function packedFields(words: Uint32Array, { bits, inputs, outputs, order }: Shape): Uint8Array {
  const rows = new Uint8Array(transposeWords(words, (inputs * bits) / 32, outputs).buffer);
  if (order === undefined) return rows;
  return bits === 8
    ? reorderBytes(rows, outputs, inputs, order)
    : reorderFields(rows, outputs, inputs, bits, order);
}

/** Signed bytes: what lies in the file is 128 above them. */
function signedBytes(
  module: QuantizedModule,
  words: Uint32Array,
  { inputs, outputs, order }: Shape,
  points: Float32Array,
  parts: Omit<MatrixParts, "values">,
): MatrixParts {
  const odd = points.findIndex((point) => point !== 128);
  if (odd >= 0) {
    throw module.unsupported(
      "qzeros",
      `holds the 8-bit zero point ${points[odd]}, although the configuration says sym, which means 128`,
    );
  }
  const rows = transposeWords(words, inputs / 4, outputs);
  for (let i = 0; i < rows.length; i++) rows[i] = (rows[i] ?? 0) ^ 0x80808080;
  const values = new Uint8Array(rows.buffer);
  return { ...parts, values: order === undefined ? values : reorderBytes(values, outputs, inputs, order) };
}

function zeroPoints(words: Uint32Array, { bits, outputs, groups }: Shape, offset: 0 | 1): Float32Array {
  const stride = words.length / groups;
  const mask = (1 << bits) - 1;
  const out = new Float32Array(groups * outputs);
  for (let group = 0; group < groups; group++) {
    for (let output = 0; output < outputs; output++) {
      out[output * groups + group] = (bitField(words, group * stride, output, bits) + offset) & mask;
    }
  }
  return out;
}
