import type { BufferRef, ExpertWeights, Matrix, Op, ProgramSpec, RecurrentOp, Vector } from "@octavo/kernels";
import type { TensorInfo } from "../checkpoint/checkpoint.js";

/**
 * A model's program before its weights are in memory: the backend's ops with plans in place of weight handles.
 * Planning reads names and shapes alone, so a checkpoint that does not fit is refused before a byte is packed.
 */
export interface ModelPlan {
  /** Widths of the activation buffers. */
  readonly buffers: readonly number[];
  readonly ops: readonly PlannedOp[];
  /** Normalised hidden state of the output rows. */
  readonly hidden: BufferRef;
  /** Undefined for models that give no text. */
  readonly head: PlannedHead | undefined;
  /** What adapters can add to, by the module's name: "model.layers.0.self_attn.q_proj". */
  readonly adaptable: ReadonlyMap<string, AdaptableModule>;
  /** Tensors of the checkpoint that the program does not read. */
  readonly unusedTensors: readonly string[];
}

/** A module's outputs among those of the linear that computes it, perhaps together with others. */
export interface AdaptableModule {
  /** The linear's `site`. */
  readonly site: number;
  /** First of its outputs among the linear's. */
  readonly column: number;
  readonly rows: number;
  readonly cols: number;
}

/** Tensors stacked along rows into one matrix. The same object in two places is packed once (tied embeddings). */
export interface MatrixPlan {
  readonly kind: "matrix";
  readonly rows: number;
  readonly cols: number;
  readonly sources: readonly TensorInfo[];
}

/** Tensors laid end to end into one f32 vector. */
export interface VectorPlan {
  readonly kind: "vector";
  readonly length: number;
  readonly sources: readonly TensorInfo[];
}

/** The matrices and vectors within an op, those of its experts included. */
export function weightsIn(value: unknown): (MatrixPlan | VectorPlan)[] {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return [];
  return isWeight(value) ? [value] : Object.values(value).flatMap(weightsIn);
}

function isWeight(value: object): value is MatrixPlan | VectorPlan {
  return "kind" in value && (value.kind === "matrix" || value.kind === "vector");
}

type PlannedField<F> = F extends Matrix
  ? MatrixPlan
  : F extends Vector
    ? VectorPlan
    : F extends readonly ExpertWeights[]
      ? readonly PlannedExpert[]
      : F extends readonly Matrix[]
        ? readonly MatrixPlan[]
        : F;
type Planned<T> = T extends unknown ? { readonly [K in keyof T]: PlannedField<T[K]> } : never;

export type PlannedExpert = Planned<ExpertWeights>;
export type PlannedOp = Planned<Op>;
/** An op that keeps state, before it is numbered. */
export type PlannedRecurrence = WithoutState<Planned<RecurrentOp>>;
type WithoutState<T> = T extends unknown ? Omit<T, "state"> : never;
export type PlannedHead = Planned<NonNullable<ProgramSpec["head"]>>;
