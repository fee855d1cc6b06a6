import { OctavoError } from "@octavo/protocol/errors";
import type { TensorInfo } from "../checkpoint/checkpoint.js";

/** Rows in `count` runs, each of which holds `sizes` rows of every part in turn. */
export interface RowRuns {
  readonly count: number;
  readonly sizes: readonly number[];
}

/**
 * The rows of `parts`, part by part and run by run.
 * @throws OctavoError `artifact_unsupported` when the tensor is quantised in a way that does not let rows be read on their own
 */
export function rowsByRun(
  { recipe, ...whole }: TensorInfo,
  { count, sizes }: RowRuns,
  parts: readonly number[],
): TensorInfo[] {
  if (recipe !== undefined)
    throw new OctavoError(
      "artifact_unsupported",
      `Tensor "${whole.name}" in ${whole.path} is quantised, but has to be taken apart by rows; Octavo reads it unquantised or from GGUF.`,
    );
  const run = sizes.reduce((sum, size) => sum + size, 0);
  const rowBytes = whole.byteLength / (count * run);
  return parts.flatMap((part) =>
    Array.from({ length: count }, (_, at) => {
      const first = at * run + sizes.slice(0, part).reduce((sum, size) => sum + size, 0);
      const rows = sizes[part] ?? 0;
      return {
        ...whole,
        name: `${whole.name}[${first}:${first + rows}]`,
        shape: [rows, ...whole.shape.slice(1)],
        offset: whole.offset + first * rowBytes,
        byteLength: rows * rowBytes,
      };
    }),
  );
}
