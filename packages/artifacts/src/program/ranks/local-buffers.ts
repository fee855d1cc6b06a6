import type { BufferRef } from "@octavo/kernels";
import { type Span, spanOf } from "@octavo/kernels/checks/span";
import { rankPart } from "@octavo/kernels/ranks";
import type { ModelPlan, PlannedOp } from "../model-plan.js";
import type { OwnRows } from "./weight-rows.js";

/** The buffers that an op reads or writes. */
export function spansOf(op: PlannedOp, buffers: readonly number[]): Span[] {
  return Object.values(op).flatMap((value: unknown) =>
    typeof value === "object" && value !== null && "buffer" in value
      ? [spanOf(value as BufferRef, buffers)]
      : [],
  );
}

/** A run of columns whose parts the ranks keep for themselves: heads of a kind, or one half of a gated product. */
interface Segment {
  readonly first: number;
  readonly width: number;
  /** This rank's part, counted from the segment's first column. */
  readonly part: OwnRows;
}

/** A buffer of which a rank holds its own columns alone, without gaps. */
export class LocalBuffer {
  readonly #segments: readonly Segment[];

  constructor(segments: readonly Segment[]) {
    this.#segments = segments;
  }

  get width(): number {
    return this.#segments.reduce((sum, { part }) => sum + part.width, 0);
  }

  /** Whether the span is made of whole segments. */
  fits({ column, width }: Span): boolean {
    return this.#within(column, width).reduce((sum, segment) => sum + segment.width, 0) === width;
  }

  /** Where the rank keeps its part of the span. */
  own({ buffer, column, width }: Span): Span {
    const before = this.#within(0, column);
    const inside = this.#within(column, width);
    const sum = (segments: readonly Segment[]): number =>
      segments.reduce((columns, { part }) => columns + part.width, 0);
    return { buffer, column: sum(before), width: sum(inside) };
  }

  /** The rank's columns of the span, counted from its first. */
  ranges({ column, width }: Span): OwnRows[] {
    return this.#within(column, width).map(({ first, part }) => ({
      first: first - column + part.first,
      width: part.width,
    }));
  }

  #within(column: number, width: number): readonly Segment[] {
    return this.#segments.filter(({ first, width: own }) => first >= column && first + own <= column + width);
  }
}

/**
 * Buffers of which no rank needs what others compute: queries, keys and values of its heads, and the two halves of a gated product. What
 * happens between the projection and the op that reads them must be done column by column or head by head.
 */
export function localBuffers(plan: ModelPlan, count: number, rank: number): Map<number, LocalBuffer> {
  const found = new Map<number, LocalBuffer>();
  for (const [buffer, width] of plan.buffers.entries()) {
    const ops = plan.ops.filter((op) => spansOf(op, plan.buffers).some((span) => span.buffer === buffer));
    const local = headsOf(ops, buffer, plan, count, rank) ?? halvesOf(ops, buffer, width, count, rank);
    if (local === undefined || plan.hidden.buffer === buffer) continue;
    if (ops.every((op) => staysWithin(op, buffer, local, plan.buffers))) found.set(buffer, local);
  }
  return found;
}

function headsOf(
  ops: readonly PlannedOp[],
  buffer: number,
  { buffers }: ModelPlan,
  count: number,
  rank: number,
): LocalBuffer | undefined {
  // Ops of layers that keep nothing have queries alone.
  const op = ops.find((one) => one.op === "attention" && one.k !== undefined);
  if (op?.op !== "attention" || op.k === undefined || op.v === undefined) return undefined;
  const spans = [op.q, op.k, op.v].map((ref) => spanOf(ref, buffers));
  if (spans.some((span) => span.buffer !== buffer)) return undefined;
  return new LocalBuffer(
    spans
      .toSorted((a, b) => a.column - b.column)
      .map(({ column, width }) => ({ first: column, width, part: rankPart(width, count, rank) })),
  );
}

function halvesOf(
  ops: readonly PlannedOp[],
  buffer: number,
  width: number,
  count: number,
  rank: number,
): LocalBuffer | undefined {
  if (!ops.some((op) => op.op === "gated_activation" && op.in.buffer === buffer)) return undefined;
  const part = rankPart(width / 2, count, rank);
  return new LocalBuffer([0, width / 2].map((first) => ({ first, width: width / 2, part })));
}

function staysWithin(op: PlannedOp, buffer: number, local: LocalBuffer, buffers: readonly number[]): boolean {
  const spans = spansOf(op, buffers);
  if (!spans.every((span) => span.buffer !== buffer || local.fits(span))) return false;
  switch (op.op) {
    case "linear":
      return op.in.buffer !== buffer;
    case "rms_norm":
      return (
        op.groupSize !== undefined &&
        op.residual === undefined &&
        spans.every((span) => span.buffer === buffer)
      );
    case "attention":
      return op.out.buffer !== buffer;
    case "gated_activation": {
      const [input] = spans;
      return op.out.buffer !== buffer && input?.width === buffers[buffer];
    }
    case "rope":
    case "scale":
    case "clamp":
      return true;
    case "activation":
    case "add":
    case "add_given":
    case "convolution":
    case "embedding":
    case "exchange":
    case "experts":
    case "gate":
    case "gated_delta_rule":
    case "gather":
    case "head_linear":
    case "layer_norm":
    case "receive":
    case "round_e4m3":
    case "send":
    case "sigmoid_gate":
    case "split":
    case "state_space":
      return false;
  }
}
