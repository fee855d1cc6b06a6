import {
  type Interval,
  newcombeDifference,
  normalCdf,
  studentTCdf,
  studentTQuantile,
  wilsonInterval,
} from "@octavo/statistics";

/** A score, 0 to 1, of something that depends on the others of its cluster. */
export interface ClusteredScore {
  readonly cluster: string;
  readonly value: number;
}

/** A mean over clusters. Each cluster's sum and size are kept, so that differences of means that share clusters are right. */
export interface ClusterMean {
  readonly mean: number;
  readonly count: number;
  readonly clusters: ReadonlyMap<string, ClusterTotal>;
}

interface ClusterTotal {
  readonly size: number;
  readonly sum: number;
}

/** With fewer clusters away from the commonest mean than this, a normal approximation cannot be trusted. */
const fewestDiffering = 10;

export function clusterMean(scores: readonly ClusteredScore[]): ClusterMean | undefined {
  if (scores.length === 0) return undefined;
  const clusters = new Map<string, { size: number; sum: number }>();
  let sum = 0;
  for (const { cluster, value } of scores) {
    const own = clusters.get(cluster) ?? { size: 0, sum: 0 };
    own.size += 1;
    own.sum += value;
    sum += value;
    clusters.set(cluster, own);
  }
  return { mean: sum / scores.length, count: scores.length, clusters };
}

/** Student's interval over clusters; Wilson's over clusters where too few differ from each other. Undefined for one cluster. */
export function meanIntervalOver(mean: ClusterMean, confidence: number): Interval | undefined {
  const numClusters = mean.clusters.size;
  if (numClusters < 2) return undefined;
  const error = errorOf([mean]);
  const reach = error * studentTQuantile((1 + confidence) / 2, numClusters - 1);
  const student: Interval = [Math.max(0, mean.mean - reach), Math.min(1, mean.mean + reach)];
  if (numDiffering(mean) >= fewestDiffering) return student;
  const wilson = wilsonInterval(Math.round(mean.mean * numClusters), numClusters, confidence);
  return [Math.min(student[0], wilson[0]), Math.max(student[1], wilson[1])];
}

/** How far one mean lies below another, with what it takes to hold that against a margin. */
interface Drop {
  readonly drop: number;
  readonly interval: Interval | undefined;
  /** Two-sided, of "the drop is at most `margin`". */
  readonly pValue: number | undefined;
}

/**
 * The difference of two means whose observations may share clusters, such as early and late parts of one answer: a
 * regression on the group with cluster-robust error (Liang and Zeger 1986, CR1), widened to Newcombe's interval for
 * independent proportions of clusters (1998, method 10) where too few clusters differ for a normal approximation.
 */
export function dropBelow(
  reference: ClusterMean,
  cell: ClusterMean,
  margin: number,
  confidence: number,
): Drop {
  const drop = reference.mean - cell.mean;
  const smaller = Math.min(reference.clusters.size, cell.clusters.size);
  if (smaller < 2) return { drop, interval: undefined, pValue: undefined };
  const error = errorOf([reference, cell]);
  const degreesOfFreedom = smaller - 1;
  const reach = error * studentTQuantile((1 + confidence) / 2, degreesOfFreedom);
  const student: Interval = [Math.max(-1, drop - reach), Math.min(1, drop + reach)];
  const pStudent =
    error === 0
      ? Number(drop <= margin)
      : Math.min(1, 2 * studentTCdf((margin - drop) / error, degreesOfFreedom));
  if (Math.min(numDiffering(reference), numDiffering(cell)) >= fewestDiffering)
    return { drop, interval: student, pValue: pStudent };
  const sides = [reference, cell].map(({ mean, clusters }) => ({
    successes: Math.round(mean * clusters.size),
    trials: clusters.size,
  }));
  const [high, low] = sides as [(typeof sides)[0], (typeof sides)[0]];
  const [from, to] = newcombeDifference(high, low, confidence).interval;
  const z = (high.successes / high.trials - low.successes / low.trials - margin) / shareError(high, low);
  return {
    drop,
    interval: [Math.min(student[0], from), Math.max(student[1], to)],
    pValue: Math.max(pStudent, Math.min(1, 2 * normalCdf(-z))),
  };
}

interface Share {
  readonly successes: number;
  readonly trials: number;
}

/** Standard error of a difference of independent shares, each with one more success and failure, so that it is never zero. */
function shareError(...shares: readonly Share[]): number {
  const variances = shares.map(({ successes, trials }) => {
    const share = (successes + 1) / (trials + 2);
    return (share * (1 - share)) / trials;
  });
  return Math.sqrt(variances.reduce((sum, variance) => sum + variance, 0));
}

/** Standard error of a mean, or of the first mean less the second, from the residuals summed by cluster. */
function errorOf([first, second]: readonly ClusterMean[]): number {
  const residuals = new Map<string, number>();
  for (const [mean, sign] of [
    [first, 1],
    [second, -1],
  ] as const) {
    for (const [cluster, { size, sum }] of mean?.clusters ?? []) {
      const residual = (sign * (sum - size * mean!.mean)) / mean!.count;
      residuals.set(cluster, (residuals.get(cluster) ?? 0) + residual);
    }
  }
  const squares = [...residuals.values()].reduce((sum, residual) => sum + residual ** 2, 0);
  return Math.sqrt((squares * residuals.size) / Math.max(1, residuals.size - 1));
}

/** Clusters whose mean is not the commonest one. */
function numDiffering({ clusters }: ClusterMean): number {
  const counts = new Map<number, number>();
  for (const { size, sum } of clusters.values()) {
    const mean = sum / size;
    counts.set(mean, (counts.get(mean) ?? 0) + 1);
  }
  return clusters.size - Math.max(0, ...counts.values());
}
