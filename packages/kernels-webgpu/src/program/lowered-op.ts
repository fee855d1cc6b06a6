import type { BufferRef, Op, RopeSpec } from "@octavo/kernels";

export type RmsNorm = Extract<Op, { op: "rms_norm" }>;

export type FusedLinear = Extract<Op, { op: "linear" }> & {
  /** Normalises its input, which `in` then is before that. */
  readonly norm?: RmsNorm;
  /** Normalises `update` and adds it to `in` before that; the sum goes to `stream`. */
  readonly post?: RmsNorm;
  readonly update?: BufferRef;
  readonly stream?: BufferRef;
  readonly activation?: Extract<Op, { op: "gated_activation" }>["activation"];
  readonly accumulates?: boolean;
};

export type FusedAttention = Extract<Op, { op: "attention" }> & {
  /** What happens to queries and keys first, head by head. */
  readonly heads?: { readonly qNorm?: RmsNorm; readonly kNorm?: RmsNorm; readonly rope?: RopeSpec };
};

/** An op as the GPU runs it: fused with neighbours where a program allows that. */
export type LoweredOp = Exclude<Op, { op: "linear" | "attention" }> | FusedLinear | FusedAttention;

/** What runs in a step, and where its hidden rows are at the end. */
export interface LoweredProgram {
  readonly ops: readonly LoweredOp[];
  readonly hidden: BufferRef;
}
