import type { Advice, Chart, Hypothesis, Verdict } from "../check.js";
import { type CheckParts, defineCheck } from "../define-check.js";
import { intervalsFigure } from "../judging/figures.js";
import { planPairs } from "../judging/loss-effect.js";
import { type Pair, pairConditions } from "../judging/pairs.js";
import { disturbNothing } from "../judging/placebos.js";
import { decide, overallVerdict, type TestedEffect } from "../judging/verdicts.js";
import type { Observation } from "../observation.js";
import { cacheHitCurve } from "./cache-buckets.js";
import { compareAnswers, type SameAnswers } from "./same-answers.js";
import type { EvictionFields } from "./settings.js";

/** How a check makes cases lose cached blocks, and what it looks at apart from their answers. */
interface Disturbance<Name extends string, Settings> extends Pick<
  CheckParts<Name, Settings>,
  "name" | "question" | "settings" | "collect"
> {
  readonly title: string;
  /** Conditions: undisturbed, the same once more, disturbed. */
  readonly conditions: (settings: Settings) => readonly [string, string, string];
  /** Whether a pair was put to the test. Default: every pair was. */
  readonly isDisturbed?: (pair: Pair) => boolean;
  readonly besides: (observations: readonly Observation[], settings: Settings, pairs: number) => Besides;
  readonly summary: (seen: SeenEviction) => string;
  readonly advice: (seen: SeenEviction) => readonly Advice[];
}

/** What is judged and shown apart from the answers. */
export interface Besides {
  readonly effects: readonly TestedEffect[];
  /** What the published curve is drawn from. */
  readonly inCurve: readonly Observation[];
  readonly figures: readonly Chart[];
  readonly notes: readonly (string | false | undefined)[];
}

export interface SeenEviction {
  readonly same: SameAnswers;
  /** Of the answers, and of what is judged besides. */
  readonly ofAnswers: readonly Hypothesis[];
  readonly ofBesides: readonly Hypothesis[];
  readonly verdict: Verdict;
  /** Cases answered under both conditions. */
  readonly pairs: number;
}

/**
 * Does losing cached blocks change an answer? In a correct engine it costs time only, so every case runs undisturbed and
 * disturbed, and the two answers are compared for equality. The published curve of scores by cache hit ratio is shown for
 * comparison: long and rare prompts hit less and are harder, whatever the cache does.
 */
export function evictionCheckBy<const Name extends string, Settings extends EvictionFields>({
  title,
  conditions,
  isDisturbed = () => true,
  besides,
  summary,
  advice,
  ...parts
}: Disturbance<Name, Settings>) {
  return defineCheck<Name, Settings>({
    ...parts,
    needs: ["cases"],
    placebo: (settings) => disturbNothing(...conditions(settings)),
    judge(observations, settings) {
      const [undisturbed, repeated, disturbed] = conditions(settings);
      const all = pairConditions(observations, undisturbed, disturbed);
      const affected = all.pairs.filter(isDisturbed);
      const again = pairConditions(observations, undisturbed, repeated);
      const same = compareAnswers({ ...all, pairs: affected }, again, settings);
      const { effects, inCurve, figures, notes } = besides(observations, settings, all.pairs.length);
      const hypotheses = decide([...same.effects, ...effects], settings.alpha);
      const isWhole = same.effects.length > 0 && all.missingShare <= settings.maxMissingShare;
      const verdict = overallVerdict(hypotheses, isWhole);
      const seen = {
        same,
        ofAnswers: hypotheses.slice(0, same.effects.length),
        ofBesides: hypotheses.slice(same.effects.length),
        verdict,
        pairs: all.pairs.length,
      };
      const left = all.pairs.length - affected.length;
      return {
        verdict,
        summary: summary(seen),
        ruleOfThumb: cacheHitCurve(inCurve, {
          high: settings.highHitRatio,
          medium: settings.mediumHitRatio,
          cliff: settings.cliff,
        }),
        hypotheses,
        sampleSize: planPairs(same.planned, settings),
        advice: advice(seen),
        movedCases: same.moved,
        figures: [...intervalsFigure(title, "share", hypotheses), ...figures],
        notes: [
          left > 0 && `${left} of ${all.pairs.length} cases lost no block and are left out`,
          ...all.notes,
          ...same.notes,
          ...notes,
        ],
      };
    },
  });
}
