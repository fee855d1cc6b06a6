import type { VectorSource } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { fromHalfBits } from "./half.js";
import { bytesOf } from "./pack-matrix.js";

/** The sources' values, one after another, as f32. Throws `artifact_invalid` where one is not finite. */
export function vectorValues(owner: object, sources: readonly VectorSource[]): Float32Array {
  const values = new Float32Array(sources.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const { type, length, bytes, name } of sources) {
    const size = type === "f32" ? 4 : 2;
    const stored = bytesOf(owner, bytes)(0, length * size).slice().buffer;
    const part = values.subarray(at, at + length);
    if (type === "f32") part.set(new Float32Array(stored));
    else if (type === "f16") part.set(Float32Array.from(new Uint16Array(stored), fromHalfBits));
    else part.set(new Float32Array(Uint32Array.from(new Uint16Array(stored), (bits) => bits << 16).buffer));
    const bad = part.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0)
      throw new OctavoError(
        "artifact_invalid",
        `The tensor ${name} has a value that is not finite at index ${bad}.`,
      );
    at += length;
  }
  return values;
}
