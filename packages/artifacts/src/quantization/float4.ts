import { e2m1Table, e4m3Values } from "../program/float-conversion.js";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import { readTensor } from "../checkpoint/read-tensor.js";
import { mxfp4Blocks } from "./mxfp4.js";
import { floatDtypes, type QuantizedModule, readFloats } from "./quantized-module.js";

/**
 * Codes of E2M1, U8 `[out, in / 2]`, low nibble first, of compressed-tensors (`weight_packed`) or ModelOpt (`weight`). Their scales tell
 * the format. NVFP4: F8_E4M3 `[out, in / 16]` and one F32 for the tensor, which divides in compressed-tensors (`weight_global_scale`)
 * and multiplies in ModelOpt (`weight_scale_2`). MXFP4: U8 `[out, in / 32]`, exponents with a bias of 127.
 */
export function readFloat4(module: QuantizedModule, leaf: "weight" | "weight_packed"): TensorInfo {
  const { tensor, rows, cols: bytes } = module.needMatrix(leaf, ["U8"]);
  const cols = 2 * bytes;
  const scale = module.need("weight_scale", ["F8_E4M3", "U8"]);
  const groupSize = scale.dtype === "U8" ? 32 : 16;
  if (cols % groupSize !== 0)
    throw module.invalid(leaf, `has ${cols} columns, not a multiple of ${groupSize}`);
  module.expectShape("weight_scale", [rows, cols / groupSize], `${leaf} [${rows}, ${bytes}]`);
  if (scale.dtype === "U8") {
    return module.matrix("mxfp4", rows, cols, {
      layout: "mxfp4",
      assemble: async () => {
        const [codes, exponents] = await Promise.all([readTensor(tensor), readTensor(scale)]);
        return { values: mxfp4Blocks(codes, exponents, { rows, groups: cols / groupSize }) };
      },
    });
  }
  const global = leaf === "weight" ? "weight_scale_2" : "weight_global_scale";
  module.need(global, floatDtypes);
  const loadedBytes = (rows * cols) / 2 + (4 * rows * cols) / groupSize;
  const matrix = module.matrix("table4", rows, cols, {
    layout: "nvfp4",
    assemble: async () => {
      const [factor = Number.NaN] = await readFloats(module.need(global, floatDtypes));
      if (!(factor > 0 && Number.isFinite(factor))) throw module.invalid(global, `is ${factor}`);
      const values = Float32Array.from(e4m3Values, (value) =>
        leaf === "weight" ? value * factor : value / factor,
      );
      const scales = Float32Array.from(await readTensor(scale), (code) => values[code] ?? Number.NaN);
      return { values: await readTensor(tensor), scales, groupSize, table: e2m1Table };
    },
  });
  return { ...matrix, loadedBytes };
}
