import type { BufferRef } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { ExpertsConfig } from "./model-config.js";
import type { PlannedExpert } from "./model-plan.js";
import type { ProgramBuilder } from "./program-builder.js";
import type { FusedExpertNames } from "./transposed-experts.js";

/** Names within the layer. */
export interface ExpertNames {
  readonly router: string;
  /** Names of one expert's tensors, without `.weight`; `*` stands for every index. */
  readonly expert: (index: number | "*") => {
    readonly gate: string;
    /** Absent for experts whose activation multiplies nothing: theirs stands at `gate`. */
    readonly up?: string;
    readonly down: string;
  };
  /** Full names of the tensors that hold all experts, used if the checkpoint has them. */
  readonly fused: FusedExpertNames;
  /** Biases of the `fused` tensors, gate's and up's interleaved; present where the router and every expert have biases. */
  readonly biases?: { readonly gateUp: string; readonly down: string };
  /** Full name of the experts' selection biases, if the configuration says that there are any. */
  readonly selectionBias?: string;
  /** Full name of a factor for each expert's weight. */
  readonly scales?: string;
  /** Names of the shared expert, to which every token goes. */
  readonly shared?: {
    readonly mlp: string;
    /** Name of the gate that scales the shared expert's output; absent if nothing does. */
    readonly gate?: string;
    /** Within `mlp`: of gate and up in one tensor, and of down; used where the checkpoint has them. */
    readonly fused?: { readonly gateUp: string; readonly down: string };
  };
}

/** Qwen's names, which most later families took over. */
export const qwenExpertNames: ExpertNames = {
  router: "mlp.gate",
  expert: (index) => ({
    gate: `mlp.experts.${index}.gate_proj`,
    up: `mlp.experts.${index}.up_proj`,
    down: `mlp.experts.${index}.down_proj`,
  }),
  fused: { gateUp: "mlp.experts.gate_up_proj", down: "mlp.experts.down_proj" },
};

/** With an expert that every token goes to, scaled by a gate of its own. */
export const gatedSharedExpertNames: ExpertNames = {
  ...qwenExpertNames,
  shared: { mlp: "mlp.shared_expert", gate: "mlp.shared_expert_gate" },
};

/** Activation buffers of a mixture's layers. */
export interface ExpertBuffers {
  /** The router's scores, then that of the shared expert's gate. */
  readonly scores: BufferRef;
  readonly shared:
    | { readonly gateUp: BufferRef; readonly activated: BufferRef; readonly out: BufferRef }
    | undefined;
}

export function expertBuffers(builder: ProgramBuilder, experts: ExpertsConfig): ExpertBuffers {
  const { count, sharedIntermediateSize: shared } = experts;
  return {
    // One column more, for the shared expert's gate.
    scores: builder.buffer(shared === undefined ? count : count + 1),
    shared:
      shared === undefined
        ? undefined
        : {
            gateUp: builder.buffer(2 * shared),
            activated: builder.buffer(shared),
            out: builder.buffer(builder.config.hiddenSize),
          },
  };
}

/**
 * Σ weight * expert(x) over the experts that the router scores highest, plus sigmoid(gate(x)) * shared expert(x) where there is one
 * (Shazeer et al., arXiv 1701.06538; Mixtral, arXiv 2401.04088).
 */
export function mixtureOfExperts(
  builder: ProgramBuilder,
  buffers: ExpertBuffers,
  names: ExpertNames,
  layer: number,
  input: BufferRef,
  out: BufferRef,
  /** What the router reads, if not the input. */
  routed: BufferRef = input,
): void {
  const { hiddenSize, hiddenActivation: activation, experts } = builder.config;
  if (experts === undefined)
    throw new OctavoError("internal_error", "A mixture was planned for a dense model.");
  const { count, perToken: topK } = experts;
  const at = (name: string): string => `model.layers.${layer}.${name}`;
  const { scores, shared } = buffers;
  const isPlain = names.expert("*").up === undefined;

  const router = { name: at(names.router), rows: count, bias: names.biases !== undefined };
  const hasGate = names.shared?.gate !== undefined && shared !== undefined;
  const sharedGate = hasGate ? [{ name: at(names.shared?.gate ?? ""), rows: 1 }] : [];
  builder.project(routed, [router, ...sharedGate], hiddenSize, {
    ...scores,
    width: count + sharedGate.length,
  });
  builder.add({
    op: "experts",
    in: input,
    scores: { ...scores, width: count },
    out,
    experts: plannedExperts(builder, names, layer, experts),
    topK,
    softmaxOver: experts.normalizeWeights ? "chosen" : "all",
    ...(experts.scoring !== undefined && { scoring: experts.scoring }),
    ...(experts.groups !== undefined && { groups: experts.groups }),
    ...(experts.weightScale !== undefined && { weightScale: experts.weightScale }),
    ...(experts.weighsInput === true && { weighsInput: true }),
    ...(experts.hasSelectionBias === true &&
      names.selectionBias !== undefined && {
        selectionBias: builder.flatVector(at(names.selectionBias), count),
      }),
    ...(names.scales !== undefined && { expertScales: builder.flatVector(at(names.scales), count) }),
    activation,
    ...(isPlain && { isGated: false }),
  });
  if (names.shared === undefined || shared === undefined) return;
  const inner = experts.sharedIntermediateSize ?? 0;
  const mlp = at(names.shared.mlp);
  const { fused } = names.shared;
  const isFused = fused !== undefined && builder.has(`${mlp}.${fused.gateUp}.weight`);
  const gateAndUp = isPlain
    ? [{ name: `${mlp}.up_proj`, rows: inner }]
    : isFused
      ? [{ name: `${mlp}.${fused.gateUp}`, rows: 2 * inner }]
      : [
          { name: `${mlp}.gate_proj`, rows: inner },
          { name: `${mlp}.up_proj`, rows: inner },
        ];
  const down = { name: `${mlp}.${isFused ? fused.down : "down_proj"}`, rows: hiddenSize };
  if (isPlain && activation !== "clamped_swiglu") {
    builder.project(input, gateAndUp, hiddenSize, shared.activated);
    builder.add({ op: "activation", on: shared.activated, activation });
  } else {
    builder.project(input, gateAndUp, hiddenSize, shared.gateUp);
    builder.add({ op: "gated_activation", in: shared.gateUp, out: shared.activated, activation });
  }
  builder.project(shared.activated, [down], inner, shared.out);
  if (hasGate)
    builder.add({ op: "sigmoid_gate", in: { ...scores, column: count, width: 1 }, on: shared.out });
  builder.add({ op: "add", in: shared.out, out });
}

function plannedExperts(
  builder: ProgramBuilder,
  names: ExpertNames,
  layer: number,
  { count, intermediateSize }: ExpertsConfig,
): readonly PlannedExpert[] {
  const at = (name: string): string => `model.layers.${layer}.${name}`;
  const gateUp = at(names.fused.gateUp);
  const { biases } = names;
  if (builder.has(gateUp)) {
    return builder.fusedExperts(
      { ...names.fused, gateUp, down: at(names.fused.down) },
      count,
      intermediateSize,
      biases && { gateUp: at(biases.gateUp), down: at(biases.down) },
    );
  }
  return Array.from({ length: count }, (_, index) => {
    const { gate, up, down } = names.expert(index);
    return builder.expert(
      { gate: at(gate), ...(up !== undefined && { up: at(up) }), down: at(down) },
      intermediateSize,
      biases !== undefined,
    );
  });
}
