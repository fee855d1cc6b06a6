import { Random } from "@octavo/statistics";
import type { TestBed } from "../test-bed.js";
import type { EvictionSettings } from "./settings.js";
import type { Observation } from "../observation.js";
import {
  collectCases,
  type CasePlan,
  type CollectedRequest,
  samplingOf,
} from "../collecting/collect-cases.js";

/** What is done to a request so that it loses its blocks. */
type Disturbance = "faults" | "cache_salt";

/**
 * Every case with its blocks kept, kept once more, and taken away. Octavo with fault injection takes them away after a
 * randomly chosen token of the answer. Other servers are asked once with the prompt in the prefix cache and once under a salt
 * that was never used, so that everything is recomputed.
 */
export async function collectEviction(
  bed: TestBed,
  settings: EvictionSettings,
): Promise<readonly Observation[]> {
  const disturbance = settings.method === "auto" ? await findOut(bed) : settings.method;
  const random = new Random(bed.seed);
  const plans = bed.cases.map((evalCase, index): CasePlan => {
    const again = index % 2 === 0;
    const requests =
      disturbance === "faults"
        ? faulted(bed, settings, index, random.uniform())
        : salted(bed, settings, `octavo-eval-${bed.seed}`, `${index}`);
    const [kept, keptAgain, evicted, ...before] = requests;
    return {
      evalCase,
      requests: [...before, kept, ...(again ? [keptAgain, evicted] : [evicted, keptAgain])],
    };
  });
  return collectCases(plans, {
    bed,
    purpose: `eviction by ${disturbance}`,
    concurrency: settings.concurrency,
    sameScoresAs: settings.kept,
    wantsDigests: true,
  });
}

type Requests = readonly [CollectedRequest, CollectedRequest, CollectedRequest, ...CollectedRequest[]];

/** A server that takes faults says so by answering a request that carries one. */
async function findOut({ candidate, cases, seed, signal }: TestBed): Promise<Disturbance> {
  const [first] = cases;
  if (first === undefined) return "cache_salt";
  const probe = { ...first, parameters: { ...first.parameters, maxTokens: 1 } };
  const extraBody = { ...samplingOf(probe, seed), octavo: { faults: { evict_at_token: 0 } } };
  const { failure, serving } = await candidate.answer(probe, { signal, extraBody });
  return failure === undefined && serving !== undefined ? "faults" : "cache_salt";
}

function faulted(bed: TestBed, settings: EvictionSettings, index: number, draw: number): Requests {
  const target = bed.candidate;
  const isPreempted = settings.fault === "preempt" || (settings.fault === "both" && index % 2 === 1);
  return [
    { condition: settings.kept, target },
    { condition: settings.keptAgain, target },
    {
      condition: settings.evicted,
      target,
      tags: [isPreempted ? "preempted" : "evicted"],
      extraBody: (earlier) => {
        const length = earlier.get(settings.kept)?.usage.completionTokens ?? 2;
        // after the first token and before the last one, where there is room
        const at = Math.max(1, Math.ceil(draw * (length - 1)));
        const faults = isPreempted ? { preempt_at_token: at } : { evict_at_token: at };
        return { octavo: { faults } };
      },
    },
  ];
}

function salted(bed: TestBed, settings: EvictionSettings, shared: string, own: string): Requests {
  const target = bed.candidate;
  const warm = { cache_salt: shared };
  return [
    { condition: settings.kept, target, extraBody: warm },
    { condition: settings.keptAgain, target, extraBody: warm },
    {
      condition: settings.evicted,
      target,
      tags: ["uncached"],
      extraBody: { cache_salt: `${shared}-${own}` },
    },
    { condition: "warm-up", target, extraBody: warm, isWarmUp: true },
  ];
}
