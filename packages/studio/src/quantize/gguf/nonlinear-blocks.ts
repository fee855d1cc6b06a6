import { halfBitsOf, roundToHalf } from "../formats/half.js";
import { extremeOf } from "./k-search.js";

/** kvalues_iq4nl of ggml-common.h */
const levels = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113] as const;

const middle = 256;
const last = 2 * middle - 1;
const codeAt = Uint8Array.from({ length: last + 1 }, (_, at) =>
  levels.findIndex((level, i) => i === 15 || at - middle <= level + levels[i + 1]!),
);
const squares = new Float64Array(32);
const cubes = new Float64Array(32);
const codes = new Uint8Array(32);

/** d: f16; nibbles as Q4_0. w = d levels[q], with the scale of the best of 15 roundings, large values counting by their squares */
export function encodeIq4Nl(values: Float32Array, target: DataView): void {
  const extreme = extremeOf(values);
  let bestScale = 0;
  let best = -Infinity;
  const tries = extreme === 0 ? 0 : 15;
  for (let i = 0; i < 32; i++) {
    const value = values[i]!;
    squares[i] = value * value;
    cubes[i] = squares[i]! * value;
  }
  for (let attempt = 0; attempt < tries; attempt++) {
    const inverse = (attempt - 7 + levels[0]) / extreme;
    let sumXQ = 0;
    let sumQ2 = 0;
    for (let i = 0; i < 32; i++) {
      const level = levels[nearest(inverse * values[i]!)]!;
      sumXQ += cubes[i]! * level;
      sumQ2 += squares[i]! * level * level;
    }
    if (sumQ2 > 0 && sumXQ * sumXQ > best * sumQ2) {
      bestScale = sumXQ / sumQ2;
      best = bestScale * sumXQ;
    }
  }
  const d = roundToHalf(bestScale);
  target.setUint16(0, halfBitsOf(bestScale), true);
  const inverse = d === 0 ? 0 : 1 / d;
  for (let i = 0; i < 32; i++) codes[i] = nearest(inverse * values[i]!);
  for (let i = 0; i < 16; i++) target.setUint8(2 + i, codes[i]! | (codes[i + 16]! << 4));
  for (let i = 0; i < 32; i++) values[i] = d * levels[codes[i]!]!;
}

/** Borders between levels are whole or half numbers, so that a value's place among them is that of twice the value, rounded up. */
function nearest(value: number): number {
  const at = Math.ceil(2 * value) + middle;
  return codeAt[at < 0 ? 0 : at > last ? last : at]!;
}
