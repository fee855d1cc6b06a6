import { halfBitsOf, roundToHalf } from "../formats/half.js";
import { extremeOf } from "./k-search.js";

/** kvalues_iq4nl of ggml-common.h */
const levels = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113] as const;

/** d: f16; nibbles as Q4_0. w = d levels[q], with the scale of the best of 15 roundings, large values counting by their squares */
export function encodeIq4Nl(values: Float32Array, target: DataView): void {
  const extreme = extremeOf(values);
  let bestScale = 0;
  let best = -Infinity;
  const tries = extreme === 0 ? 0 : 15;
  for (let attempt = 0; attempt < tries; attempt++) {
    const inverse = (attempt - 7 + levels[0]) / extreme;
    let sumXQ = 0;
    let sumQ2 = 0;
    for (const value of values) {
      const level = levels[nearest(inverse * value)]!;
      sumXQ += value ** 3 * level;
      sumQ2 += (value * level) ** 2;
    }
    if (sumQ2 > 0 && sumXQ * sumXQ > best * sumQ2) {
      bestScale = sumXQ / sumQ2;
      best = bestScale * sumXQ;
    }
  }
  const d = roundToHalf(bestScale);
  target.setUint16(0, halfBitsOf(bestScale), true);
  const inverse = d === 0 ? 0 : 1 / d;
  const codes = Array.from(values, (value) => nearest(inverse * value));
  for (let i = 0; i < 16; i++) target.setUint8(2 + i, codes[i]! | (codes[i + 16]! << 4));
  for (const [i, code] of codes.entries()) values[i] = d * levels[code]!;
}

function nearest(value: number): number {
  let code = 0;
  while (code < 15 && value > (levels[code]! + levels[code + 1]!) / 2) code++;
  return code;
}
