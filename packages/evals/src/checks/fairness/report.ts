import type { CheckResult, MovedCase, Verdict } from "../check.js";
import type { Observation } from "../observation.js";
import { tailSampleSize } from "../judging/quantile-ratio.js";
import { pairArrivals } from "../judging/time-blocks.js";
import { adviceAfter } from "../judging/undecided.js";
import { fairnessAdvice } from "./advice.js";
import type { OwnTraffic } from "./latency-effects.js";

/** What both checks report of the tenants they judged: sample size and advice are those of the smallest, which comes first. */
export function tenantsReport(
  tenants: readonly OwnTraffic[],
  verdict: Verdict,
  settings: { readonly alpha: number; readonly power: number; readonly e2eMargin: number },
): Pick<CheckResult, "verdict" | "sampleSize" | "advice" | "movedCases"> {
  const { solo, shared } = tenants[0] ?? { solo: [], shared: [] };
  const have = Math.min(solo.length, shared.length);
  const sampleSize = tailSampleSize(have, settings, "requests of the small tenant under each condition");
  return {
    verdict,
    sampleSize,
    advice: adviceAfter(verdict, () => fairnessAdvice(shared), sampleSize),
    movedCases: tenants.flatMap((tenant) => slowedCases(tenant, settings.e2eMargin)),
  };
}

/** The other tenant's answers to the small one's requests, alone. */
export function peersOf(
  observations: readonly Observation[],
  { peer }: { readonly peer: string },
): readonly Observation[] {
  return observations.filter(({ condition }) => condition === peer);
}

/** Requests that took longer beside others than is allowed. */
function slowedCases(own: OwnTraffic, margin: number): readonly MovedCase[] {
  return pairArrivals(own.solo, own.shared)
    .map(({ caseId, reference, observed }) => ({
      caseId,
      what: "whole answer",
      before: `${reference.durationMs.toFixed(1)} ms`,
      after: observed.failureCode ?? `${observed.durationMs.toFixed(1)} ms`,
      severity: observed.durationMs / Math.max(1e-3, reference.durationMs),
    }))
    .filter(({ severity }) => severity > margin);
}
