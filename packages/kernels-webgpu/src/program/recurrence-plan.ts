import type { RecurrentOp, Vector } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { Gpu } from "../device/gpu.js";
import type { CacheStorage } from "../handles.js";
import { convolutionShader, keepDraftsShader, recurrenceShader } from "../wgsl/recurrence.js";
import type { Arena, ArenaPlace } from "./arena.js";
import type { DispatchPlan } from "./dispatch.js";

export interface RecurrenceContext {
  readonly gpu: Gpu;
  readonly arena: Arena;
  readonly cache: CacheStorage;
  readonly vector: (vector: Vector) => GPUBuffer;
}

/** Dispatches of an op that keeps state. */
export function planRecurrence(op: RecurrentOp, context: RecurrenceContext): DispatchPlan[] {
  const { cache } = context;
  const states = cache.states[op.state];
  const spec = cache.spec.states;
  if (states === undefined || spec === undefined)
    throw new OctavoError("internal_error", `The cache keeps no state ${op.state}.`);
  const slot = { states, slotFloats: spec.widths[op.state] ?? 0, drafts: spec.maxDraftTokens };
  return op.op === "convolution" ? [planConvolution(op, context, slot)] : planScan(op, context, slot);
}

interface Slot {
  readonly states: GPUBuffer;
  readonly slotFloats: number;
  readonly drafts: number;
}

function planConvolution(
  op: Extract<RecurrentOp, { op: "convolution" }>,
  { gpu, arena, vector }: RecurrenceContext,
  { states, slotFloats, drafts }: Slot,
): DispatchPlan {
  const [from, to] = [arena.of(op.in), arena.of(op.out)];
  const taps = op.weight.length / from.width;
  return {
    shader: convolutionShader,
    params: {
      width: from.width,
      taps,
      kept: Math.max(1, taps - 1 + drafts),
      slotFloats,
      src: from.at,
      srcStride: from.stride,
      dst: to.at,
      dstStride: to.stride,
      hasBias: op.bias === undefined ? 0 : 1,
      silu: op.activation === "silu" ? 1 : 0,
    },
    buffers: [vector(op.weight), op.bias === undefined ? gpu.nothing : vector(op.bias), states],
    launch: ({ sequences }) => ({
      shader: convolutionShader,
      size: [Math.ceil(from.width / 64), sequences, 1],
    }),
  };
}

function planScan(
  op: Exclude<RecurrentOp, { op: "convolution" }>,
  { gpu, arena, vector }: RecurrenceContext,
  { states, slotFloats, drafts }: Slot,
): DispatchPlan[] {
  const isDelta = op.op === "gated_delta_rule";
  const { numHeads, numKeyHeads, keyDim, valueDim } = op;
  const tiles = Math.ceil(valueDim / 32);
  const named = (name: string, { at, stride }: ArenaPlace): Record<string, number> => ({
    [name]: at,
    [`${name}Stride`]: stride,
  });
  const [q, k, v] = isDelta ? [op.q, op.k, op.v] : [op.c, op.b, op.x];
  const shader = recurrenceShader(isDelta, keyDim);
  const keep = keepDraftsShader(isDelta);
  const common = {
    params: {
      numHeads,
      numKeyHeads,
      keyDim,
      valueDim,
      tiles,
      isTiled: isDelta && op.keyHeads === "tiled" ? 1 : 0,
      isLogRate: op.rateForm === "log" ? 1 : 0,
      slotFloats,
      drafts: Math.max(1, drafts),
      ...named("q", arena.of(q)),
      ...named("k", arena.of(k)),
      ...named("v", arena.of(v)),
      ...named("decay", arena.of(isDelta ? op.decay : op.step)),
      ...named("strength", arena.of(isDelta ? op.strength : op.step)),
      ...named("dst", arena.of(op.out)),
      queryScale: 1 / Math.sqrt(keyDim),
      leastStep: isDelta ? 0 : (op.leastStep ?? 0),
      mostStep: isDelta ? 0 : Math.min(op.mostStep ?? Infinity, 3e38),
    },
    buffers: [vector(op.decayRate), vector(op.stepBias), isDelta ? gpu.nothing : vector(op.skip), states],
  };
  const elements = numKeyHeads * keyDim + numHeads * valueDim + 2 * numHeads;
  return [
    { ...common, shader, launch: ({ sequences }) => ({ shader, size: [numHeads * tiles, sequences, 1] }) },
    ...(drafts === 0
      ? []
      : [
          {
            ...common,
            shader: keep,
            launch: ({ sequences }: { readonly sequences: number }) =>
              ({ shader: keep, size: [Math.ceil(elements / 64), sequences, 1] }) as const,
          },
        ]),
  ];
}
