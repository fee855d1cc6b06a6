import {
  type Backend,
  type ExpertWeights,
  type Matrix,
  type Op,
  type Program,
  type ProgramSpec,
  stateWidths,
  type Vacating,
  type Vector,
} from "@octavo/kernels";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import type {
  AdaptableModule,
  MatrixPlan,
  ModelPlan,
  PlannedExpert,
  PlannedOp,
  VectorPlan,
} from "@octavo/artifacts/program/model-plan";
import { withDeclaredActivations } from "@octavo/artifacts/program/declared-activations";
import { type StagePlan, stagePlans } from "@octavo/artifacts/program/ranks/stage-plans";
import { planModel } from "@octavo/artifacts/program/registry";
import { OctavoError } from "@octavo/protocol/errors";
import { type PackingOptions, WeightPacker } from "./weight-packer.js";

export interface LoadModelOptions extends PackingOptions {
  /** Tokens per step, at most; sizes the activation buffers. */
  readonly maxTokens: number;
  /** Tokens of the longest sequence; absent: as many as the model takes. */
  readonly maxModelLen?: number;
  /** The stage to load; default all of the model. */
  readonly stage?: StagePlace | undefined;
  /** Plans the program; default as the model's family does. */
  readonly plan?: typeof planModel | undefined;
  /** Whether linears read what their matrices declare, rounded activations, or exact ones; default exact. */
  readonly activations?: "exact" | "declared" | undefined;
}

/** Which stage of how many; the last one samples. */
export interface StagePlace {
  readonly index: number;
  readonly count: number;
}

/** A compiled program with the weights it owns. */
export interface LoadedModel extends Disposable {
  readonly program: Program;
  /** The linears that adapters can modify, by module name. */
  readonly adaptable: ReadonlyMap<string, AdaptableModule>;
  /** Layers of keys and values, and the recurrent ops, that this stage has. */
  readonly kvLayers: readonly number[];
  readonly states: readonly number[];
  /** Its packed matrix of the same sources, for `shared` of another model; undefined where it has none, or several ranks. */
  matrixOf(plan: MatrixPlan): Matrix | undefined;
  /** Bytes of the packed matrices. */
  readonly weightBytes: number;
  /** Tensors of the checkpoint that the architecture does not read. */
  readonly unusedTensors: readonly string[];
  /** Floats that each recurrent op keeps of a sequence, with room for draft tokens; empty where the model has none. */
  stateWidths(maxDraftTokens: number): readonly number[];
  /** Resolves once all weights are packed, which may go on between steps; never rejects. */
  readonly packed: Promise<void>;
  /** Resolves once the packed weights are in the weight cache, if there is one. */
  readonly saved: Promise<void>;
  /** Frees the weights and the program's memory until `refill`; resolves once nothing packs or writes them any more. Between steps. */
  vacate(backend: Vacating): Promise<void>;
  /** Packs the weights of `tensors` in their place, which are those that were loaded or others of the same shapes. Errors as in `loadModel`. */
  refill(backend: Vacating, tensors: Checkpoint["tensors"]): Promise<void>;
}

/**
 * Packs a checkpoint's weights and compiles its program. On failure or abort everything made so far is disposed.
 * Throws `artifact_unsupported`, `artifact_invalid`, `out_of_memory` or `request_cancelled`.
 */
export async function loadModel(
  backend: Backend,
  checkpoint: Checkpoint,
  options: LoadModelOptions,
): Promise<LoadedModel> {
  const { config, tensors } = checkpoint;
  const { maxModelLen = config.maxPositionEmbeddings, maxTokens, plan: planOfModel = planModel } = options;
  const { ranks = [backend] } = backend;
  const { stage = { index: 0, count: 1 } } = options;
  const planOf = (given: Checkpoint["tensors"]): ModelPlan => {
    const exact = planOfModel({ ...config, maxPositionEmbeddings: maxModelLen }, given);
    return options.activations === "declared" ? withDeclaredActivations(exact, checkpoint.path) : exact;
  };
  const ownPlan = (whole: ModelPlan): StagePlan => {
    const own = stagePlans(whole, stage.count)[stage.index];
    if (own === undefined) throw new OctavoError("internal_error", `There is no stage ${stage.index}.`);
    return own;
  };
  const plan = planOf(tensors);
  const own = ownPlan(plan);
  const divided = async (whole: ModelPlan): Promise<ModelPlan[]> => {
    if (ranks.length === 1) return [whole];
    const { rankPlans } = await import("@octavo/artifacts/program/ranks/rank-plan");
    return rankPlans(whole, ranks.length);
  };
  const plans = await divided(own.plan);
  let packers = packersOf(ranks, options);
  const program = await packed(
    packers,
    plans,
    maxTokens,
    (specs, whole) => backend.compileRanks?.(specs) ?? backend.compile(whole),
  );
  return {
    program,
    adaptable: plans[0]?.adaptable ?? own.plan.adaptable,
    kvLayers: own.kvLayers,
    states: own.states,
    matrixOf: (wanted) => (packers.length === 1 ? packers[0]?.find(wanted) : undefined),
    weightBytes: packers.reduce((sum, { byteLength }) => sum + byteLength, 0),
    unusedTensors: plan.unusedTensors,
    stateWidths: (maxDraftTokens) => stateWidths(plan.ops, plan.buffers, maxDraftTokens),
    get packed() {
      return Promise.all(packers.map((weights) => weights.packed)).then(() => undefined);
    },
    get saved() {
      return Promise.all(packers.map((weights) => weights.saved)).then(() => undefined);
    },
    vacate: async (vacating) => {
      for (const weights of packers) weights.stop();
      await Promise.all(packers.map((weights) => weights.saved));
      disposeAll(packers);
      vacating.vacate(program);
    },
    refill: async (vacating, given) => {
      const { onProgress: _, signal: __, ...rest } = options;
      const refilled = packersOf(ranks, rest);
      await packed(refilled, await divided(ownPlan(planOf(given)).plan), maxTokens, (___, whole) =>
        vacating.refillProgram(program, whole),
      );
      packers = refilled;
    },
    [Symbol.dispose]: () => {
      program[Symbol.dispose]();
      disposeAll(packers);
    },
  };
}

/** One for each rank; their progress adds up. */
function packersOf(ranks: readonly Backend[], options: PackingOptions): WeightPacker[] {
  const progress = new JointProgress(options.onProgress);
  return ranks.map((rank) => new WeightPacker(rank, { ...options, onProgress: progress.next() }));
}

function disposeAll(packers: readonly WeightPacker[]): void {
  for (const weights of packers) weights[Symbol.dispose]();
}

/** Packs each rank's part of a plan for what uses it; disposes all if either fails. */
async function packed<T>(
  packers: readonly WeightPacker[],
  plans: readonly ModelPlan[],
  maxTokens: number,
  use: (specs: readonly ProgramSpec[], whole: ProgramSpec) => T,
): Promise<T> {
  try {
    const specs = await allOf(
      packers.map(async (weights, index) => {
        const part = plans[index];
        if (part === undefined) throw new OctavoError("internal_error", `Rank ${index} has no plan.`);
        await weights.pack(part);
        return specOf(part, weights, maxTokens);
      }),
    );
    const [whole] = specs;
    if (whole === undefined) throw new OctavoError("internal_error", "A backend has no rank.");
    return use(specs, whole);
  } catch (error) {
    disposeAll(packers);
    throw error;
  } finally {
    for (const weights of packers) weights.closeFiles();
  }
}

/** Awaits all, also when one fails, so that nothing is made after disposal. */
async function allOf<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

/** Adds up what ranks pack. */
class JointProgress {
  readonly #report: PackingOptions["onProgress"];
  readonly #parts: { done: number; total: number }[] = [];

  constructor(report: PackingOptions["onProgress"]) {
    this.#report = report;
  }

  next(): (done: number, total: number) => void {
    const part = { done: 0, total: 0 };
    this.#parts.push(part);
    return (done, total) => {
      Object.assign(part, { done, total });
      const sum = (field: "done" | "total"): number => this.#parts.reduce((all, one) => all + one[field], 0);
      this.#report?.(sum("done"), sum("total"));
    };
  }
}

function specOf(plan: ModelPlan, weights: WeightPacker, maxTokens: number): ProgramSpec {
  return {
    buffers: plan.buffers,
    ops: plan.ops.map((op) => realize(op, weights)),
    hidden: plan.hidden,
    ...(plan.head !== undefined && { head: realizeFields(plan.head, weights) }),
    maxTokens,
  };
}

function realize(op: PlannedOp, weights: WeightPacker): Op {
  const vector = (plan: VectorPlan): Vector => weights.vector(plan);
  if (op.op === "linear") return realizeFields(op, weights);
  if (op.op === "layer_norm") {
    const { weight, bias, ...rest } = op;
    const added = bias && { bias: weights.vector(bias) };
    return { ...rest, weight: weights.vector(weight), ...added };
  }
  if (op.op === "head_linear") return { ...op, weights: op.weights.map((weight) => weights.matrix(weight)) };
  if (op.op === "embedding") return { ...op, weight: weights.matrix(op.weight) };
  if (op.op === "rms_norm") return { ...op, weight: weights.vector(op.weight) };
  if (op.op === "attention") {
    const { sinks, ...rest } = op;
    return { ...rest, ...(sinks !== undefined && { sinks: weights.vector(sinks) }) };
  }
  if (op.op === "convolution") {
    const { weight, bias, ...rest } = op;
    return { ...rest, weight: vector(weight), ...(bias !== undefined && { bias: vector(bias) }) };
  }
  if (op.op === "gated_delta_rule" || op.op === "state_space") {
    const { decayRate, stepBias } = op;
    const both = { decayRate: vector(decayRate), stepBias: vector(stepBias) };
    return op.op === "gated_delta_rule" ? { ...op, ...both } : { ...op, ...both, skip: vector(op.skip) };
  }
  if (op.op === "experts") {
    const { selectionBias: bias, expertScales: scales, ...rest } = op;
    const added = {
      ...(bias && { selectionBias: vector(bias) }),
      ...(scales && { expertScales: vector(scales) }),
    };
    return { ...rest, ...added, experts: op.experts.map((expert) => realizeExpert(expert, weights)) };
  }
  if (op.op === "scale") {
    const { by, ...rest } = op;
    return { ...rest, ...(by !== undefined && { by: vector(by) }) };
  }
  return op;
}

function realizeExpert(planned: PlannedExpert, weights: WeightPacker): ExpertWeights {
  const { gate, up, down, gateBias, upBias, downBias } = planned;
  return {
    gate: weights.matrix(gate),
    down: weights.matrix(down),
    ...(up !== undefined && { up: weights.matrix(up) }),
    ...(gateBias !== undefined && { gateBias: weights.vector(gateBias) }),
    ...(upBias !== undefined && { upBias: weights.vector(upBias) }),
    ...(downBias !== undefined && { downBias: weights.vector(downBias) }),
  };
}

function realizeFields<T extends { readonly weight: MatrixPlan; readonly bias?: VectorPlan }>(
  part: T,
  weights: WeightPacker,
): Omit<T, "weight" | "bias"> & { readonly weight: Matrix; readonly bias?: Vector } {
  const { weight, bias, ...rest } = part;
  return {
    ...rest,
    weight: weights.matrix(weight),
    ...(bias !== undefined && { bias: weights.vector(bias) }),
  };
}
