import { normalQuantile } from "@octavo/statistics";
import type { ClusterMean } from "../judging/cluster-mean.js";

/**
 * Independent cases that a cell needs for an interval that stays within the margin where there is no drop, if the shorter
 * cells grow as it does and vary as they do now; undefined without a margin.
 */
export function clustersForDrop(
  reference: ClusterMean,
  cell: ClusterMean,
  { alpha, power, margin }: { readonly alpha: number; readonly power: number; readonly margin: number },
): number | undefined {
  if (margin <= 0) return undefined;
  const allowed = (margin / (normalQuantile(1 - alpha / 2) + normalQuantile(power))) ** 2;
  const seen = varianceOf(reference) / reference.clusters.size + varianceOf(cell) / cell.clusters.size;
  return Math.ceil((cell.clusters.size * seen) / allowed);
}

/** Between clusters' means; of a cell where nothing varies, that of one differing case in two more. */
function varianceOf({ clusters, mean }: ClusterMean): number {
  const means = [...clusters.values()].map(({ sum, size }) => sum / size);
  const seen = means.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, means.length - 1);
  const share = 1 / (clusters.size + 2);
  return Math.max(seen, share * (1 - share));
}
