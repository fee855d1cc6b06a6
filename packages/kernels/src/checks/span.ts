import type { BufferRef } from "../backend.js";

/** A buffer reference with its defaults filled in. */
export interface Span {
  readonly buffer: number;
  readonly column: number;
  readonly width: number;
}

/** The columns that a reference addresses. */
export function spanOf(ref: BufferRef, widths: readonly number[]): Span {
  const column = ref.column ?? 0;
  return { buffer: ref.buffer, column, width: ref.width ?? (widths[ref.buffer] ?? 0) - column };
}
