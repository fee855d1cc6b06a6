import type { SamplerStateSpec } from "../backend.js";
import { checkReal, fail } from "./numbers.js";

/** Refuses penalties and biases that would make logits meaningless, with `invalid_request`. */
export function checkSamplerState(spec: SamplerStateSpec): void {
  if (!(spec.repetitionPenalty > 0 && Number.isFinite(spec.repetitionPenalty))) {
    fail(`repetitionPenalty must be positive and finite, not ${spec.repetitionPenalty}.`);
  }
  checkReal("frequencyPenalty", spec.frequencyPenalty, -Number.MAX_VALUE, Number.MAX_VALUE);
  checkReal("presencePenalty", spec.presencePenalty, -Number.MAX_VALUE, Number.MAX_VALUE);
  const { logitBias } = spec;
  if (logitBias === undefined) return;
  if (logitBias.ids.length !== logitBias.values.length) {
    fail(`logitBias has ${logitBias.ids.length} ids but ${logitBias.values.length} values.`);
  }
  for (const [index, value] of logitBias.values.entries()) {
    if (Number.isNaN(value) || value === Infinity)
      fail(`logitBias.values[${index}] is ${value}; it must be finite.`);
  }
}
