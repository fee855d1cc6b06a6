import { z } from "zod";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm } from "@octavo/text/files/bounded-json";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import { bitField, transposeWords } from "./bit-layouts.js";
import { floatDtypes, type QuantizedModule, readFloats, readWords } from "./quantized-module.js";
import type { QuantizationScheme } from "./quantization-scheme.js";

const settingsSchema = z.looseObject({
  bits: z.number().nullish(),
  w_bit: z.number().nullish(),
  group_size: z.number().nullish(),
  q_group_size: z.number().nullish(),
  version: z.string().nullish(),
});

const packed = 8;

/**
 * AWQ (Lin et al., arXiv 2306.00978) as AutoAWQ writes it: w = (q - z) * s, no offset on z.
 *
 * GEMM: qweight `[in, out / 8]`, qzeros `[in / g, out / 8]`, scales `[in / g, out]`; nibble i of word c holds output
 * 8c + [0, 2, 4, 6, 1, 3, 5, 7][i].
 * GEMV: qweight `[out, in / 8]`, qzeros `[out, n]`, scales `[out, 8n]`, nibbles in natural order; n is `in / g / 8` rounded
 * up, so that rows end in padding.
 */
export const awq: QuantizationScheme = {
  methods: ["awq"],
  leaves: ["qweight", "qzeros", "scales", "g_idx"],
  open({ path, fields }) {
    const settings = parseForm(path, fields, settingsSchema);
    const bits = settings.bits ?? settings.w_bit ?? 4;
    if (bits !== 4) throw artifactUnsupported(path, `is AWQ of ${bits} bits; 4 are supported`);
    const version = (settings.version ?? "gemm").toLowerCase();
    if (version !== "gemm" && version !== "gemv") {
      throw artifactUnsupported(
        path,
        `has the AWQ layout ${JSON.stringify(version.slice(0, 50))}; gemm and gemv are supported`,
      );
    }
    const groupSize = settings.group_size ?? settings.q_group_size ?? undefined;
    return (module) => {
      if (module.has("g_idx")) throw module.invalid("g_idx", "belongs to GPTQ, not to AWQ");
      return version === "gemm" ? readGemm(module, groupSize) : readGemv(module, groupSize ?? 128);
    };
  },
};

function readGemm(module: QuantizedModule, stated: number | undefined): TensorInfo {
  const weight = module.needMatrix("qweight", ["I32"]);
  const scales = module.needMatrix("scales", floatDtypes);
  const inputs = weight.rows;
  const outputs = weight.cols * packed;
  const groupSize = stated === undefined ? inputs / scales.rows : stated === -1 ? inputs : stated;
  module.checkGroups("qweight", inputs, groupSize);
  const groups = inputs / groupSize;
  const why = `qweight [${weight.rows}, ${weight.cols}] in AWQ's GEMM layout, with groups of ${groupSize},`;
  module.expectShape("scales", [groups, outputs], why);
  const zeros = module.needMatrix("qzeros", ["I32"]);
  module.expectShape("qzeros", [groups, outputs / packed], why);
  return module.matrix("int4", outputs, inputs, {
    layout: `${groupSize} with zeros`,
    assemble: async () => ({
      values: gemmNibbles(await readWords(weight.tensor), inputs, weight.cols),
      scales: transposeWords(await readFloats(scales.tensor), groups, outputs),
      zeros: gemmZeros(await readWords(zeros.tensor), groups, outputs),
      groupSize,
    }),
  });
}

/** Where in its word the nibble of output 8c + i lies, in bits. */
const shifts: readonly number[] = [0, 4, 1, 5, 2, 6, 3, 7].map((nibble) => nibble * 4);

/** Row-major nibbles; 64 inputs by 16 words at a time stay in the nearest cache. */
function gemmNibbles(words: Uint32Array, inputs: number, wordsPerInput: number): Uint8Array {
  const stride = inputs / 2;
  const out = new Uint8Array(words.byteLength);
  for (let top = 0; top < inputs; top += 64) {
    const bottom = Math.min(top + 64, inputs);
    for (let word = 0; word < wordsPerInput; word++) {
      for (let input = top; input < bottom; input += 2) {
        const first = words[input * wordsPerInput + word] ?? 0;
        const second = words[(input + 1) * wordsPerInput + word] ?? 0;
        let at = word * packed * stride + input / 2;
        for (let i = 0; i < packed; i++, at += stride) {
          const shift = shifts[i] ?? 0;
          out[at] = ((first >>> shift) & 15) | (((second >>> shift) & 15) << 4);
        }
      }
    }
  }
  return out;
}

function gemmZeros(words: Uint32Array, groups: number, outputs: number): Float32Array {
  const out = new Float32Array(groups * outputs);
  for (let group = 0; group < groups; group++) {
    for (let output = 0; output < outputs; output++) {
      const word = words[(group * outputs) / packed + (output >>> 3)] ?? 0;
      out[output * groups + group] = (word >>> (shifts[output & 7] ?? 0)) & 15;
    }
  }
  return out;
}

function readGemv(module: QuantizedModule, stated: number): TensorInfo {
  const weight = module.needMatrix("qweight", ["I32"]);
  const outputs = weight.rows;
  const inputs = weight.cols * packed;
  const groupSize = stated === -1 ? inputs : stated;
  module.checkGroups("qweight", inputs, groupSize);
  const groups = inputs / groupSize;
  const zeros = module.needMatrix("qzeros", ["I32"]);
  const why = `qweight [${weight.rows}, ${weight.cols}] in AWQ's GEMV layout, with groups of ${groupSize},`;
  if (zeros.cols * packed < groups) module.expectShape("qzeros", [outputs, Math.ceil(groups / packed)], why);
  module.expectShape("qzeros", [outputs, zeros.cols], why);
  const scales = module.needMatrix("scales", floatDtypes);
  module.expectShape("scales", [outputs, zeros.cols * packed], `qzeros of ${zeros.cols} words a row`);
  return module.matrix("int4", outputs, inputs, {
    layout: `${groupSize} with zeros`,
    assemble: async () => ({
      values: weight.tensor,
      scales: withoutPadding(await readFloats(scales.tensor), outputs, groups),
      zeros: gemvZeros(await readWords(zeros.tensor), outputs, groups),
      groupSize,
    }),
  });
}

function withoutPadding(values: Float32Array, rows: number, cols: number): Float32Array {
  const stride = values.length / rows;
  const out = new Float32Array(rows * cols);
  for (let row = 0; row < rows; row++)
    out.set(values.subarray(row * stride, row * stride + cols), row * cols);
  return out;
}

function gemvZeros(words: Uint32Array, outputs: number, groups: number): Float32Array {
  const stride = words.length / outputs;
  const out = new Float32Array(outputs * groups);
  for (let output = 0; output < outputs; output++) {
    for (let group = 0; group < groups; group++) {
      out[output * groups + group] = bitField(words, output * stride, group, 4);
    }
  }
  return out;
}
