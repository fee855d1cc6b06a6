import type { Advice, Hypothesis, Verdict } from "../check.js";
import { defineCheck, type Judgement } from "../define-check.js";
import { intervalsFigure } from "../judging/figures.js";
import { planPairs, points } from "../judging/loss-effect.js";
import { type Pair, pairConditions } from "../judging/pairs.js";
import { disturbNothing } from "../judging/placebos.js";
import { decide, overallVerdict } from "../judging/verdicts.js";
import type { Observation } from "../observation.js";
import { burstFacts, type BurstFacts, poolAdvice, pressedBy } from "./burst.js";
import { cacheHitCurve } from "./cache-buckets.js";
import { collectBurst } from "./collect-burst.js";
import { collectEviction } from "./collect.js";
import { compareAnswers, type SameAnswers } from "./same-answers.js";
import { evictionBurstSettings, type EvictionFields, evictionSettings } from "./settings.js";

/** Blocks are taken away at a chosen token of the answer. */
export const evictionCheck = defineCheck({
  name: "eviction",
  question: "Does evicting cached blocks in the middle of an answer change the answer?",
  settings: evictionSettings,
  needs: ["cases"],
  collect: collectEviction,
  placebo: ({ kept, keptAgain, evicted }) => disturbNothing(kept, keptAgain, evicted),
  judge: (observations, settings) =>
    judgeDisturbed(observations, settings, {
      title: "Evicted against kept",
      conditions: [settings.kept, settings.keptAgain, settings.evicted],
      isDisturbed: wasEvicted,
      summary: evictionSummary,
    }),
});

/** A burst of long prompts takes the blocks, and shows whether the pool is large enough for it. */
export const evictionBurstCheck = defineCheck({
  name: "eviction-burst",
  question:
    "Does a burst of long prompts push running requests out of the KV cache, and does that change answers?",
  settings: evictionBurstSettings,
  needs: ["cases"],
  collect: collectBurst,
  placebo: ({ quiet, quietAgain, burst }) => disturbNothing(quiet, quietAgain, burst),
  judge: (observations, settings) =>
    judgeDisturbed(observations, settings, {
      title: "Within the burst",
      conditions: [settings.quiet, settings.quietAgain, settings.burst],
      burst: burstFacts(observations, settings),
      summary: burstSummary,
    }),
});

interface Disturbance {
  readonly title: string;
  /** Undisturbed, the same once more, disturbed. */
  readonly conditions: readonly [string, string, string];
  /** Whether a pair was put to the test. Default: every pair was. */
  readonly isDisturbed?: (pair: Pair) => boolean;
  readonly burst?: BurstFacts;
  readonly summary: (seen: Seen) => string;
}

interface Seen extends SameAnswers {
  readonly verdict: Verdict;
  readonly ofAnswers: readonly Hypothesis[];
  readonly ofPool: readonly Hypothesis[];
  /** Cases answered under both conditions. */
  readonly pairs: number;
}

/**
 * Does losing cached blocks change an answer? In a correct engine it costs time only, so every case runs undisturbed and
 * disturbed, and the two answers are compared for equality. The published curve of scores by cache hit ratio is shown for
 * comparison: long and rare prompts hit less and are harder, whatever the cache does.
 */
function judgeDisturbed(
  observations: readonly Observation[],
  settings: EvictionFields,
  { title, conditions: [undisturbed, repeated, disturbed], isDisturbed, burst, summary }: Disturbance,
): Judgement {
  const all = pairConditions(observations, undisturbed, disturbed);
  const pairs = all.pairs.length;
  const affected = isDisturbed === undefined ? all.pairs : all.pairs.filter(isDisturbed);
  const again = pairConditions(observations, undisturbed, repeated);
  const same = compareAnswers({ ...all, pairs: affected }, again, settings);
  const hypotheses = decide([...same.effects, ...(burst?.effects ?? [])], settings.alpha);
  const isWhole = same.effects.length > 0 && all.missingShare <= settings.maxMissingShare;
  const verdict = overallVerdict(hypotheses, isWhole);
  const ofAnswers = hypotheses.slice(0, same.effects.length);
  const ofPool = hypotheses.slice(same.effects.length);
  return {
    verdict,
    summary: summary({ ...same, verdict, ofAnswers, ofPool, pairs }),
    ruleOfThumb: cacheHitCurve(burst?.inBurst ?? observations, settings),
    hypotheses,
    sampleSize: planPairs(same.planned, settings),
    advice: [
      ...(ofAnswers.some(isFailed) ? engineBugAdvice : []),
      ...(ofPool.some(isFailed) ? poolAdvice : []),
      ...(verdict === "inconclusive" ? [moreCases(pairs, burst !== undefined)] : []),
    ],
    movedCases: same.moved,
    figures: [...intervalsFigure(title, "share", hypotheses), ...(burst?.figures ?? [])],
    notes: [
      ...(burst === undefined ? evictionNotes(observations, pairs, affected.length) : []),
      ...all.notes,
      ...same.notes,
      ...(burst?.notes ?? []),
    ],
  };
}

function isFailed({ verdict }: Hypothesis): boolean {
  return verdict === "fail";
}

function evictionNotes(
  observations: readonly Observation[],
  pairs: number,
  affected: number,
): Judgement["notes"] {
  return [
    !observations.some(({ cacheHitRatio }) => cacheHitRatio !== undefined) &&
      "no observation says how much of its prompt was cached: the published curve is empty",
    pairs > affected && `${pairs - affected} of ${pairs} cases lost no block and are left out`,
    pairs === 0 &&
      observations.length > 0 &&
      "recorded traffic alone cannot tell what eviction does: hit ratio goes with length and novelty",
  ];
}

/** Whether anything was lost under the second condition that was not under the first; true where the server does not say. */
function wasEvicted({ before, after }: Pair): boolean {
  const signs = [
    [before.preemptions, after.preemptions],
    [before.recomputedTokens, after.recomputedTokens],
    [before.evictedPrefixTokens, after.evictedPrefixTokens],
    [after.cacheHitRatio, before.cacheHitRatio],
  ].flatMap(([less, more]) => (less === undefined || more === undefined ? [] : [more > less]));
  return signs.length === 0 || signs.includes(true);
}

function evictionSummary({ compared, readable, differing, isPromised, ofAnswers, pairs }: Seen): string {
  if (compared === 0)
    return pairs === 0
      ? "Nothing was compared: no case was answered both with its blocks kept and with its blocks taken away."
      : `None of ${pairs} cases lost a block: nothing was put to the test.`;
  const failed = ofAnswers.find(isFailed);
  const unknown = readable === compared ? "" : ` (of ${compared - readable} more it is not known)`;
  const counted = `${differing} of ${readable} answers differ after eviction${unknown}`;
  if (failed !== undefined) {
    return isPromised
      ? `${counted}: recomputing blocks gave other logits, which is a bug of the engine and not of a setting.`
      : `${counted} and score worse (${failed.name} ${points(failed.estimate ?? 0)} points, margin ${points(failed.margin ?? 0)}): eviction must cost time only, so this is a bug of the engine.`;
  }
  if (ofAnswers.length > 0 && ofAnswers.every((one) => one.verdict === "pass"))
    return `${counted}; what eviction may do to answers is shown to be within the margin.`;
  return `${counted}; more cases are needed to exclude that eviction does harm.`;
}

function burstSummary({ compared, readable, differing, ofAnswers, ofPool, verdict }: Seen): string {
  const unknown = readable === compared ? "" : ` (of ${compared - readable} more it is not known)`;
  const answers =
    compared === 0
      ? "no case was answered both on a quiet server and within the burst"
      : `${differing} of ${readable} answers differ within the burst${unknown}`;
  const pressed = ofPool
    .filter(isFailed)
    .map(({ name, estimate = 0, margin = 0 }) => {
      const { says, of } = pressedBy[name as keyof typeof pressedBy];
      return `${says}: ${points(estimate)} % of requests ${of} (accepted: ${points(margin)} %)`;
    })
    .join("; ");
  const bug = `${answers}: a burst must cost time only, so this is a bug of the engine`;
  if (ofAnswers.some(isFailed)) return pressed === "" ? `${bug}.` : `${bug}; and ${pressed}.`;
  if (pressed !== "") return `${pressed}; ${answers}.`.replace(/^./, (first) => first.toUpperCase());
  if (compared === 0) return `Nothing was compared: ${answers}.`;
  if (verdict === "pass") return `The burst cost time only: ${answers}, and few requests were preempted.`;
  return `Not decided: ${answers}; more cases are needed.`;
}

const engineBugAdvice: readonly Advice[] = [
  {
    knob: "engine",
    change: "report it with the cases below; they can be run again one by one",
    because:
      "computing evicted blocks again must give the same numbers: no setting makes a wrong answer right",
  },
  {
    knob: "--kv-cache-dtype auto",
    change: "keep the KV cache in the model's own type until it is fixed",
    because: "known bugs of this kind need a narrowed cache together with prefix caching (vllm#50702)",
  },
  {
    knob: "--no-enable-prefix-caching",
    change: "serve without the prefix cache until it is fixed",
    because: "it takes away shared blocks, at the price of computing prompts again",
  },
  {
    knob: "VLLM_BATCH_INVARIANT=1",
    change: "on vLLM, ask for kernels whose results do not depend on the batch",
    because: "it tells rounding apart from wrong blocks",
  },
];

function moreCases(pairs: number, isBurst: boolean): Advice {
  if (isBurst)
    return {
      knob: "cases",
      change: "run more cases within the burst, or a longer burst",
      because: "the intervals still reach past the margins",
    };
  const because = "only cases that lost blocks say what losing blocks does";
  if (pairs > 0) return { knob: "cases", change: "run more cases, and longer answers", because };
  const change =
    "serve with fault injection (Octavo), or let the check send cached and uncached pairs (cache_salt)";
  return { knob: "--enable-fault-injection", change, because };
}
