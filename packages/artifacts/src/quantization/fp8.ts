import { z } from "zod";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm } from "@octavo/text/files/bounded-json";
import type { DeclaredActivations, TensorInfo } from "../checkpoint/checkpoint.js";
import { readFloat4 } from "./float4.js";
import { floatDtypes, type QuantizedModule, readFloats } from "./quantized-module.js";
import type { QuantizationScheme } from "./quantization-scheme.js";

const settingsSchema = z.looseObject({
  weight_block_size: z.array(z.number().int().positive()).length(2).nullish(),
  quant_algo: z.string().nullish(),
  activation_scheme: z.string().nullish(),
});

/** DeepSeek-V3's tiles (arXiv 2412.19437), which its successors kept. */
const defaultBlock: readonly [rows: number, cols: number] = [128, 128];

/**
 * FP8 of the E4M3 kind: weight F8_E4M3 `[out, in]` and either weight_scale, `[1]` or `[out, 1]`, or one scale per tile:
 * weight_scale_inv `[out / 128, in / 128]`, rounded up. Despite its name the latter multiplies: w = q * s.
 * ModelOpt's NVFP4: as `float4.ts` says. Activations are left as they are, whatever is declared for them, so static `input_scale`s are not read.
 */
export const fp8: QuantizationScheme = {
  methods: ["fp8", "fbgemm_fp8", "modelopt"],
  leaves: [
    "weight",
    "weight_scale",
    "weight_scale_2",
    "weight_scale_inv",
    "input_scale",
    "output_scale",
    "activation_scale",
  ],
  open({ path, fields }) {
    const settings = parseForm(path, fields, settingsSchema);
    const algorithm = settings.quant_algo ?? "FP8";
    if (!/^FP8|NVFP4/i.test(algorithm)) {
      throw artifactUnsupported(
        path,
        `has the quant_algo ${JSON.stringify(algorithm.slice(0, 50))}; FP8 and NVFP4 are supported`,
      );
    }
    const [rows = defaultBlock[0], cols = defaultBlock[1]] = settings.weight_block_size ?? [];
    const hasTiles = settings.weight_block_size ? { groupSize: cols } : {};
    const declared = {
      dynamic: { scales: "dynamic", ...hasTiles },
      static: { scales: "static" },
    } as const satisfies Record<string, DeclaredActivations>;
    const { activation_scheme: asked } = settings;
    const activations = asked === "dynamic" || asked === "static" ? declared[asked] : undefined;
    return (module) =>
      module.find("weight")?.dtype === "U8"
        ? readFloat4(module, "weight")
        : readFloat8(module, [rows, cols], activations);
  },
};

/** A module whose weight is F8_E4M3, of this scheme or of compressed-tensors. */
export function readFloat8(
  module: QuantizedModule,
  block: readonly [rows: number, cols: number],
  activations?: DeclaredActivations,
): TensorInfo {
  const weight = module.needMatrix("weight", ["F8_E4M3"]);
  const { rows, cols } = weight;
  const leaf = module.has("weight_scale_inv") ? "weight_scale_inv" : "weight_scale";
  const scale = module.need(leaf, floatDtypes);
  const count = scale.shape.reduce((product, size) => product * size, 1);
  const [scaleRows = 1, scaleCols = 1] = scale.shape;
  const isPerRow = count === rows && scaleRows === rows;
  let tile: readonly [rows: number, cols: number] = [rows, cols];
  if (isPerRow) tile = [1, cols];
  else if (count !== 1) {
    tile = block;
    const why = `weight [${rows}, ${cols}] with one scale per tile of ${block.join(" by ")}`;
    module.expectShape(leaf, [Math.ceil(rows / tile[0]), Math.ceil(cols / tile[1])], why);
  }
  const groups = isPerRow || count === 1 ? 1 : scaleCols;
  const matrix = module.matrix("f8_e4m3", rows, cols, {
    layout: `${tile[1]}`,
    assemble: async () => ({
      values: weight.tensor,
      scales: spread(await readFloats(scale), rows, groups, tile[0]),
      groupSize: tile[1],
    }),
  });
  return activations === undefined ? matrix : { ...matrix, activations };
}

/** Scales of tiles as scales of rows. */
function spread(scales: Float32Array, rows: number, groups: number, tileRows: number): Float32Array {
  const out = new Float32Array(rows * groups);
  for (let row = 0; row < rows; row++) {
    const from = Math.floor(row / tileRows) * groups;
    out.set(scales.subarray(from, from + groups), row * groups);
  }
  return out;
}
