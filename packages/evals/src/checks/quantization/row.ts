import { checkRow } from "../check-run.js";
import { collectQuantization } from "../collect/quantization.js";
import { swapConditions } from "../support/placebos.js";
import { quantizationCheck } from "./check.js";
import { quantizationSettings } from "./settings.js";

export const quantizationRow = checkRow({
  check: quantizationCheck,
  settings: quantizationSettings,
  needs: ["baseline", "cases", "evaluators"],
  placebo: ({ baseline, candidate }) => swapConditions(baseline, candidate),
  collect: collectQuantization,
  sequence: ({ sequential, lookEvery: every, axisTags }) => (sequential ? { every, axisTags } : undefined),
});
