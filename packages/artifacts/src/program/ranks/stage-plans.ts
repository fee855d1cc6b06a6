import { spanOf } from "@octavo/kernels/checks/span";
import { isRecurrent } from "@octavo/kernels/state-widths";
import type { BufferRef } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { type ModelPlan, type PlannedOp, weightsIn } from "../model-plan.js";

/** One stage of a model, and what of the caches is its own. */
export interface StagePlan {
  readonly plan: ModelPlan;
  /** Its layers of keys and values, by their number in the whole model. */
  readonly kvLayers: readonly number[];
  /** Its recurrent ops, by their number in the whole model. */
  readonly states: readonly number[];
}

/** A place between two ops, and the buffers that the ops behind it go on with. */
interface Cut {
  readonly before: number;
  readonly live: readonly number[];
  readonly width: number;
  /** Bytes of weights of the ops before it. */
  readonly weightBytes: number;
}

/**
 * A model in `count` stages one behind the other (pipeline parallelism), with about equal bytes of weights, cut where the fewest columns go from
 * one to the next. Each op stays as it is, in its order, so that the bits do too.
 * @throws OctavoError `invalid_option` for a model of too few layers
 */
export function stagePlans(plan: ModelPlan, count: number): StagePlan[] {
  // Layers keep their numbers: a drafting head's stands behind its model's.
  if (count === 1) return [{ ...stageOf(plan, [], plan.ops, []), plan }];
  const cuts = chooseCuts(plan, count);
  return Array.from({ length: count }, (_, stage) => {
    const [first, last] = [cuts[stage - 1], cuts[stage]];
    const ops = plan.ops.slice(first?.before ?? 0, last?.before);
    const own = stageOf(plan, first?.live ?? [], ops, last?.live ?? []);
    const [hidden = plan.hidden.buffer] = last?.live ?? [];
    return last === undefined
      ? own
      : { ...own, plan: { ...own.plan, hidden: { buffer: hidden }, head: undefined } };
  });
}

function stageOf(
  plan: ModelPlan,
  received: readonly number[],
  ops: readonly PlannedOp[],
  sent: readonly number[],
): StagePlan {
  const layers = new Map<number, number>();
  const states = new Map<number, number>();
  const numberIn = (known: Map<number, number>, number: number): number => {
    const own = known.get(number) ?? known.size;
    known.set(number, own);
    return own;
  };
  const own = ops.map((op): PlannedOp => {
    if (op.op === "attention") return { ...op, layer: numberIn(layers, op.layer) };
    return isRecurrent(op) ? { ...op, state: numberIn(states, op.state) } : op;
  });
  return {
    plan: {
      ...plan,
      ops: [
        ...received.map((buffer) => ({ op: "receive", out: { buffer } }) as const),
        ...own,
        ...sent.map((buffer) => ({ op: "send", in: { buffer } }) as const),
      ],
      adaptable: received.length + sent.length === 0 ? plan.adaptable : new Map(),
    },
    kvLayers: [...layers.keys()],
    states: [...states.keys()],
  };
}

function chooseCuts(plan: ModelPlan, count: number): Cut[] {
  const places = placesOf(plan);
  const total = bytesOf([plan.ops, plan.head]);
  const cuts: Cut[] = [];
  for (let stage = 1; stage < count; stage++) {
    const wanted = (total * stage) / count;
    const behind = places.filter(({ before }) => before > (cuts.at(-1)?.before ?? 0));
    const near = behind.filter(({ weightBytes }) => Math.abs(weightBytes - wanted) <= total / (2 * count));
    const fewest = Math.min(...near.map(({ width }) => width));
    const [best] = near
      .filter(({ width }) => width === fewest)
      .toSorted((a, b) => Math.abs(a.weightBytes - wanted) - Math.abs(b.weightBytes - wanted));
    if (best === undefined) {
      throw new OctavoError(
        "invalid_option",
        `pipeline_parallel_size is ${count}, but the model's layers cannot be divided between as many stages of about equal size.`,
        { param: "pipeline_parallel_size" },
      );
    }
    cuts.push(best);
  }
  return cuts;
}

/** Where the model may be cut: between ops with weights before them and behind them, all of which run over the step's tokens. */
function placesOf(plan: ModelPlan): Cut[] {
  const { ops, buffers } = plan;
  const gather = ops.findIndex((op) => op.op === "gather");
  const liveBefore = livenessOf(plan);
  const written = new Set<number>();
  const cuts: Cut[] = [];
  const isKept = keptBefore(ops);
  let weightBytes = 0;
  for (const [before, op] of ops.slice(0, gather < 0 ? ops.length : gather).entries()) {
    const live = [...(liveBefore[before] ?? [])].filter((buffer) => written.has(buffer));
    const width = live.reduce((sum, buffer) => sum + (buffers[buffer] ?? 0), 0);
    if (weightBytes > 0 && !isKept(before)) cuts.push({ before, live, width, weightBytes });
    weightBytes += bytesOf(op);
    for (const { buffer } of refsOf(op)) written.add(buffer);
  }
  return cuts;
}

/** Whether an op from here on attends to a layer of the cache that one before here has written: no cache has it in two stages. */
function keptBefore(ops: readonly PlannedOp[]): (before: number) => boolean {
  const spans = new Map<number, { readonly first: number; last: number }>();
  for (const [index, op] of ops.entries()) {
    if (op.op !== "attention") continue;
    const known = spans.get(op.layer);
    if (known === undefined) spans.set(op.layer, { first: index, last: index });
    else if (op.k === undefined) known.last = index;
  }
  return (before) => [...spans.values()].some(({ first, last }) => first < before && before <= last);
}

/** Before each op, the buffers whose columns are still read. A write of a part of a buffer keeps the rest. */
function livenessOf({ ops, buffers, hidden }: ModelPlan): Set<number>[] {
  const before: Set<number>[] = [];
  let live = new Set([hidden.buffer]);
  for (const [index, op] of [...ops.entries()].toReversed()) {
    const refs = refsOf(op);
    live = new Set(live);
    for (const { buffer, ref, isWritten } of refs)
      if (isWritten && spanOf(ref, buffers).width === buffers[buffer]) live.delete(buffer);
    for (const { buffer, isWritten } of refs) if (!isWritten) live.add(buffer);
    before[index] = live;
  }
  return before;
}

/** What an op reads, and what it writes without reading it. */
function refsOf(
  op: PlannedOp,
): { readonly buffer: number; readonly ref: BufferRef; readonly isWritten: boolean }[] {
  return Object.entries(op).flatMap(([field, value]: [string, unknown]) => {
    if (typeof value !== "object" || value === null || !("buffer" in value)) return [];
    const ref = value as BufferRef;
    const isWritten = op.op !== "add" && (field === "out" || field === "first" || field === "second");
    return [{ buffer: ref.buffer, ref, isWritten }];
  });
}

function bytesOf(value: unknown): number {
  return weightsIn(value)
    .flatMap(({ sources }) => sources)
    .reduce((sum, { byteLength }) => sum + byteLength, 0);
}
