import { type SquaredError, squaredError } from "../report/errors.js";
import { encodeGgml, type GgmlType } from "./ggml-types.js";

/** Whole rows of a tensor as blocks, and the rounding error. */
export interface EncodedStretch {
  readonly bytes: Uint8Array;
  readonly error: SquaredError;
}

/** @param importance of each column */
export function encodeStretch(
  type: GgmlType,
  values: Float32Array,
  importance?: Float32Array,
): EncodedStretch {
  const stored = values.slice();
  const bytes = encodeGgml(type, stored, importance);
  return { bytes, error: squaredError(values, stored) };
}
