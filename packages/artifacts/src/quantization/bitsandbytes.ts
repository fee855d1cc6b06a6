import { z } from "zod";
import { parseForm } from "@octavo/text/files/bounded-json";
import type { StoredTensor, TensorInfo } from "../checkpoint/checkpoint.js";
import { readTensor, readTensorNow } from "../checkpoint/read-tensor.js";
import { floatDtypes, type QuantizedModule, readFloats } from "./quantized-module.js";
import type { QuantizationScheme } from "./quantization-scheme.js";

const kinds = ["nf4", "fp4"] as const;
const stateLeaf = (kind: string): string => `weight.quant_state.bitsandbytes__${kind}`;
const maxStateBytes = 65_536;

const stateSchema = z.looseObject({
  blocksize: z.number().int().min(1).max(1_048_576),
  shape: z.array(z.number().int().min(1).max(0x7fffffff)).length(2),
  nested_blocksize: z.number().int().min(1).max(1_048_576).nullish(),
  nested_offset: z.number().nullish(),
});

/**
 * bitsandbytes (Dettmers et al., arXiv 2208.07339 and 2305.14314).
 *
 * NF4 and FP4: weight holds two codes per byte, the first in the high nibble, over the row-major matrix; w = quant_map[code] *
 * absmax of its block. With nested statistics absmax is itself U8: nested_quant_map[code] * nested_absmax[i / 256] + offset.
 * LLM.int8: weight I8 `[out, in]`, SCB `[out]`; w = q * SCB / 127. The split of outlier activations is not needed here, since
 * the kernels scale activations per 32 columns; beside rows with a single scale per 128, so that rows are given two where they can be.
 */
export const bitsandbytes: QuantizationScheme = {
  methods: ["bitsandbytes"],
  leaves: [
    "weight",
    "weight.absmax",
    "weight.quant_map",
    "weight.nested_absmax",
    "weight.nested_quant_map",
    ...kinds.map(stateLeaf),
    "SCB",
    "weight_format",
  ],
  open: () => (module) => (module.has("SCB") ? readInt8(module) : read4Bit(module)),
};

function readInt8(module: QuantizedModule): TensorInfo {
  const weight = module.needMatrix("weight", ["I8"]);
  const { rows, cols } = weight;
  const scale = module.need("SCB", floatDtypes);
  module.expectShape("SCB", [rows], `weight [${rows}, ${cols}]`);
  module.checkGroups("weight", cols, cols);
  const groups = cols % 64 === 0 ? 2 : 1;
  return module.matrix("int8", rows, cols, {
    layout: `${cols / groups}`,
    assemble: async () => {
      const scales = await readFloats(scale);
      return {
        values: weight.tensor,
        scales: Float32Array.from(
          { length: rows * groups },
          (_, at) => (scales[Math.floor(at / groups)] ?? 0) / 127,
        ),
        groupSize: cols / groups,
      };
    },
  });
}

interface State {
  readonly groupSize: number;
  readonly rows: number;
  readonly cols: number;
  readonly nestedGroup: number;
  readonly nestedOffset: number;
}

function read4Bit(module: QuantizedModule): TensorInfo {
  const kind = kinds.find((candidate) => module.has(stateLeaf(candidate))) ?? "nf4";
  const { rows, cols, groupSize, nestedGroup, nestedOffset } = readState(module, stateLeaf(kind));
  // The codes' bytes may be stored as any dtype (bnb_4bit_quant_storage).
  const weight = module.need("weight", ["U8", "I8", ...floatDtypes]);
  if (weight.byteLength * 2 !== rows * cols) {
    throw module.invalid(
      "weight",
      `has ${weight.byteLength} bytes; a 4-bit [${rows}, ${cols}] takes ${(rows * cols) / 2}`,
    );
  }
  if (cols % groupSize !== 0) {
    throw module.unsupported(
      "weight",
      `has blocks of ${groupSize} that reach over the ends of rows of ${cols}`,
    );
  }
  const blocks = (rows * cols) / groupSize;
  const absmax = module.need("weight.absmax", ["U8", "F32"]);
  module.expectShape("weight.absmax", [blocks], `[${rows}, ${cols}] in blocks of ${groupSize}`);
  const table = module.need("weight.quant_map", ["F32"]);
  module.expectShape("weight.quant_map", [16], "four bits");
  const isNested = absmax.dtype === "U8";
  if (isNested) {
    module.need("weight.nested_absmax", ["F32"]);
    module.expectShape("weight.nested_absmax", [Math.ceil(blocks / nestedGroup)], `${blocks} blocks`);
    module.need("weight.nested_quant_map", ["F32"]);
    module.expectShape("weight.nested_quant_map", [256], "eight bits");
  }
  return module.matrix("table4", rows, cols, {
    layout: `${kind} ${groupSize}`,
    assemble: async () => ({
      values: swapNibbles(await readTensor(weight)),
      scales: isNested
        ? await nestedScales(module, absmax, nestedGroup, nestedOffset)
        : await readFloats(absmax),
      table: await readFloats(table),
      groupSize,
    }),
  });
}

function readState(module: QuantizedModule, leaf: string): State {
  const tensor = module.need(leaf, ["U8"]);
  if (tensor.byteLength > maxStateBytes) throw module.invalid(leaf, `has ${tensor.byteLength} bytes`);
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(readTensorNow(tensor)).toString("utf8"));
  } catch {
    throw module.invalid(leaf, "is not JSON");
  }
  const state = parseForm(`${tensor.path}: tensor "${tensor.name}"`, json, stateSchema);
  const [rows = 1, cols = 1] = state.shape;
  return {
    groupSize: state.blocksize,
    rows,
    cols,
    nestedGroup: state.nested_blocksize ?? 256,
    nestedOffset: state.nested_offset ?? 0,
  };
}

function swapNibbles(bytes: Uint8Array): Uint8Array {
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    bytes[i] = (byte >> 4) | ((byte & 15) << 4);
  }
  return bytes;
}

async function nestedScales(
  module: QuantizedModule,
  absmax: StoredTensor,
  group: number,
  offset: number,
): Promise<Float32Array> {
  const [codes, outer, table] = await Promise.all([
    readTensor(absmax),
    readFloats(module.need("weight.nested_absmax", ["F32"])),
    readFloats(module.need("weight.nested_quant_map", ["F32"])),
  ]);
  return Float32Array.from(codes, (code, i) =>
    Math.fround(Math.fround((table[code] ?? 0) * (outer[Math.floor(i / group)] ?? 0)) + offset),
  );
}
