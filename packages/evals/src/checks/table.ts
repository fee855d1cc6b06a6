import { OctavoError } from "@octavo/protocol";
import { autoscalingLagCheck } from "./autoscaling-lag/check.js";
import { evictionBurstCheck, evictionCheck } from "./eviction/check.js";
import { fairnessCheck, tenantFairnessCheck } from "./fairness/check.js";
import { jitterCheck } from "./jitter/check.js";
import { quantizationCheck } from "./quantization/check.js";
import { replicaSkewCheck } from "./replica-skew/check.js";
import { tailCheck } from "./tail/check.js";
import { trafficDriftCheck } from "./traffic-drift/check.js";
import { checkRow, type CheckRow } from "./define-check.js";

/** Every check, in the order in which commands list and run them. A new check is a row here and a folder beside this file. */
export const checkTable = [
  checkRow(quantizationCheck),
  checkRow(tailCheck),
  checkRow(jitterCheck),
  checkRow(evictionCheck),
  checkRow(fairnessCheck),
  checkRow(replicaSkewCheck),
  checkRow(autoscalingLagCheck),
  checkRow(evictionBurstCheck),
  checkRow(trafficDriftCheck),
  checkRow(tenantFairnessCheck),
] as const;

/** Name of a check, as configurations write it. */
export type CheckName = (typeof checkTable)[number]["name"];

/** Names of the serving checks. */
export const checkNames: readonly CheckName[] = checkTable.map(({ name }) => name);

/** @throws OctavoError `invalid_option` where there is no such check */
export function checkNamed(name: string): CheckRow<CheckName> {
  const row = checkTable.find((candidate) => candidate.name === name);
  if (row === undefined)
    throw new OctavoError(
      "invalid_option",
      `there is no check ${JSON.stringify(name.slice(0, 64))}; there are ${checkNames.join(", ")}`,
      { param: "check" },
    );
  return row;
}
