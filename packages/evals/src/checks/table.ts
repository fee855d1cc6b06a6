import { OctavoError } from "@octavo/protocol";
import type { CheckName } from "./check.js";
import type { CheckRow } from "./check-run.js";
import { autoscalingLagRow } from "./autoscaling-lag/row.js";
import { evictionBurstRow } from "./eviction-burst/row.js";
import { evictionRow } from "./eviction/row.js";
import { fairnessRow } from "./fairness/row.js";
import { jitterRow } from "./jitter/row.js";
import { quantizationRow } from "./quantization/row.js";
import { replicaSkewRow } from "./replica-skew/row.js";
import { tailRow } from "./tail/row.js";
import { tenantFairnessRow } from "./tenant-fairness/row.js";
import { trafficDriftRow } from "./traffic-drift/row.js";

/** Every check that can be run, in the order of `checkNames`. A new one is a row made by `checkRow`. */
export const checkTable: readonly CheckRow[] = [
  quantizationRow,
  tailRow,
  jitterRow,
  evictionRow,
  fairnessRow,
  replicaSkewRow,
  autoscalingLagRow,
  evictionBurstRow,
  trafficDriftRow,
  tenantFairnessRow,
];

/** @throws OctavoError `invalid_option` for a check that there is none of */
export function checkNamed(name: CheckName | (string & {})): CheckRow {
  const row = checkTable.find((candidate) => candidate.name === name);
  if (row === undefined)
    throw new OctavoError(
      "invalid_option",
      `there is no check ${JSON.stringify(name.slice(0, 64))}; there are ${checkTable.map((known) => known.name).join(", ")}`,
      { param: "check" },
    );
  return row;
}
