import type { Advice, Hypothesis } from "../check.js";
import { points } from "../judging/loss-effect.js";
import type { Pair } from "../judging/pairs.js";
import { burstFacts, burstSummary, poolAdvice } from "./burst.js";
import { collectBurst } from "./collect-burst.js";
import { collectEviction } from "./collect.js";
import { evictionCheckBy, type SeenEviction } from "./disturbance.js";
import { evictionBurstSettings, evictionSettings } from "./settings.js";

/** Blocks are taken away at a chosen token of the answer. */
export const evictionCheck = evictionCheckBy({
  name: "eviction",
  question: "Does evicting cached blocks in the middle of an answer change the answer?",
  settings: evictionSettings,
  collect: collectEviction,
  title: "Evicted against kept",
  conditions: ({ kept, keptAgain, evicted }) => [kept, keptAgain, evicted],
  isDisturbed: wasEvicted,
  besides: (observations, _settings, pairs) => ({
    effects: [],
    inCurve: observations,
    figures: [],
    notes: [
      !observations.some(({ cacheHitRatio }) => cacheHitRatio !== undefined) &&
        "no observation says how much of its prompt was cached: the published curve is empty",
      pairs === 0 &&
        observations.length > 0 &&
        "recorded traffic alone cannot tell what eviction does: hit ratio goes with length and novelty",
    ],
  }),
  summary: evictionSummary,
  advice: ({ verdict, pairs }) =>
    verdict === "fail" ? engineBugAdvice : verdict === "pass" ? [] : moreEvictions(pairs),
});

/** A burst of long prompts takes the blocks, and shows whether the pool is large enough for it. */
export const evictionBurstCheck = evictionCheckBy({
  name: "eviction-burst",
  question:
    "Does a burst of long prompts push running requests out of the KV cache, and does that change answers?",
  settings: evictionBurstSettings,
  collect: collectBurst,
  title: "Within the burst",
  conditions: ({ quiet, quietAgain, burst }) => [quiet, quietAgain, burst],
  besides: burstFacts,
  summary: burstSummary,
  advice({ ofAnswers, ofBesides, verdict }) {
    const has = (judged: readonly Hypothesis[]) => judged.some((one) => one.verdict === "fail");
    return [
      ...(has(ofAnswers) ? engineBugAdvice : []),
      ...(has(ofBesides) ? poolAdvice : []),
      ...(verdict === "inconclusive" ? moreCases : []),
    ];
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

function evictionSummary({
  same: { compared, readable, differing, isPromised },
  ofAnswers: hypotheses,
  pairs,
}: SeenEviction): string {
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

const moreCases: readonly Advice[] = [
  {
    knob: "cases",
    change: "run more cases within the burst, or a longer burst",
    because: "the intervals still reach past the margins",
  },
];
