import { clopperPearson } from "@octavo/statistics";
import type { MovedCase } from "../check.js";
import { comparePaired } from "../judging/paired-comparison.js";
import { evaluatorsOf, type Pair, type Pairing, type ScorePair, scorePairs } from "../judging/pairs.js";
import { lossEffect, type Planned, points } from "../judging/loss-effect.js";
import { marginEffect, type TestedEffect } from "../judging/verdicts.js";

interface SameAnswersLimits {
  readonly alpha: number;
  /** Share of answers that may differ where nothing shows that they were worth as much. */
  readonly differenceMargin: number;
  /** Loss of a score that is accepted. */
  readonly margin: number;
  /** With more pairs unreadable or scored on one side only than this share, nothing is shown to be within a margin. */
  readonly maxMissingShare: number;
}

export interface SameAnswers {
  readonly effects: readonly TestedEffect[];
  readonly planned: readonly Planned[];
  readonly moved: readonly MovedCase[];
  readonly compared: number;
  /** Pairs of which outputs or digests are known on both sides. */
  readonly readable: number;
  readonly differing: number;
  /** Whether the server promises the same bits, so that one difference is a bug. */
  readonly isPromised: boolean;
  readonly notes: readonly string[];
}

/**
 * Are answers under a disturbance the answers without it? Equality comes first: a server that digests its logits promises
 * the same bits, and one difference is a bug. Elsewhere near-ties may flip by rounding, and what counts is whether
 * the answers that differ score worse; those that do not differ score the same, whatever a judge's mood was. Where neither outputs nor
 * digests are known nothing says that answers are equal.
 *
 * @param repeated the same pairing without any disturbance: how often answers differ anyway
 */
export function compareAnswers(
  disturbed: Pairing,
  repeated: Pairing | undefined,
  { alpha, differenceMargin, margin, maxMissingShare }: SameAnswersLimits,
): SameAnswers {
  const { pairs } = disturbed;
  const readable = pairs.filter(isReadable);
  const differing = readable.filter(differs);
  const isPromised =
    pairs.length > 0 &&
    pairs.every(({ before, after }) => before.logitsDigest !== undefined && after.logitsDigest !== undefined);
  const evaluators = evaluatorsOf(pairs.flatMap(({ before, after }) => [before, after]));
  const notes: string[] = [];
  const effects: TestedEffect[] = [];
  const planned: Planned[] = [];
  const unreadable = pairs.length - readable.length;
  if (unreadable > 0)
    notes.push(
      `${unreadable} of ${pairs.length} pairs lack outputs and digests: whether their answers are equal is not known`,
    );
  if (readable.length > 0) notes.push(...repeatNotes(repeated, differing.length, readable.length));
  if (isPromised || (evaluators.length === 0 && readable.length > 0)) {
    const interval = clopperPearson(differing.length, readable.length, 1 - alpha);
    const isBroken = isPromised && differing.length > 0;
    effects.push(
      marginEffect(
        {
          name: isPromised ? "answers that differ, bit for bit" : "answers that differ",
          method: `equality of ${isPromised ? "logits" : "outputs"}; Clopper-Pearson`,
          estimate: differing.length / readable.length,
          interval,
          pValue: isBroken ? 0 : 1,
          isWithin: interval[1] <= differenceMargin && unreadable <= maxMissingShare * pairs.length,
        },
        { margin: isBroken ? 0 : differenceMargin, alpha },
      ),
    );
    planned.push({
      name: "equality",
      compared: comparePaired(
        readable.map((pair) => ({ cluster: pair.cluster, before: 1, after: Number(!differs(pair)) })),
      )!,
      margin: differenceMargin,
      isEquality: true,
    });
  }
  const axes: { name: string; scored: readonly ScorePair[] }[] = [];
  for (const evaluator of evaluators) {
    const { scored, oneSided } = scorePairs(pairs, evaluator);
    const settled = scored.map((one) =>
      isReadable(one.pair) && !differs(one.pair) ? { ...one, after: one.before } : one,
    );
    axes.push({ name: evaluator, scored: settled });
    if (oneSided > 0) notes.push(`${evaluator}: ${oneSided} cases were scored on one side only: left out`);
    const compared = comparePaired(
      settled.map(({ pair, before, after }) => ({ cluster: pair.cluster, before, after })),
    );
    // where the promise is kept there is nothing left to test
    if (compared === undefined || (isPromised && differing.length === 0)) continue;
    const effect = lossEffect(`${evaluator}: loss`, compared, { margin, alpha });
    const isWhole = oneSided <= maxMissingShare * (scored.length + oneSided);
    effects.push({ ...effect, isWithin: effect.isWithin && isWhole });
    planned.push({ name: evaluator, compared, margin });
  }
  return {
    effects,
    planned,
    moved: movedAnswers(differing, axes),
    compared: pairs.length,
    readable: readable.length,
    differing: differing.length,
    isPromised,
    notes,
  };
}

function isReadable({ before, after }: Pair): boolean {
  const hasDigests = before.logitsDigest !== undefined && after.logitsDigest !== undefined;
  return hasDigests || (before.output !== undefined && after.output !== undefined);
}

/** By the digests of the logits where both are known, else by the output; unknown outputs do not differ. */
export function differs({ before, after }: Pair): boolean {
  if (before.logitsDigest !== undefined && after.logitsDigest !== undefined)
    return before.logitsDigest !== after.logitsDigest;
  return before.output !== undefined && after.output !== undefined && before.output !== after.output;
}

/** Index of the first character that differs; the shorter one's length where one begins the other. */
export function firstDifference(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  let at = 0;
  while (at < length && one[at] === other[at]) at++;
  return at;
}

/** Index of the first output token whose logits differ; undefined where digests do not say. */
function firstToken({ before, after }: Pair): number | undefined {
  if (before.logitsDigest === undefined || after.logitsDigest === undefined) return undefined;
  const [one, other] = [before.logitsDigest.split(" "), after.logitsDigest.split(" ")];
  const at = one.findIndex((digest, index) => digest !== other[index]);
  return at < 0 ? one.length : at;
}

function repeatNotes(repeated: Pairing | undefined, differing: number, compared: number): readonly string[] {
  if (repeated === undefined || repeated.pairs.length === 0)
    return differing === 0
      ? []
      : ["nothing was repeated undisturbed: whether answers differ from run to run anyway is not known"];
  const again = repeated.pairs.filter(isReadable);
  if (again.length === 0) return [];
  const differingAgain = again.filter(differs).length;
  return [
    `${differing} of ${compared} answers differ; undisturbed, ${differingAgain} of ${again.length} differ from run to run (${points(differingAgain / again.length)} %)`,
  ];
}

function movedAnswers(
  differing: readonly Pair[],
  axes: readonly { readonly name: string; readonly scored: readonly ScorePair[] }[],
): readonly MovedCase[] {
  return differing.map((pair) => {
    const lost = axes.flatMap(({ name, scored }) =>
      scored.flatMap((one) => (one.pair === pair && one.before !== one.after ? [{ name, ...one }] : [])),
    );
    const { before, after } = pair;
    const token = firstToken(pair);
    const at = [
      ...(token === undefined ? [] : [`other logits from token ${token} on`]),
      before.output === undefined || after.output === undefined || before.output === after.output
        ? "the text does not differ"
        : `the text parts at character ${firstDifference(before.output, after.output)}`,
    ];
    const scores = lost.map(({ name, before: was, after: is }) => `${name}: ${was} → ${is}`);
    return {
      caseId: pair.caseId,
      what: [...at, ...scores].join("; "),
      before: before.output,
      after: after.output,
      severity: lost.reduce((sum, one) => sum + one.before - one.after, 0),
    };
  });
}
