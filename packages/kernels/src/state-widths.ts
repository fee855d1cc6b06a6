import type { BufferRef, RecurrentOp } from "./ops.js";

/** Columns of a head's state that the kernels lay side by side. */
const tileColumns = 32;

/** An op's sizes, whether its weights are in memory or planned. */
export type RecurrentShape =
  | {
      readonly op: "convolution";
      readonly state: number;
      readonly in: BufferRef;
      readonly weight: { readonly length: number };
    }
  | (Pick<
      Extract<RecurrentOp, { op: "state_space" }>,
      "state" | "numHeads" | "numKeyHeads" | "keyDim" | "valueDim"
    > & { readonly op: "gated_delta_rule" | "state_space" });

/** Whether an op keeps state. */
export function isRecurrent(op: { readonly op: string }): op is RecurrentShape {
  return op.op === "convolution" || op.op === "gated_delta_rule" || op.op === "state_space";
}

/**
 * Floats that each recurrent op keeps of a sequence, in the order of `state`: a convolution its latest inputs, the others a matrix per
 * head, and both what `maxDraftTokens` tokens add.
 * @param bufferWidths of the program, for references without a width
 */
export function stateWidths(
  ops: readonly { readonly op: string }[],
  bufferWidths: readonly number[],
  maxDraftTokens: number,
): number[] {
  const widths: number[] = [];
  for (const op of ops) if (isRecurrent(op)) widths[op.state] = stateWidth(op, bufferWidths, maxDraftTokens);
  return widths;
}

function stateWidth(op: RecurrentShape, bufferWidths: readonly number[], maxDraftTokens: number): number {
  if (op.op === "convolution") {
    const width = op.in.width ?? (bufferWidths[op.in.buffer] ?? 0) - (op.in.column ?? 0);
    return op.weight.length - width + maxDraftTokens * width;
  }
  const { numHeads, numKeyHeads, keyDim, valueDim } = op;
  const columns = Math.ceil(valueDim / tileColumns) * tileColumns;
  return (
    numHeads * keyDim * columns + maxDraftTokens * (numKeyHeads * keyDim + numHeads * valueDim + 2 * numHeads)
  );
}
