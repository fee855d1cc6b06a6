import type { Look } from "../judging/sequence-bounds.js";
import { comparePaired, type PairedComparison } from "../judging/paired-comparison.js";
import { evaluatorsOf, type Pair, type ScorePair, scorePairs } from "../judging/pairs.js";
import { marginOf, type QuantizationCheckSettings } from "./settings.js";

/** One evaluator on one slice of the cases. */
export interface Axis {
  /** `tools/tool_call_exact`, or the evaluator's name for cases without a tag of an axis. */
  readonly name: string;
  readonly evaluator: string;
  readonly tag: string | undefined;
  readonly margin: number;
  readonly scored: readonly ScorePair[];
  /** Cases that were scored on one side only. */
  readonly oneSided: number;
  readonly compared: PairedComparison | undefined;
  /** Calls of tools and strict JSON: what quantisation breaks first. */
  readonly isStructured: boolean;
}

const structured = /tool|function|json|schema|extraction/i;

/** Every evaluator that scored something, for every slice that it scored something of. */
export function axesOf(
  pairs: readonly Pair[],
  settings: QuantizationCheckSettings,
  look: Look = "once",
): readonly Axis[] {
  const evaluators = evaluatorsOf(pairs.flatMap(({ before, after }) => [before, after])).filter(
    (name) => name !== settings.preservationEvaluator,
  );
  const slices = new Map<string | undefined, Pair[]>();
  for (const pair of pairs) {
    const tag = settings.axisTags.find((one) => pair.tags.includes(one));
    const slice = slices.get(tag) ?? [];
    slice.push(pair);
    slices.set(tag, slice);
  }
  const axes: Axis[] = [];
  for (const evaluator of evaluators) {
    for (const [tag, slice] of slices) {
      const { scored, oneSided } = scorePairs(slice, evaluator);
      if (scored.length + oneSided === 0) continue;
      const name = tag === undefined ? evaluator : `${tag}/${evaluator}`;
      axes.push({
        name,
        evaluator,
        tag,
        margin: marginOf({ name, evaluator, tag }, settings),
        scored,
        oneSided,
        compared: comparePaired(
          scored.map(({ pair, before, after }) => ({ cluster: pair.cluster, before, after })),
          look,
        ),
        isStructured: structured.test(name),
      });
    }
  }
  return axes;
}
