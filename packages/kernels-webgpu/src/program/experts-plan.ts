import type { ExpertWeights, Matrix, Op, Vector } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { Gpu } from "../device/gpu.js";
import type { MatrixStorage } from "../handles.js";
import { activationShader, gatedActivationShader } from "../wgsl/elementwise.js";
import { mostExperts, routeShader } from "../wgsl/route.js";
import type { Arena, ArenaPlace } from "./arena.js";
import { type DispatchPlan, overRows, type Phase } from "./dispatch.js";
import { planLinear } from "./linear-plan.js";

type ExpertsOp = Extract<Op, { op: "experts" }>;

export interface ExpertsContext {
  readonly gpu: Gpu;
  readonly arena: Arena;
  readonly phase: Phase;
  readonly rowsAt: number;
  readonly matrix: (matrix: Matrix) => MatrixStorage;
  readonly vector: (vector: Vector) => GPUBuffer;
}

/**
 * Routes rows, then runs the experts one after another, in the order in which their outputs are added. A workgroup none of whose rows goes to
 * the expert ends at once.
 */
export function planExperts(op: ExpertsOp, context: ExpertsContext): DispatchPlan[] {
  const { arena, phase, rowsAt } = context;
  const [scores, out] = [arena.of(op.scores), arena.of(op.out)];
  const { weights } = arena.experts;
  if (op.experts.length > mostExperts)
    throw new OctavoError(
      "artifact_unsupported",
      `The model mixes ${op.experts.length} experts; the WebGPU backend routes among at most ${mostExperts}.`,
    );
  const route: DispatchPlan = {
    shader: routeShader,
    params: {
      rowsAt,
      scores: scores.at,
      scoresStride: scores.stride,
      weights: weights.at,
      weightsStride: weights.stride,
      dst: out.at,
      dstStride: out.stride,
      width: out.width,
      numExperts: op.experts.length,
      topK: op.topK,
      overAll: op.softmaxOver === "all" ? 1 : 0,
      isSigmoid: op.scoring === "sigmoid" ? 1 : 0,
      hasBias: op.selectionBias === undefined ? 0 : 1,
      groups: op.groups?.count ?? 0,
      chosenGroups: op.groups?.chosen ?? 0,
      counted: op.groups?.by === "two_best" ? 2 : 1,
      weightScale: op.weightScale ?? 1,
      hasScales: op.expertScales === undefined ? 0 : 1,
    },
    buffers: [op.selectionBias, op.expertScales].map((vector) =>
      vector === undefined ? context.gpu.nothing : context.vector(vector),
    ),
    launch: (counts) =>
      counts[phase] === 0 ? undefined : { shader: routeShader, size: [counts[phase], 1, 1] },
  };
  return [route, ...op.experts.flatMap((expert, index) => planExpert(op, expert, index, context))];
}

function planExpert(
  op: ExpertsOp,
  expert: ExpertWeights,
  index: number,
  context: ExpertsContext,
): DispatchPlan[] {
  const { gpu, arena, phase, rowsAt, matrix, vector } = context;
  const { weights, gateUp, activated } = arena.experts;
  const inner = expert.down.cols;
  const mask = { ...weights, at: weights.at + index };
  const linear = (
    weight: Matrix,
    bias: Vector | undefined,
    from: ArenaPlace,
    to: ArenaPlace,
    weighs: "input" | "output" | "nothing",
    accumulates = false,
  ): DispatchPlan[] =>
    planLinear(gpu, {
      matrix: matrix(weight),
      bias: bias && vector(bias),
      from,
      to,
      phase,
      rowsAt,
      rowWeights: { at: mask, weighs },
      accumulates,
    });
  const input = arena.of(op.in);
  const both = { ...gateUp, width: 2 * inner };
  const ups = { ...gateUp, at: gateUp.at + inner, width: inner };
  const isGated = op.isGated !== false;
  const activation = isGated ? gatedActivationShader(op.activation) : activationShader(op.activation);
  const gate: DispatchPlan = {
    shader: activation,
    params: {
      rowsAt,
      width: inner,
      src: gateUp.at,
      srcStride: gateUp.stride,
      to: activated.at,
      toStride: activated.stride,
    },
    buffers: [],
    launch: overRows(activation, inner, phase),
  };
  const [first, last] =
    op.weighsInput === true ? (["input", "nothing"] as const) : (["nothing", "output"] as const);
  const inside = { ...activated, width: inner };
  return [
    ...linear(expert.gate, expert.gateBias, input, isGated ? both : inside, first),
    ...(expert.up === undefined ? [] : linear(expert.up, expert.upBias, input, ups, first)),
    gate,
    ...linear(expert.down, expert.downBias, inside, arena.of(op.out), last, true),
  ];
}
