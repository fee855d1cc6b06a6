import { groupBy, OctavoError } from "@octavo/protocol";

/** How well clusters match known classes. */
export interface ClusterQuality {
  /** Share of members whose true class is their cluster's commonest. */
  readonly purity: number;
  /** Clusters a true class is spread over, on average. */
  readonly fragmentation: number;
}

/** How well clusters are the classes that are known. Throws `invalid_option` on lists of unequal length, or empty ones. */
export function clusterQuality(clusters: readonly string[], classes: readonly string[]): ClusterQuality {
  if (clusters.length !== classes.length || clusters.length === 0)
    throw new OctavoError(
      "invalid_option",
      `${clusters.length} clusters are given for ${classes.length} classes; expected one of each for every member.`,
      { param: "classes" },
    );
  const members = groupBy([...clusters.keys()], (index) => clusters[index]!);
  let pure = 0;
  for (const indices of members.values())
    pure += Math.max(
      ...[...groupBy(indices, (index) => classes[index]!).values()].map(({ length }) => length),
    );
  const spread = groupBy([...classes.keys()], (index) => classes[index]!);
  let pieces = 0;
  for (const indices of spread.values()) pieces += new Set(indices.map((index) => clusters[index]!)).size;
  return { purity: pure / clusters.length, fragmentation: pieces / spread.size };
}
