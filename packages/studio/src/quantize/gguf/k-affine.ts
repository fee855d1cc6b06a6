import { halfBitsOf, roundToHalf } from "../formats/half.js";
import { type AffineSearch, fitAffine, importanceWeights } from "./k-search.js";

const searches = {
  4: { most: 15, first: -1, steps: 20, absolute: false },
  5: { most: 31, first: -0.5, steps: 15, absolute: false },
} as const satisfies Record<number, AffineSearch>;

/** d, dmin: f16; eight 6-bit scales and minima in 12 bytes; 128 bytes of nibbles, 32 per pair of sub-blocks. */
export function encodeQ4K(values: Float32Array, target: DataView, importance?: Float32Array): void {
  encode(values, target, 4, importance);
}

/** As Q4_K, with 32 bytes of fifth bits before the nibbles. */
export function encodeQ5K(values: Float32Array, target: DataView, importance?: Float32Array): void {
  encode(values, target, 5, importance);
}

const weights = new Float64Array(32);
const scales = new Float64Array(8);
const minima = new Float64Array(8);
const codes = new Uint8Array(256);
const fit = { scale: 0, minimum: 0 };

/** w = d scale q - dmin min, over sub-blocks of 32. Larger values count for more: by their distance from their mean square. */
function encode(values: Float32Array, target: DataView, bits: 4 | 5, importance?: Float32Array): void {
  const search = searches[bits];
  const important = importance && importanceWeights(values, importance);
  for (let sub = 0; sub < 8; sub++) {
    const part = values.subarray(sub * 32, sub * 32 + 32);
    fitAffine(part, important?.subarray(sub * 32, sub * 32 + 32) ?? ownWeights(part), search, fit);
    scales[sub] = fit.scale;
    minima[sub] = fit.minimum;
  }
  const scaleUnit = Math.max(...scales) / 63;
  const minimumUnit = Math.max(...minima) / 63;
  for (let sub = 0; sub < 8; sub++) {
    scales[sub] = scaleUnit > 0 ? Math.min(63, Math.round(scales[sub]! / scaleUnit)) : 0;
    minima[sub] = minimumUnit > 0 ? Math.min(63, Math.round(minima[sub]! / minimumUnit)) : 0;
  }
  target.setUint16(0, halfBitsOf(scaleUnit), true);
  target.setUint16(2, halfBitsOf(minimumUnit), true);
  writeSixBits(target);
  const d = roundToHalf(scaleUnit);
  const dmin = roundToHalf(minimumUnit);
  for (let i = 0; i < 256; i++) {
    const scale = d * scales[i >> 5]!;
    const minimum = dmin * minima[i >> 5]!;
    const code =
      scale === 0 ? 0 : Math.min(search.most, Math.max(0, Math.round((values[i]! + minimum) / scale)));
    codes[i] = code;
    values[i] = scale * code - minimum;
  }
  for (let pair = 0; pair < 4; pair++) {
    for (let i = 0; i < 32; i++) {
      const low = codes[pair * 64 + i]!;
      const high = codes[pair * 64 + 32 + i]!;
      const at = pair * 32 + i;
      target.setUint8((bits === 4 ? 16 : 48) + at, (low & 15) | ((high & 15) << 4));
      if (bits === 5) {
        const fifth = ((low >> 4) << (2 * pair)) | ((high >> 4) << (2 * pair + 1));
        target.setUint8(16 + i, target.getUint8(16 + i) | fifth);
      }
    }
  }
}

function ownWeights(part: Float32Array): Float64Array {
  let squares = 0;
  for (let i = 0; i < 32; i++) squares += part[i]! * part[i]!;
  const typical = Math.sqrt(squares / 32);
  for (let i = 0; i < 32; i++) weights[i] = typical + Math.abs(part[i]!);
  return weights;
}

/** Sub-blocks 0 to 3 have six bits of a byte each; the upper two bits of those bytes belong to sub-blocks 4 to 7. */
function writeSixBits(target: DataView): void {
  for (let i = 0; i < 4; i++) {
    const [scale, laterScale] = [scales[i]!, scales[i + 4]!];
    const [minimum, laterMinimum] = [minima[i]!, minima[i + 4]!];
    target.setUint8(4 + i, scale | ((laterScale >> 4) << 6));
    target.setUint8(8 + i, minimum | ((laterMinimum >> 4) << 6));
    target.setUint8(12 + i, (laterScale & 15) | ((laterMinimum & 15) << 4));
  }
}
