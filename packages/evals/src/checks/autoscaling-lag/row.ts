import { checkRow } from "../check-run.js";
import { collectAutoscalingLag } from "../collect/autoscaling-lag.js";
import { swapConditions } from "../support/placebos.js";
import { autoscalingLagCheck } from "./check.js";
import { autoscalingLagSettings } from "./settings.js";

export const autoscalingLagRow = checkRow({
  check: autoscalingLagCheck,
  settings: autoscalingLagSettings,
  needs: ["cases", "startReplica"],
  placebo: ({ idle, scaling }) => swapConditions(idle, scaling),
  collect: collectAutoscalingLag,
});
