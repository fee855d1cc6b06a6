import { type MatrixSource, weightTypes, type WeightType } from "@octavo/kernels";
import { SeededRandom } from "@octavo/kernels/testing/seeded-random";
import { dequantize, dequantizeGroups, isGrouped } from "@octavo/artifacts/testing/dequantize";

export interface RandomShape {
  readonly rows: number;
  readonly cols: number;
  /** Of grouped types. Default: 32, or 128 with other scales. */
  readonly groupSize?: number;
}

/** A matrix of random bytes, and its values as a plain reading gives them. `isOther`: scales and zeros that f16 does not hold. */
export function randomMatrix(
  type: WeightType,
  isOther: boolean,
  { rows, cols, groupSize = isOther ? 128 : 32 }: RandomShape,
  random = new SeededRandom(type.length + 7 * Number(isOther)),
): { readonly source: MatrixSource; readonly expected: Float32Array } {
  const { columns, bytes } = weightTypes[type];
  const data = Uint8Array.from({ length: (rows * cols * bytes) / columns }, () => random.integer(0, 255));
  const shape = { type, rows, cols, name: type };
  if (!isGrouped(type)) {
    keepFinite(type, data, bytes, random);
    return { source: { ...shape, bytes: { data } }, expected: dequantize(type, data) };
  }
  if (type === "f8_e4m3")
    for (const [i, byte] of data.entries()) if ((byte & 127) === 127) data[i] = byte - 1;
  const count = rows * Math.ceil(cols / groupSize);
  // Scales that f16 holds, or not.
  const scales = Float32Array.from({ length: count }, (_, i) =>
    isOther ? 0.01 + i / 1e4 : (1 + (i % 7)) / 64,
  );
  const hasZeros = ["int2", "int3", "int4", "uint8", "table4"].includes(type) && isOther;
  const zeros = hasZeros ? Float32Array.from({ length: count }, (_, i) => i % 4) : undefined;
  const table = type === "table4" ? random.floats(16) : undefined;
  const columnOrder =
    isOther && type === "int4"
      ? Int32Array.from(random.shuffle(Array.from({ length: cols }, (_, i) => i)))
      : undefined;
  const grouped = {
    ...shape,
    type,
    groupSize,
    ...(table !== undefined && { table }),
    ...(columnOrder !== undefined && { columnOrder }),
  };
  const bytesOf = (values: Float32Array): { data: Uint8Array } => ({ data: new Uint8Array(values.buffer) });
  return {
    source: {
      ...grouped,
      bytes: { data },
      scales: bytesOf(scales),
      ...(zeros !== undefined && { zeros: bytesOf(zeros) }),
    },
    expected: dequantizeGroups(grouped, data, { scales, zeros }),
  };
}

/** Gives random blocks scales, and random floats exponents, that are finite and of ordinary size. */
function keepFinite(type: WeightType, data: Uint8Array, bytes: number, random: SeededRandom): void {
  const view = new DataView(data.buffer);
  const half = (): number => 0x2000 + random.integer(0, 0xfff);
  for (let at = 0; at < data.length; at += bytes) {
    if (type === "f32") view.setFloat32(at, random.normal(), true);
    else if (type === "bf16") view.setUint16(at, 0x3f00 + random.integer(0, 255), true);
    else if (type === "f16") view.setUint16(at, half(), true);
    else if (type === "mxfp4") data[at] = 120 + random.integer(0, 9);
    else for (const offset of halfOffsets[type] ?? []) view.setUint16(at + offset, half(), true);
  }
}

/** Where blocks of ggml-common.h have their f16 scales. */
const halfOffsets: Readonly<Partial<Record<WeightType, readonly number[]>>> = {
  q4_0: [0],
  q4_1: [0, 2],
  q5_0: [0],
  q5_1: [0, 2],
  q8_0: [0],
  q2_k: [80, 82],
  q3_k: [108],
  q4_k: [0, 2],
  q5_k: [0, 2],
  q6_k: [208],
  iq4_nl: [0],
  iq4_xs: [0],
};
