import { viewBytes, type EncodedMatrix } from "../output/output-tensor.js";
import { transpose } from "./awq.js";
import { store } from "./half.js";
import { groupValues, type IntegerGroups } from "./integer-groups.js";

/**
 * GPTQ's first format, as AutoGPTQ wrote it and vLLM and transformers read it: qweight I32 `[in * bits / 32, out]`, fields down the
 * rows from the least significant bit; qzeros I32 `[groups, out * bits / 32]`, holding z - 1; scales F16 `[groups, out]`; g_idx I32
 * `[in]`. w = (q - z) * s
 */
export function packGptq(module: string, matrix: IntegerGroups): EncodedMatrix {
  const { rows: outputs, cols: inputs, bits, groupSize, groupOf, codes, scales, zeros } = matrix;
  const groups = inputs / groupSize;
  const groupIndex =
    groupOf ?? Int32Array.from({ length: inputs }, (_, input) => Math.floor(input / groupSize));
  const mask = (1 << bits) - 1;
  const stored = zeros.map((zero) => (zero - 1) & mask);
  return {
    tensors: [
      {
        name: `${module}.qweight`,
        dtype: "I32",
        shape: [(inputs * bits) / 32, outputs],
        bytes: viewBytes(packDown(codes, outputs, inputs, bits)),
      },
      {
        name: `${module}.qzeros`,
        dtype: "I32",
        shape: [groups, (outputs * bits) / 32],
        bytes: viewBytes(packAlong(stored, outputs, groups, bits)),
      },
      {
        name: `${module}.scales`,
        dtype: "F16",
        shape: [groups, outputs],
        bytes: store(transpose(scales, outputs, groups), "f16").bytes,
      },
      { name: `${module}.g_idx`, dtype: "I32", shape: [inputs], bytes: viewBytes(groupIndex) },
    ],
    values: groupValues(matrix),
  };
}

/** `[outputs, inputs]` fields as a bit stream down each column of `[inputs * bits / 32, outputs]` words. */
function packDown(codes: Uint8Array, outputs: number, inputs: number, bits: number): Uint32Array {
  const words = new Uint32Array(((inputs * bits) / 32) * outputs);
  for (let output = 0; output < outputs; output++) {
    for (let input = 0; input < inputs; input++) {
      const code = codes[output * inputs + input]!;
      const bit = input * bits;
      const at = (bit >>> 5) * outputs + output;
      words[at] = words[at]! | (code << (bit & 31));
      // A field of three bits may end in the next word.
      if ((bit & 31) + bits > 32) words[at + outputs] = words[at + outputs]! | (code >>> (32 - (bit & 31)));
    }
  }
  return words;
}

/** `[outputs, groups]` fields as a bit stream along each row of `[groups, outputs * bits / 32]` words. */
function packAlong(codes: Uint8Array, outputs: number, groups: number, bits: number): Uint32Array {
  const stride = (outputs * bits) / 32;
  const words = new Uint32Array(groups * stride);
  for (let group = 0; group < groups; group++) {
    for (let output = 0; output < outputs; output++) {
      const code = codes[output * groups + group]!;
      const bit = output * bits;
      const at = group * stride + (bit >>> 5);
      words[at] = words[at]! | (code << (bit & 31));
      if ((bit & 31) + bits > 32) words[at + 1] = words[at + 1]! | (code >>> (32 - (bit & 31)));
    }
  }
  return words;
}
