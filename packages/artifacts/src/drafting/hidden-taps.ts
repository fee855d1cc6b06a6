import { OctavoError } from "@octavo/protocol/errors";
import type { ModelPlan, PlannedOp } from "../program/model-plan.js";

/** The plan, which also sends the residual stream as it enters each of these layers, in ascending order. */
export function tapLayers(plan: ModelPlan, layers: readonly number[]): ModelPlan {
  const entries = new Map(
    layers.map((layer) => {
      const norm = `model.layers.${layer}.input_layernorm.weight`;
      // With it, the update of the layer before joins the stream.
      const at = plan.ops.findIndex(
        (op) =>
          op.op === "rms_norm" &&
          op.residual !== undefined &&
          op.weight.sources.some((one) => one.name === norm),
      );
      if (at < 0)
        throw noHead(`the hidden states that enter layer ${layer} cannot be read in this architecture`);
      return [at, plan.ops[at]];
    }),
  );
  const ops = plan.ops.flatMap((op, index): PlannedOp[] => {
    const norm = entries.get(index);
    return norm?.op === "rms_norm" && norm.residual !== undefined
      ? [op, { op: "send", in: norm.residual }]
      : [op];
  });
  return { ...plan, ops };
}

/** The plan, which also sends every token's normalised hidden state, not only those of output rows. */
export function tapHidden(plan: ModelPlan): ModelPlan {
  const at = plan.ops.findIndex((op) => op.op === "gather");
  const [gather, norm] = [plan.ops[at], plan.ops[at + 1]];
  if (gather?.op !== "gather" || norm?.op !== "rms_norm" || norm.residual !== undefined)
    throw noHead("its last hidden states cannot be read in this architecture");
  const all = { buffer: plan.buffers.length };
  const sent: PlannedOp[] = [
    { ...norm, in: gather.in, out: all },
    { op: "send", in: all },
  ];
  return {
    ...plan,
    buffers: [...plan.buffers, plan.buffers[gather.in.buffer] ?? 0],
    ops: plan.ops.toSpliced(at, 0, ...sent),
  };
}

/** Refuses a model whose head cannot draft for it. */
export function noHead(problem: string): OctavoError {
  return new OctavoError("invalid_option", `No drafting head for this model: ${problem}.`, {
    param: "speculative_config",
  });
}
