import type { Advice, Hypothesis } from "../check.js";
import { defineCheck } from "../define-check.js";
import { collectEviction } from "./collect.js";
import { disturbNothing } from "../judging/placebos.js";
import { cacheHitCurve } from "./cache-buckets.js";
import { intervalsFigure } from "../judging/figures.js";
import { planPairs, points } from "../judging/loss-effect.js";
import { type Pair, pairConditions } from "../judging/pairs.js";
import { compareAnswers, type SameAnswers } from "./same-answers.js";
import { decide, overallVerdict } from "../judging/verdicts.js";
import { evictionSettings } from "./settings.js";

/**
 * Does losing cached blocks change an answer? In a correct engine it costs time and nothing else, so every case is run with
 * its blocks kept and with its blocks taken away at a chosen token, and the two are compared for equality. The published
 * curve of scores by cache hit ratio is shown for comparison: long and rare prompts hit less and are harder, whatever the cache does.
 */
export const evictionCheck = defineCheck({
  name: "eviction",
  question: "Does evicting cached blocks in the middle of an answer change the answer?",
  settings: evictionSettings,
  needs: ["cases"],
  collect: collectEviction,
  placebo: ({ kept, keptAgain, evicted }) => disturbNothing(kept, keptAgain, evicted),
  judge(observations, settings) {
    const all = pairConditions(observations, settings.kept, settings.evicted);
    const affected = all.pairs.filter(wasEvicted);
    const again = pairConditions(observations, settings.kept, settings.keptAgain);
    const same = compareAnswers({ ...all, pairs: affected }, again, settings);
    const hypotheses = decide(same.effects, settings.alpha);
    const verdict = overallVerdict(hypotheses, all.missingShare <= settings.maxMissingShare);
    return {
      verdict,
      summary: summaryOf(same, hypotheses, all.pairs.length),
      ruleOfThumb: cacheHitCurve(observations, {
        high: settings.highHitRatio,
        medium: settings.mediumHitRatio,
        cliff: settings.cliff,
      }),
      hypotheses,
      sampleSize: planPairs(same.planned, settings),
      advice:
        verdict === "fail" ? engineBugAdvice : verdict === "pass" ? [] : moreEvictions(all.pairs.length),
      movedCases: same.moved,
      figures: intervalsFigure("Evicted against kept", "share", hypotheses),
      notes: [
        !observations.some(({ cacheHitRatio }) => cacheHitRatio !== undefined) &&
          "no observation says how much of its prompt was cached: the published curve is empty",
        all.pairs.length > affected.length &&
          `${all.pairs.length - affected.length} of ${all.pairs.length} cases lost no block and are left out`,
        all.pairs.length === 0 &&
          observations.length > 0 &&
          "recorded traffic alone cannot tell what eviction does: hit ratio goes with length and novelty",
        ...all.notes,
        ...same.notes,
      ],
    };
  },
});

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

function summaryOf(
  { compared, readable, differing, isPromised }: SameAnswers,
  hypotheses: readonly Hypothesis[],
  pairs: number,
): string {
  if (compared === 0)
    return pairs === 0
      ? "Nothing was compared: no case was answered both with its blocks kept and with its blocks taken away."
      : `None of ${pairs} cases lost a block: nothing was put to the test.`;
  const failed = hypotheses.find(({ verdict }) => verdict === "fail");
  const unknown = readable === compared ? "" : ` (of ${compared - readable} more it is not known)`;
  const counted = `${differing} of ${readable} answers differ after eviction${unknown}`;
  if (failed !== undefined) {
    return isPromised
      ? `${counted}: recomputing blocks gave other logits, which is a bug of the engine and not of a setting.`
      : `${counted} and score worse (${failed.name} ${points(failed.estimate ?? 0)} points, margin ${points(failed.margin ?? 0)}): eviction must cost time only, so this is a bug of the engine.`;
  }
  if (hypotheses.length > 0 && hypotheses.every(({ verdict }) => verdict === "pass"))
    return `${counted}; what eviction may do to answers is shown to be within the margin.`;
  return `${counted}; more cases are needed to exclude that eviction does harm.`;
}

export const engineBugAdvice: readonly Advice[] = [
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

function moreEvictions(pairs: number): readonly Advice[] {
  return [
    {
      knob: pairs === 0 ? "--enable-fault-injection" : "cases",
      change:
        pairs === 0
          ? "serve with fault injection (Octavo), or let the check send cached and uncached pairs (cache_salt)"
          : "run more cases, and longer answers",
      because: "only cases that lost blocks say what losing blocks does",
    },
  ];
}
