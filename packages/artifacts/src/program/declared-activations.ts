import { OctavoError } from "@octavo/protocol/errors";
import type { DeclaredActivations, TensorInfo } from "../checkpoint/checkpoint.js";
import { type ModelPlan, type PlannedOp, weightsIn } from "./model-plan.js";

/** What the checkpoint declares for the activations of its matrices; undefined where it declares nothing. */
export function declaredActivations(
  tensors: ReadonlyMap<string, TensorInfo>,
): DeclaredActivations | undefined {
  for (const { activations } of tensors.values()) if (activations !== undefined) return activations;
  return undefined;
}

/** The declaration in words. */
export function describeActivations({ scales, groupSize }: DeclaredActivations): string {
  if (scales === "static") return "FP8 activations with scales of the file";
  return `FP8 activations with a scale per token${groupSize === undefined ? "" : ` and ${groupSize} columns`}, computed as it runs`;
}

/**
 * The plan with what each linear reads rounded as its matrix declares, into a buffer of its own.
 * @throws OctavoError `artifact_unsupported` where nothing is declared, or what is cannot be followed here
 */
export function withDeclaredActivations(plan: ModelPlan, path: string): ModelPlan {
  const refuse = (problem: string): never => {
    throw new OctavoError("artifact_unsupported", `${path} ${problem}`);
  };
  const declaredIn = (owner: unknown): DeclaredActivations | undefined =>
    weightsIn(owner)
      .flatMap(({ sources }) => sources)
      .find(({ activations }) => activations !== undefined)?.activations;
  const rounded = plan.buffers.length;
  let width = 0;
  const ops: PlannedOp[] = [];
  for (const op of plan.ops) {
    const declared = declaredIn(op);
    if (declared === undefined) {
      ops.push(op);
      continue;
    }
    if (declared.scales === "static")
      refuse("declares activations with scales of the file, which are not simulated.");
    if (op.op !== "linear") refuse("declares FP8 activations within experts, which are not simulated.");
    else {
      const out = { buffer: rounded, column: 0, width: op.weight.cols };
      const { groupSize } = declared;
      ops.push({ op: "round_e4m3", in: op.in, out, ...(groupSize !== undefined && { groupSize }) });
      ops.push({ ...op, in: out });
      width = Math.max(width, op.weight.cols);
    }
  }
  if (width === 0) refuse("declares no FP8 activations, so there is nothing to simulate.");
  return { ...plan, buffers: [...plan.buffers, width], ops };
}
