import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { type MatrixPlan, type ModelPlan, type PlannedOp } from "@octavo/artifacts/program/model-plan";
import type { BufferRef } from "@octavo/kernels";
import { layerOf } from "../source/source-model.js";

type LinearOp = Extract<PlannedOp, { op: "linear" }>;
export type ExpertsOp = Extract<PlannedOp, { op: "experts" }>;

/** Consecutive ops of a layer that run as one program over one wide buffer, in which no linear's input is overwritten. */
export interface LayerStage {
  /** With buffer 0 throughout. */
  readonly ops: readonly PlannedOp[];
  /** Columns of the wide buffer. */
  readonly width: number;
  /** What the stage reads of earlier ones, by the plan's buffer. */
  readonly inputs: readonly Slice[];
  /** What later stages and layers read. */
  readonly outputs: readonly Slice[];
  readonly linears: readonly StageLinear[];
  /** Those of `ops` that are mixtures: what their matrices multiply is found by routing as they do. */
  readonly mixtures: readonly ExpertsOp[];
}

/** Columns of the wide buffer that hold one of the plan's buffers. */
interface Slice {
  readonly buffer: number;
  readonly column: number;
  readonly width: number;
}

export interface StageLinear {
  readonly weight: MatrixPlan;
  /** Column of its input in the wide buffer. */
  readonly column: number;
  readonly width: number;
}

/**
 * The ops of one layer as stages. Buffers that a plan uses again and again get columns of their own each time they are written as a
 * whole, so that every linear's input is still there when the stage has run.
 * @throws OctavoError `artifact_unsupported` for mixtures whose experts are no plain gated MLPs
 */
export function layerStages(plan: ModelPlan, layer: number, path: string): LayerStage[] {
  const own = opsOfLayer(plan, layer);
  const stages: LayerStage[] = [];
  let rest = own;
  while (rest.length > 0) {
    const builder = new StageBuilder(plan.buffers, path);
    const length = builder.take(rest);
    const after = [...rest.slice(length), ...plan.ops.slice(plan.ops.indexOf(own.at(-1)!) + 1)];
    stages.push(builder.finish(after));
    rest = rest.slice(length);
  }
  return stages;
}

/** From the first op with a weight of the layer to the first with one of another layer, or of none. */
function opsOfLayer(plan: ModelPlan, layer: number): readonly PlannedOp[] {
  const place = (op: PlannedOp): number | "outside" | undefined => {
    if (op.op === "gather") return "outside";
    if (!("weight" in op) || op.weight.sources.length === 0) return undefined;
    return layerOf(op.weight.sources[0]?.name ?? "") ?? "outside";
  };
  const first = plan.ops.findIndex((op) => place(op) === layer);
  const tail = plan.ops.slice(first).findIndex((op) => ![layer, undefined].includes(place(op) as number));
  return plan.ops.slice(first, tail < 0 ? undefined : first + tail);
}

interface Access {
  readonly reads: readonly BufferRef[];
  /** Written without regard to what was there. */
  readonly writes: readonly BufferRef[];
  /** Read and written in place. */
  readonly changes: readonly BufferRef[];
}

class StageBuilder {
  readonly #widths: readonly number[];
  readonly #path: string;
  /** Where each of the plan's buffers lies now. */
  readonly #places = new Map<number, number>();
  readonly #inputs: Slice[] = [];
  readonly #ops: PlannedOp[] = [];
  readonly #linears: StageLinear[] = [];
  #width = 0;

  constructor(widths: readonly number[], path: string) {
    this.#widths = widths;
    this.#path = path;
  }

  /** Takes ops up to one that would change a linear's input in place; says how many. */
  take(ops: readonly PlannedOp[]): number {
    for (const [index, op] of ops.entries()) {
      const { reads, writes, changes } = this.#accessOf(op);
      if (changes.some((ref) => this.#isLookedAt(ref))) return index;
      for (const ref of [...reads, ...changes]) this.#ensure(ref.buffer);
      const before = new Map(this.#places);
      for (const ref of writes)
        if (this.#isWhole(ref) || !this.#places.has(ref.buffer)) this.#place(ref.buffer);
      this.#ops.push(this.#moved(op, before));
      if (op.op === "linear") this.#look(op, before);
    }
    return ops.length;
  }

  finish(after: readonly PlannedOp[]): LayerStage {
    const outputs = [...this.#places]
      .filter(([buffer]) => this.#isReadFirst(buffer, after))
      .map(([buffer, column]) => ({ buffer, column, width: this.#widths[buffer]! }));
    const mixtures = this.#ops.filter((op) => op.op === "experts");
    const [ops, linears, inputs] = [this.#ops, this.#linears, this.#inputs];
    return { ops, width: this.#width, inputs, outputs, linears, mixtures };
  }

  #accessOf(op: PlannedOp): Access {
    switch (op.op) {
      case "rms_norm":
      case "layer_norm":
        return { reads: [op.in], writes: [op.out], changes: op.residual === undefined ? [] : [op.residual] };
      case "linear":
      case "gated_activation":
      case "round_e4m3":
        return { reads: [op.in], writes: [op.out], changes: [] };
      case "attention":
        if (op.k === undefined)
          throw artifactUnsupported(
            this.#path,
            "has layers that attend to another's keys and values, which cannot run alone; choose a method without calibration",
          );
        return { reads: [op.q, op.k, ...(op.v === undefined ? [] : [op.v])], writes: [op.out], changes: [] };
      case "rope":
      case "scale":
      case "clamp":
      case "activation":
        return { reads: [], writes: [], changes: [op.on] };
      case "add":
        return { reads: [op.in], writes: [], changes: [op.out] };
      case "sigmoid_gate":
        return { reads: [op.in], writes: [], changes: [op.on] };
      case "experts":
        this.#checkExperts(op);
        return { reads: [op.in, op.scores], writes: [op.out], changes: [] };
      case "gate":
      case "head_linear":
      case "split":
      case "convolution":
      case "gated_delta_rule":
      case "state_space":
      case "embedding":
      case "exchange":
      case "add_given":
      case "receive":
      case "send":
      case "gather":
        throw artifactUnsupported(
          this.#path,
          `has layers with ${op.op}, whose inputs are not recorded; choose a method without calibration`,
        );
    }
  }

  #checkExperts({ activation, experts, weighsInput }: ExpertsOp): void {
    const hasBiases = experts.some(({ gateBias, upBias, downBias }) => gateBias ?? upBias ?? downBias);
    if (activation === "silu" && !hasBiases && weighsInput !== true) return;
    const kind = hasBiases ? "biases" : weighsInput === true ? "weights on what they read" : activation;
    throw artifactUnsupported(
      this.#path,
      `has experts with ${kind}, whose inputs are not recorded; choose a method without calibration`,
    );
  }

  /** The op over the wide buffer: what it reads where it was, what it writes where it goes. */
  #moved(op: PlannedOp, before: ReadonlyMap<number, number>): PlannedOp {
    const at = (ref: BufferRef, places: ReadonlyMap<number, number>): BufferRef => ({
      buffer: 0,
      column: (places.get(ref.buffer) ?? 0) + (ref.column ?? 0),
      width: ref.width ?? this.#widths[ref.buffer]! - (ref.column ?? 0),
    });
    switch (op.op) {
      case "rms_norm":
      case "layer_norm":
        return {
          ...op,
          in: at(op.in, before),
          out: at(op.out, this.#places),
          ...(op.residual !== undefined && { residual: at(op.residual, before) }),
        };
      case "linear":
      case "gated_activation":
      case "round_e4m3":
        return { ...op, in: at(op.in, before), out: at(op.out, this.#places) };
      case "attention":
        return {
          ...op,
          q: at(op.q, before),
          ...(op.k !== undefined && { k: at(op.k, before) }),
          ...(op.v !== undefined && { v: at(op.v, before) }),
          out: at(op.out, this.#places),
          layer: 0,
        };
      case "rope":
      case "scale":
      case "clamp":
      case "activation":
        return { ...op, on: at(op.on, before) };
      case "add":
        return { ...op, in: at(op.in, before), out: at(op.out, before) };
      case "sigmoid_gate":
        return { ...op, in: at(op.in, before), on: at(op.on, before) };
      case "experts":
        return {
          ...op,
          in: at(op.in, before),
          scores: at(op.scores, before),
          out: at(op.out, this.#places),
        };
      case "gate":
      case "head_linear":
      case "split":
      case "convolution":
      case "gated_delta_rule":
      case "state_space":
      case "embedding":
      case "exchange":
      case "add_given":
      case "receive":
      case "send":
      case "gather":
        return op;
    }
  }

  #look(op: LinearOp, before: ReadonlyMap<number, number>): void {
    const column = (before.get(op.in.buffer) ?? 0) + (op.in.column ?? 0);
    this.#linears.push({ weight: op.weight, column, width: op.weight.cols });
  }

  #isLookedAt(ref: BufferRef): boolean {
    const place = this.#places.get(ref.buffer);
    if (place === undefined) return false;
    const end = place + this.#widths[ref.buffer]!;
    return this.#linears.some(({ column }) => column >= place && column < end);
  }

  #isWhole(ref: BufferRef): boolean {
    const width = this.#widths[ref.buffer]!;
    return (ref.column ?? 0) === 0 && (ref.width ?? width) === width;
  }

  /** A buffer that is read before anything here wrote it comes from outside. */
  #ensure(buffer: number): void {
    if (this.#places.has(buffer)) return;
    this.#place(buffer);
    this.#inputs.push({ buffer, column: this.#places.get(buffer)!, width: this.#widths[buffer]! });
  }

  #place(buffer: number): void {
    this.#places.set(buffer, this.#width);
    this.#width += this.#widths[buffer]!;
  }

  #isReadFirst(buffer: number, after: readonly PlannedOp[]): boolean {
    for (const op of after) {
      if (op.op === "gather") return op.in.buffer === buffer;
      const { reads, writes, changes } = this.#accessOf(op);
      if ([...reads, ...changes].some((ref) => ref.buffer === buffer)) return true;
      if (writes.some((ref) => ref.buffer === buffer)) return false;
    }
    return false;
  }
}
