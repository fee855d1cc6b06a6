import { createHash } from "node:crypto";
import { OctavoError } from "@octavo/protocol";
import type { EvaluatorServices } from "../evaluators/registry.js";
import type { JudgeModel } from "./judge.js";

/**
 * The judge that a row asks, with the model that its options name.
 * @throws OctavoError `invalid_option` where there is none
 */
export function judgeOf({ judge }: EvaluatorServices, model: string | undefined): JudgeModel {
  if (judge === undefined) throw new OctavoError("invalid_option", "a judge is needed: configure one");
  if (model === undefined || model === judge.name) return judge;
  const other = judge.withModel?.(model);
  if (other === undefined)
    throw new OctavoError("invalid_option", `the judge ${judge.name} has no other models, such as ${model}`, {
      param: "model",
    });
  return other;
}

/** Tells apart the judges and wordings under which scores were given. */
export function fingerprintOf(judge: JudgeModel, ...texts: readonly (string | undefined)[]): string {
  const digest = createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, 16);
  return `${judge.name} ${digest}`;
}
