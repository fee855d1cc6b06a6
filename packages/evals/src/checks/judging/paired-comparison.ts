import {
  type Interval,
  mean,
  mcnemarExact,
  mcnemarNonInferiority,
  studentTCdf,
  studentTQuantile,
} from "@octavo/statistics";
import { type Look, sequenceBounds } from "./sequence-bounds.js";

/** A score of one case before and after, 0 to 1. */
export interface PairedScore {
  readonly cluster: string;
  readonly before: number;
  readonly after: number;
}

/** What became of scores from before to after. Losses are positive: more is worse. */
export interface PairedComparison extends LossBounds {
  readonly count: number;
  readonly numClusters: number;
  readonly meanBefore: number;
  readonly meanAfter: number;
  /** Cases that scored less, and more, after. */
  readonly lost: number;
  readonly gained: number;
  /** `meanBefore - meanAfter`; where `isSequential`, with every cluster counted once. */
  readonly loss: number;
  readonly method: string;
  /** Exact and two-sided, of "as many were lost as gained"; undefined where clusters hold several cases, or `isSequential`. */
  readonly mcnemarPValue: number | undefined;
  readonly isSequential: boolean;
  /** A fixed test of all planned cases is, or will be, looked at as well. */
  readonly hasPlannedLook: boolean;
}

interface LossBounds {
  /** Undefined where one cluster is all there is. */
  intervalAt(confidence: number): Interval | undefined;
  /** Two-sided, of "the loss is at most `margin`": below alpha where the interval at 1 - alpha lies above the margin. */
  pValueBeyond(margin: number): number | undefined;
}

/** With fewer changed clusters than this, a normal approximation to their mean cannot be trusted. */
const fewestChanged = 10;

/** Stands for none where a test wants a margin. */
const smallestMargin = 1e-9;

/**
 * Compares paired scores. Right and wrong answers to independent cases: Tango's score interval (1998). Cases in clusters:
 * the same on counts divided by the design effect (Rao and Scott 1992), widened to Student's interval over clusters. Graded
 * scores: Student's interval over clusters, and while few of them changed at all also Tango's over clusters lost and gained,
 * since a mean of mostly zeros is not normal. Scores that are looked at as they come: a confidence sequence over clusters.
 *
 * @returns undefined without scores
 */
export function comparePaired(
  scores: readonly PairedScore[],
  look: Look = "once",
): PairedComparison | undefined {
  if (scores.length === 0) return undefined;
  const sums = sumClusters(scores);
  if (look !== "once") return compareInSequence(scores, sums, look);
  return compareOnce(scores, sums);
}

function compareOnce(scores: readonly PairedScore[], sums: readonly ClusterSum[]): PairedComparison {
  const count = scores.length;
  const { lost, gained } = countsOf(scores);
  const isBinary = scores.every(({ before, after }) => isZeroOrOne(before) && isZeroOrOne(after));
  const isClustered = sums.length < count;
  const kind = isBinary ? (isClustered ? "clustered" : "plain") : "graded";
  const bounds = { plain: plainBounds, clustered: clusteredBounds, graded: gradedBounds }[kind](scores, sums);
  return {
    ...bounds,
    ...whatChanged(scores, sums),
    loss: mean(scores.map(({ before, after }) => before - after)),
    method: {
      plain: "Tango's paired score interval",
      clustered: "Tango's paired score interval over clusters (design effect), with Student's",
      graded: "Student's interval over clusters",
    }[kind],
    mcnemarPValue: isClustered ? undefined : mcnemarExact({ lost, gained }).pValue,
    isSequential: false,
    hasPlannedLook: false,
  };
}

function compareInSequence(
  scores: readonly PairedScore[],
  sums: readonly ClusterSum[],
  look: Look,
): PairedComparison {
  const losses = sums.map(({ sum, size }) => sum / size);
  const sequence = sequenceBounds(losses);
  const hasPlannedLook = look !== "any";
  const shared = {
    ...whatChanged(scores, sums),
    loss: mean(losses),
    mcnemarPValue: undefined,
    isSequential: true,
    hasPlannedLook,
  };
  const method = "confidence sequence by betting";
  if (!hasPlannedLook) return { ...sequence, ...shared, method };
  if (look === "early") return { ...eitherOf(sequence, noBounds), ...shared, method };
  const fixed = compareOnce(scores, sums);
  return {
    ...eitherOf(sequence, fixed),
    ...shared,
    method: `${method}, and at the planned look ${fixed.method}, at half of alpha each`,
  };
}

/** Bounds of two looks that each have half of what may go wrong: what either excludes is excluded. */
function eitherOf(one: LossBounds, other: LossBounds): LossBounds {
  return {
    intervalAt(confidence) {
      const each = (1 + confidence) / 2;
      const [left, right] = [one.intervalAt(each), other.intervalAt(each)];
      if (left === undefined || right === undefined) return left ?? right;
      const both = [Math.max(left[0], right[0]), Math.min(left[1], right[1])] as const;
      // where they exclude each other, neither is believed more
      return both[0] <= both[1] ? both : left;
    },
    pValueBeyond(margin) {
      const values = [one, other].flatMap((bounds) => bounds.pValueBeyond(margin) ?? []);
      return values.length === 0 ? undefined : Math.min(1, 2 * Math.min(...values));
    },
  };
}

function whatChanged(
  scores: readonly PairedScore[],
  sums: readonly ClusterSum[],
): Pick<PairedComparison, "count" | "numClusters" | "meanBefore" | "meanAfter" | "lost" | "gained"> {
  const { lost, gained } = countsOf(scores);
  return {
    count: scores.length,
    numClusters: sums.length,
    meanBefore: mean(scores.map(({ before }) => before)),
    meanAfter: mean(scores.map(({ after }) => after)),
    lost,
    gained,
  };
}

interface ClusterSum {
  readonly size: number;
  /** Sum of the losses. */
  readonly sum: number;
}

interface Counts {
  readonly both: number;
  readonly lost: number;
  readonly gained: number;
  readonly neither: number;
}

function plainBounds(scores: readonly PairedScore[]): LossBounds {
  return tangoBounds(countsOf(scores));
}

function clusteredBounds(scores: readonly PairedScore[], sums: readonly ClusterSum[]): LossBounds {
  if (sums.length < 2) return noBounds;
  const count = scores.length;
  const losses = scores.map(({ before, after }) => before - after);
  const center = mean(losses);
  const simple = losses.reduce((sum, loss) => sum + (loss - center) ** 2, 0) / (count * (count - 1));
  const error = clusterError(sums, count);
  const designEffect = simple === 0 ? count / sums.length : Math.max(1, error ** 2 / simple);
  const { lost, gained, both, neither } = countsOf(scores);
  const divided = (value: number): number => Math.round(value / designEffect);
  const counts = {
    lost: divided(lost),
    gained: divided(gained),
    both: divided(both),
    neither: divided(neither),
  };
  return widest(
    tangoBounds(total(counts) > 0 ? counts : { ...counts, both: 1 }),
    studentBounds(center, error, sums.length),
  );
}

function gradedBounds(scores: readonly PairedScore[], sums: readonly ClusterSum[]): LossBounds {
  if (sums.length < 2) return noBounds;
  const center = mean(scores.map(({ before, after }) => before - after));
  const student = studentBounds(center, clusterError(sums, scores.length), sums.length);
  const lost = sums.filter(({ sum }) => sum > 0).length;
  const gained = sums.filter(({ sum }) => sum < 0).length;
  if (lost + gained >= fewestChanged) return student;
  return widest(student, tangoBounds({ lost, gained, both: sums.length - lost - gained, neither: 0 }));
}

function tangoBounds(counts: Counts): LossBounds {
  return {
    intervalAt(confidence) {
      const { interval } = mcnemarNonInferiority(counts, { margin: 0.5, alpha: (1 - confidence) / 2 });
      // it counts gains less losses
      return [-interval[1], -interval[0]];
    },
    pValueBeyond(margin) {
      if (margin >= 1) return 1;
      const tested = mcnemarNonInferiority(counts, { margin: Math.max(margin, smallestMargin) });
      return Math.min(1, 2 * tested.inferiorityPValue);
    },
  };
}

function studentBounds(center: number, error: number, numClusters: number): LossBounds {
  const degreesOfFreedom = numClusters - 1;
  return {
    intervalAt(confidence) {
      const reach = error === 0 ? 0 : error * studentTQuantile((1 + confidence) / 2, degreesOfFreedom);
      return [Math.max(-1, center - reach), Math.min(1, center + reach)];
    },
    pValueBeyond(margin) {
      if (error === 0) return center > margin ? 0 : 1;
      return Math.min(1, 2 * studentTCdf((margin - center) / error, degreesOfFreedom));
    },
  };
}

/** The interval that holds both, and its p value. */
function widest(one: LossBounds, other: LossBounds): LossBounds {
  return {
    intervalAt(confidence) {
      const [left, right] = [one.intervalAt(confidence), other.intervalAt(confidence)];
      if (left === undefined || right === undefined) return undefined;
      return [Math.min(left[0], right[0]), Math.max(left[1], right[1])];
    },
    pValueBeyond: (margin) => Math.max(one.pValueBeyond(margin) ?? 1, other.pValueBeyond(margin) ?? 1),
  };
}

const noBounds: LossBounds = { intervalAt: () => undefined, pValueBeyond: () => undefined };

function sumClusters(scores: readonly PairedScore[]): readonly ClusterSum[] {
  const sums = new Map<string, { size: number; sum: number }>();
  for (const { cluster, before, after } of scores) {
    const own = sums.get(cluster) ?? { size: 0, sum: 0 };
    own.size += 1;
    own.sum += before - after;
    sums.set(cluster, own);
  }
  return [...sums.values()];
}

function countsOf(scores: readonly PairedScore[]): Counts {
  const counts = { both: 0, lost: 0, gained: 0, neither: 0 };
  for (const { before, after } of scores) {
    if (before > after) counts.lost += 1;
    else if (after > before) counts.gained += 1;
    else if (after > 0) counts.both += 1;
    else counts.neither += 1;
  }
  return counts;
}

function total({ both, lost, gained, neither }: Counts): number {
  return both + lost + gained + neither;
}

/** Standard error of the mean over clusters, with the correction for their number (CR1). */
function clusterError(sums: readonly ClusterSum[], count: number): number {
  const center = sums.reduce((all, { sum }) => all + sum, 0) / count;
  const squares = sums.reduce((all, { sum, size }) => all + (sum - size * center) ** 2, 0);
  return Math.sqrt((squares * sums.length) / (sums.length - 1)) / count;
}

function isZeroOrOne(value: number): boolean {
  return value === 0 || value === 1;
}
