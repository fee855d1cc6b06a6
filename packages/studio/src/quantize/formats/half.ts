import { convertFloats, halfBits, singleBitsOfHalf } from "@octavo/artifacts/program/float-conversion";
import { viewBytes } from "../output/output-tensor.js";

/** Floats in another type, and what is left of them. */
export function store(
  values: Float32Array,
  type: "f32" | "f16" | "bf16",
): { readonly bytes: Uint8Array; readonly values: Float32Array } {
  const bytes = convertFloats(viewBytes(values), "f32", type);
  const single = convertFloats(bytes, type, "f32");
  return { bytes, values: new Float32Array(single.buffer, single.byteOffset, single.byteLength / 4) };
}

const scratch = new Float32Array(1);
const scratchBits = new Uint32Array(scratch.buffer);

/** The bits of the nearest f16. */
export function halfBitsOf(value: number): number {
  scratch[0] = value;
  return halfBits(scratchBits[0]!);
}

/** The nearest value that f16 has. */
export function roundToHalf(value: number): number {
  scratchBits[0] = singleBitsOfHalf(halfBitsOf(value));
  return scratch[0]!;
}

/** The integer nearest to a value, ties to even, as the reference implementations round. */
export function roundEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
}
