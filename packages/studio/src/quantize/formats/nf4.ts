import { viewBytes, type EncodedMatrix, type OutputTensor } from "../output/output-tensor.js";

/** The quantiles of a normal distribution that QLoRA takes (Dettmers et al., arXiv 2305.14314, appendix E). */
const nf4Values = Float32Array.of(
  -1,
  -0.6961928009986877,
  -0.5250730514526367,
  -0.39491748809814453,
  -0.28444138169288635,
  -0.18477343022823334,
  -0.09105003625154495,
  0,
  0.07958029955625534,
  0.16093020141124725,
  0.24611230194568634,
  0.33791524171829224,
  0.44070982933044434,
  0.5626170039176941,
  0.7229568362236023,
  1,
);
const nf4Borders = Float32Array.from({ length: 15 }, (_, i) => (nf4Values[i]! + nf4Values[i + 1]!) / 2);

const nestedBlock = 256;

interface Nf4Settings {
  readonly blockSize: number;
  readonly doubleQuant: boolean;
  /** The type that the values are meant to be computed in. */
  readonly dtype: "f32" | "f16" | "bf16";
}

/**
 * NF4 as bitsandbytes stores it: two codes per byte of the row-major matrix, the first in the high nibble; a block's largest magnitude
 * in absmax, F32 or, with `doubleQuant`, U8 codes over blocks of 256 around their mean.
 */
export function encodeNf4(
  module: string,
  weight: Float32Array,
  rows: number,
  cols: number,
  settings: Nf4Settings,
): EncodedMatrix {
  const { blockSize } = settings;
  const blocks = (rows * cols) / blockSize;
  const exact = new Float32Array(blocks);
  for (let block = 0; block < blocks; block++) {
    let extreme = 0;
    const end = (block + 1) * blockSize;
    for (let at = block * blockSize; at < end; at++) extreme = Math.max(extreme, Math.abs(weight[at] ?? 0));
    exact[block] = extreme;
  }
  const codes = new Uint8Array((rows * cols) / 2);
  const values = new Float32Array(rows * cols);
  const { absmax, tensors, nested } = settings.doubleQuant
    ? nestedStatistics(module, exact)
    : { absmax: exact, tensors: [plainStatistics(module, exact)], nested: {} };
  for (let at = 0; at < weight.length; at++) {
    const block = Math.floor(at / blockSize);
    const extreme = exact[block] ?? 0;
    const code = nearest(nf4Borders, extreme === 0 ? 0 : (weight[at] ?? 0) / extreme);
    codes[at >> 1] = codes[at >> 1]! | (code << (at % 2 === 0 ? 4 : 0));
    values[at] = nf4Values[code]! * absmax[block]!;
  }
  const state = {
    quant_type: "nf4",
    blocksize: blockSize,
    dtype: { f32: "float32", f16: "float16", bf16: "bfloat16" }[settings.dtype],
    shape: [rows, cols],
    ...nested,
  };
  const json = Buffer.from(JSON.stringify(state));
  return {
    tensors: [
      { name: `${module}.weight`, dtype: "U8", shape: [codes.length, 1], bytes: codes },
      ...tensors,
      { name: `${module}.weight.quant_map`, dtype: "F32", shape: [16], bytes: viewBytes(nf4Values) },
      {
        name: `${module}.weight.quant_state.bitsandbytes__nf4`,
        dtype: "U8",
        shape: [json.byteLength],
        bytes: json,
      },
    ],
    values,
  };
}

function plainStatistics(module: string, absmax: Float32Array): OutputTensor {
  return {
    name: `${module}.weight.absmax`,
    dtype: "F32",
    shape: [absmax.length],
    bytes: viewBytes(absmax),
  };
}

/** absmax = map[code] * nested_absmax[block / 256] + offset */
function nestedStatistics(
  module: string,
  exact: Float32Array,
): { absmax: Float32Array; tensors: OutputTensor[]; nested: Record<string, unknown> } {
  const offset = Math.fround(exact.reduce((sum, value) => sum + value, 0) / exact.length);
  const numOuter = Math.ceil(exact.length / nestedBlock);
  const outer = new Float32Array(numOuter);
  const centred = exact.map((value) => value - offset);
  for (const [i, value] of centred.entries()) {
    const block = Math.floor(i / nestedBlock);
    outer[block] = Math.max(outer[block]!, Math.abs(value));
  }
  const map = dynamicMap();
  const borders = Float32Array.from({ length: 255 }, (_, i) => (map[i]! + map[i + 1]!) / 2);
  const codes = new Uint8Array(exact.length);
  const absmax = new Float32Array(exact.length);
  for (const [i, value] of centred.entries()) {
    const extreme = outer[Math.floor(i / nestedBlock)]!;
    const code = nearest(borders, extreme === 0 ? 0 : value / extreme);
    codes[i] = code;
    absmax[i] = Math.fround(map[code]! * extreme) + offset;
  }
  const name = (leaf: string): string => `${module}.weight.${leaf}`;
  return {
    absmax,
    tensors: [
      { name: name("absmax"), dtype: "U8", shape: [codes.length], bytes: codes },
      { name: name("nested_absmax"), dtype: "F32", shape: [numOuter], bytes: viewBytes(outer) },
      { name: name("nested_quant_map"), dtype: "F32", shape: [256], bytes: viewBytes(map) },
    ],
    nested: { nested_blocksize: nestedBlock, nested_dtype: "float32", nested_offset: offset },
  };
}

/**
 * bitsandbytes' signed 8-bit map: in each of seven decades from 1e-6 to 1, the middles of 2^i equal parts of [0.1, 1], with zero and
 * one (Dettmers, arXiv 1511.04561; create_dynamic_map).
 */
export function dynamicMap(): Float32Array {
  const values: number[] = [0, 1];
  for (let decade = 0; decade < 7; decade++) {
    const parts = 2 ** decade;
    for (let part = 0; part < parts; part++) {
      const middle = 0.1 + (0.9 * (part + 0.5)) / parts;
      values.push(middle * 10 ** (decade - 6), -middle * 10 ** (decade - 6));
    }
  }
  return Float32Array.from(values).toSorted();
}

/** Index of the interval that holds the value, between ascending borders. */
function nearest(borders: Float32Array, value: number): number {
  let low = 0;
  let high = borders.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (value > borders[middle]!) low = middle + 1;
    else high = middle;
  }
  return low;
}
