import type { BufferRef } from "@octavo/kernels";
import { type Span, spanOf } from "@octavo/kernels/checks/span";
import { rankPart } from "@octavo/kernels/ranks";
import { OctavoError } from "@octavo/protocol/errors";
import type { MatrixPlan, ModelPlan, PlannedExpert, PlannedOp, VectorPlan } from "../model-plan.js";
import { type LocalBuffer, localBuffers, spansOf } from "./local-buffers.js";
import { matrixRows, type OwnRows, vectorElements } from "./weight-rows.js";

/** Fewer rows than this for each rank are not worth an exchange: every rank computes them all. */
const FEWEST_ROWS = 8;

type OpOf<Name extends PlannedOp["op"]> = Extract<PlannedOp, { op: Name }>;

/**
 * The parts of a model that `count` ranks run together (tensor parallelism). Every product is divided by its outputs, never along its
 * sums, and ranks hand each other columns: each value is computed by one of them, as one rank alone would, so that the bits are the same
 * for any number of ranks. Heads are divided by heads of keys and values.
 * @throws OctavoError `invalid_option` for heads that `count` does not divide
 */
export function rankPlans(plan: ModelPlan, count: number): ModelPlan[] {
  if (count === 1) return [plan];
  return Array.from({ length: count }, (_, rank) => new RankPlanner(plan, count, rank).plan());
}

/** Columns that only their owners hold so far. */
interface Pending {
  readonly span: Span;
  readonly from: "parts" | "first";
}

class RankPlanner {
  readonly #plan: ModelPlan;
  readonly #count: number;
  readonly #rank: number;
  readonly #local: ReadonlyMap<number, LocalBuffer>;
  readonly #scores: ReadonlySet<number>;
  readonly #ops: PlannedOp[] = [];
  #pending: readonly Pending[] = [];
  readonly #rows = new Map<MatrixPlan, Map<string, MatrixPlan>>();

  constructor(plan: ModelPlan, count: number, rank: number) {
    this.#plan = plan;
    this.#count = count;
    this.#rank = rank;
    this.#local = localBuffers(plan, count, rank);
    this.#scores = new Set(plan.ops.flatMap((op) => (op.op === "experts" ? [op.scores.buffer] : [])));
  }

  plan(): ModelPlan {
    for (const op of this.#plan.ops) this.#divide(op);
    this.#receive([this.#plan.hidden.buffer]);
    const { head } = this.#plan;
    const part = head && this.#part(head.weight.rows);
    return {
      ...this.#plan,
      buffers: this.#plan.buffers.map((width, buffer) => this.#local.get(buffer)?.width ?? width),
      ops: this.#ops,
      head: head &&
        part && {
          ...head,
          weight: this.#matrix(head.weight, [part]),
          ...(head.bias !== undefined && { bias: vectorElements(head.bias, [part]) }),
          allRows: head.weight.rows,
        },
      adaptable: new Map(),
    };
  }

  #divide(op: PlannedOp): void {
    switch (op.op) {
      case "embedding":
        return this.#embedding(op);
      case "linear":
        return this.#linear(op);
      case "attention":
        return this.#attention(op);
      case "gated_activation":
        return this.#gatedActivation(op);
      case "experts":
        return this.#experts(op);
      case "activation":
      case "scale":
      case "clamp":
        return this.#columnByColumn(op);
      case "rms_norm":
      case "rope":
        return this.#headByHead(op);
      case "add":
      case "add_given":
      case "convolution":
      case "exchange":
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
        this.#receive(this.#buffersOf(op));
        this.#ops.push(op);
    }
  }

  /** The first rank alone keeps the table of tokens. */
  #embedding(op: OpOf<"embedding">): void {
    const isTable = op.of === undefined;
    if (!isTable || this.#rank === 0) this.#ops.push(op);
    if (isTable) this.#pending = [...this.#pending, { span: this.#span(op.out), from: "first" }];
  }

  #linear(linear: OpOf<"linear">): void {
    const { site: _site, ...op } = linear;
    this.#receive([op.in.buffer]);
    const out = this.#span(op.out);
    const local = this.#local.get(out.buffer);
    if (local !== undefined) {
      this.#ops.push({ ...op, ...this.#weights(op, local.ranges(out)), out: local.own(out) });
      return;
    }
    this.#receive([out.buffer]);
    if (out.width < FEWEST_ROWS * this.#count || this.#scores.has(out.buffer)) {
      this.#ops.push(op);
      return;
    }
    const part = this.#part(out.width);
    this.#ops.push({ ...op, ...this.#weights(op, [part]), out: this.#own(out) });
  }

  #attention(op: OpOf<"attention">): void {
    const { numHeads, numKvHeads, headDim, sinks, valueDim } = op;
    if (valueDim !== undefined) {
      throw new OctavoError(
        "invalid_option",
        `tensor_parallel_size is ${this.#count}, but the model has latent attention, whose cache cannot be divided by heads.`,
        { param: "tensor_parallel_size" },
      );
    }
    for (const [what, number] of [
      ["attention heads", numHeads],
      ["heads of keys and values", numKvHeads],
    ] as const) {
      if (number % this.#count === 0) continue;
      throw new OctavoError(
        "invalid_option",
        `tensor_parallel_size is ${this.#count}, which does not divide the model's ${number} ${what}.`,
        { param: "tensor_parallel_size" },
      );
    }
    const heads = this.#part(numHeads);
    const own = (ref: BufferRef, numOwners: number): Span => {
      const span = this.#span(ref);
      const local = this.#local.get(span.buffer);
      if (local !== undefined) return local.own(span);
      this.#receive([span.buffer]);
      const { first, width } = this.#part(numOwners);
      return { ...span, column: span.column + first * headDim, width: width * headDim };
    };
    this.#receive([op.out.buffer]);
    this.#ops.push({
      ...op,
      q: own(op.q, numHeads),
      ...(op.k !== undefined && { k: own(op.k, numKvHeads) }),
      ...(op.v !== undefined && { v: own(op.v, numKvHeads) }),
      out: this.#own(this.#span(op.out)),
      numHeads: heads.width,
      numKvHeads: numKvHeads / this.#count,
      ...(sinks !== undefined && { sinks: vectorElements(sinks, [heads]) }),
    });
  }

  #gatedActivation(op: OpOf<"gated_activation">): void {
    const input = this.#span(op.in);
    const local = this.#local.get(input.buffer);
    this.#receive(local === undefined ? this.#buffersOf(op) : [op.out.buffer]);
    const divided = local && { ...op, in: local.own(input), out: this.#own(this.#span(op.out)) };
    this.#ops.push(divided ?? op);
  }

  #experts(op: OpOf<"experts">): void {
    this.#receive(this.#buffersOf(op));
    const inner = op.experts[0]?.down.cols ?? 0;
    const out = this.#span(op.out);
    const [within, outputs] = [this.#part(inner), this.#part(out.width)];
    const isStacked = op.isGated !== false;
    const experts = op.experts.map((expert): PlannedExpert => {
      const { gate, up, down, gateBias, upBias, downBias } = expert;
      const both =
        up === undefined && isStacked
          ? [within, { first: inner + within.first, width: within.width }]
          : [within];
      return {
        gate: this.#matrix(gate, both),
        down: this.#matrix(down, [outputs]),
        ...(up !== undefined && { up: this.#matrix(up, [within]) }),
        ...(gateBias !== undefined && { gateBias: vectorElements(gateBias, both) }),
        ...(upBias !== undefined && { upBias: vectorElements(upBias, [within]) }),
        ...(downBias !== undefined && { downBias: vectorElements(downBias, [outputs]) }),
      };
    });
    this.#ops.push({ ...op, experts, isSplit: true, out: this.#own(out) });
  }

  /** Owners do it to their columns before others get them. */
  #columnByColumn(op: OpOf<"activation" | "scale" | "clamp">): void {
    const on = this.#span(op.on);
    const local = this.#local.get(on.buffer);
    const isOwn = this.#pending.some(({ span, from }) => from === "parts" && same(span, on));
    if (local === undefined && !isOwn) this.#receive([on.buffer]);
    this.#ops.push({ ...op, on: local?.own(on) ?? (isOwn ? this.#partOf(on) : on) });
  }

  #headByHead(op: OpOf<"rms_norm" | "rope">): void {
    const on = this.#span(op.op === "rope" ? op.on : op.in);
    const local = this.#local.get(on.buffer);
    if (local === undefined) {
      this.#receive(this.#buffersOf(op));
      this.#ops.push(op);
      return;
    }
    const own = local.own(on);
    const out = op.op === "rope" ? own : local.own(this.#span(op.out));
    if (op.op === "rope") {
      this.#ops.push({ ...op, on: own });
      return;
    }
    const isWhole = op.weight.length === on.width && op.groupSize !== on.width;
    const weight = isWhole ? vectorElements(op.weight, local.ranges(on)) : op.weight;
    this.#ops.push({ ...op, in: own, out, weight });
  }

  #weights(
    { weight, bias }: { readonly weight: MatrixPlan; readonly bias?: VectorPlan },
    ranges: readonly OwnRows[],
  ): { readonly weight: MatrixPlan; readonly bias?: VectorPlan } {
    return {
      weight: this.#matrix(weight, ranges),
      ...(bias !== undefined && { bias: vectorElements(bias, ranges) }),
    };
  }

  /** The same object for the same rows, so that they are packed once. */
  #matrix(plan: MatrixPlan, ranges: readonly OwnRows[]): MatrixPlan {
    const known = this.#rows.get(plan) ?? new Map<string, MatrixPlan>();
    this.#rows.set(plan, known);
    const key = JSON.stringify(ranges);
    const rows = known.get(key) ?? matrixRows(plan, ranges);
    known.set(key, rows);
    return rows;
  }

  /** Before an op reads or writes them: what others have of these buffers. */
  #receive(buffers: readonly number[]): void {
    const wanted = ({ span }: Pending): boolean => buffers.includes(span.buffer);
    for (const { span, from } of this.#pending.filter(wanted))
      this.#ops.push({ op: "exchange", on: span, from });
    this.#pending = this.#pending.filter((pending) => !wanted(pending));
  }

  /** This rank's columns of a span that others get later. */
  #own(span: Span): Span {
    this.#pending = [...this.#pending, { span, from: "parts" }];
    return this.#partOf(span);
  }

  #partOf(span: Span): Span {
    const { first, width } = this.#part(span.width);
    return { ...span, column: span.column + first, width };
  }

  #part(total: number): OwnRows {
    return rankPart(total, this.#count, this.#rank);
  }

  #span(ref: BufferRef): Span {
    return spanOf(ref, this.#plan.buffers);
  }

  #buffersOf(op: PlannedOp): number[] {
    return spansOf(op, this.#plan.buffers).map(({ buffer }) => buffer);
  }
}

function same(a: Span, b: Span): boolean {
  return a.buffer === b.buffer && a.column === b.column && a.width === b.width;
}
