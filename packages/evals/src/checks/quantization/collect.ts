import { OctavoError } from "@octavo/protocol";
import type { TestBed } from "../test-bed.js";
import type { Observation } from "../observation.js";
import type { QuantizationCheckSettings } from "./settings.js";
import { forceReference } from "./forced-reference.js";
import { collectCases, type CasePlan } from "../collecting/collect-cases.js";

/** Every case to both variants, one right after the other; which of them comes first alternates. */
export async function collectQuantization(
  bed: TestBed,
  settings: QuantizationCheckSettings,
): Promise<readonly Observation[]> {
  const { baseline, candidate } = bed;
  if (baseline === undefined)
    throw new OctavoError("invalid_option", "quantization: needs a baseline", { param: "baseline" });
  const plans = bed.cases.map((evalCase, index): CasePlan => {
    const requests = [
      { condition: settings.baseline, target: baseline },
      { condition: settings.candidate, target: candidate },
    ];
    return { evalCase, requests: index % 2 === 0 ? requests : requests.toReversed() };
  });
  return collectCases(plans, {
    bed,
    purpose: settings.forced ? "quantization, forced" : "quantization",
    concurrency: settings.concurrency,
    baseline: settings.baseline,
    complete: async (observation, { evalCase, planned }) => {
      const forced = settings.forced ? await forceReference(planned.target, evalCase, bed.signal) : undefined;
      return forced === undefined ? observation : { ...observation, forced };
    },
  });
}
