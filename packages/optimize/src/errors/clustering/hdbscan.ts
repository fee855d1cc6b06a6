import { OctavoError } from "@octavo/protocol";

export interface HdbscanOptions {
  /** Fewest points, counted by weight, that are a cluster. Default 2. */
  readonly minClusterSize?: number;
  /** Clusters nearer to each other than this are one (Malzer and Baum 2020). Default 0. */
  readonly epsilon?: number;
}

/** Points as rows of one matrix. Equal points may be one row with a weight. */
export interface WeightedPoints {
  readonly values: Float32Array;
  readonly dimensions: number;
  readonly weights: readonly number[];
}

/** In the hierarchy: a cluster, and the density at which it appears. */
interface CondensedCluster {
  readonly parent: number;
  readonly birth: number;
  readonly children: number[];
  stability: number;
  /** That leave it on their own, and the density at which they do. */
  readonly points: { readonly point: number; readonly density: number }[];
}

interface Edge {
  readonly first: number;
  readonly second: number;
  readonly distance: number;
}

/**
 * HDBSCAN* (Campello, Moulavi and Sander 2013) with one neighbour as its density, Euclidean, clusters by excess of mass; all points
 * may be one cluster. Labels are from 0 on, -1 is noise. The labels depend on the order of the points only where distances tie: callers that want none sort
 * the points first. Time: quadratic in the rows. Throws `invalid_option`.
 */
export function hdbscan(
  points: WeightedPoints,
  { minClusterSize = 2, epsilon = 0 }: HdbscanOptions = {},
): Int32Array {
  const count = points.weights.length;
  if (points.values.length !== count * points.dimensions)
    throw new OctavoError(
      "invalid_option",
      `${points.values.length} values are not ${count} rows of ${points.dimensions}.`,
      { param: "values" },
    );
  const labels = new Int32Array(count).fill(-1);
  if (count === 0) return labels;
  const edges = spanningTree(points);
  const clusters = condense(edges, points.weights, minClusterSize);
  for (const [label, cluster] of chosen(clusters, epsilon).entries())
    for (const { point, density } of pointsBelow(clusters, cluster))
      // everything is below the root, however far away
      if (cluster > 0 || epsilon <= 0 || density * epsilon >= 1) labels[point] = label;
  return labels;
}

function distance({ values, dimensions }: WeightedPoints, first: number, second: number): number {
  let sum = 0;
  const a = first * dimensions;
  const b = second * dimensions;
  for (let i = 0; i < dimensions; i++) {
    const difference = values[a + i]! - values[b + i]!;
    sum += difference * difference;
  }
  return Math.sqrt(sum);
}

/** Minimum spanning tree of the distances, by Prim's algorithm; edges from the shortest on. */
function spanningTree(points: WeightedPoints): Edge[] {
  const count = points.weights.length;
  const nearest = new Float64Array(count).fill(Infinity);
  const from = new Int32Array(count);
  const inTree = new Uint8Array(count);
  const edges: Edge[] = [];
  let current = 0;
  for (let step = 1; step < count; step++) {
    inTree[current] = 1;
    let next = -1;
    for (let other = 0; other < count; other++) {
      if (inTree[other]) continue;
      const reach = distance(points, current, other);
      if (reach < nearest[other]!) {
        nearest[other] = reach;
        from[other] = current;
      }
      if (next === -1 || nearest[other]! < nearest[next]!) next = other;
    }
    edges.push({ first: from[next]!, second: next, distance: nearest[next]! });
    current = next;
  }
  return edges.toSorted((a, b) => a.distance - b.distance);
}

/** A node of the dendrogram: a point, or two nodes joined at a distance. */
interface Join {
  readonly left: number;
  readonly right: number;
  readonly distance: number;
  readonly weight: number;
}

function condense(
  edges: readonly Edge[],
  weights: readonly number[],
  minClusterSize: number,
): CondensedCluster[] {
  const count = weights.length;
  const joins: Join[] = [];
  const root = Int32Array.from({ length: count + edges.length }, (_, node) => node);
  const find = (node: number): number => {
    while (root[node] !== node) {
      root[node] = root[root[node]!]!;
      node = root[node]!;
    }
    return node;
  };
  const weightOf = (node: number) => (node < count ? weights[node]! : joins[node - count]!.weight);
  for (const edge of edges) {
    const [left, right] = [find(edge.first), find(edge.second)];
    root[left] = count + joins.length;
    root[right] = count + joins.length;
    joins.push({ left, right, distance: edge.distance, weight: weightOf(left) + weightOf(right) });
  }
  const clusters: CondensedCluster[] = [newCluster(-1, 0)];
  const waiting: [node: number, cluster: number][] = [[count + joins.length - 1, 0]];
  const leave = (node: number, cluster: number, density: number): void => {
    const nodes = [node];
    for (let at = nodes.pop(); at !== undefined; at = nodes.pop()) {
      if (at >= count) {
        const { left, right } = joins[at - count]!;
        nodes.push(left, right);
        continue;
      }
      clusters[cluster]!.points.push({ point: at, density });
      clusters[cluster]!.stability += gained(density, clusters[cluster]!.birth, weights[at]!);
    }
  };
  for (let entry = waiting.pop(); entry !== undefined; entry = waiting.pop()) {
    const [node, cluster] = entry;
    if (node < count) {
      leave(node, cluster, Infinity);
      continue;
    }
    const { left, right, distance: apart } = joins[node - count]!;
    const density = apart === 0 ? Infinity : 1 / apart;
    const large = [left, right].filter((side) => weightOf(side) >= minClusterSize);
    if (large.length === 2 && density !== Infinity) {
      for (const side of large) {
        clusters[cluster]!.stability += gained(density, clusters[cluster]!.birth, weightOf(side));
        clusters[cluster]!.children.push(clusters.length);
        waiting.push([side, clusters.length]);
        clusters.push(newCluster(cluster, density));
      }
      continue;
    }
    for (const side of [left, right]) {
      if (large.length === 1 && side === large[0]) waiting.push([side, cluster]);
      else leave(side, cluster, density);
    }
  }
  return clusters;
}

/** Densities of equal points are infinite; a finite bound keeps sums comparable. */
const highestDensity = 1e6;

function gained(density: number, birth: number, weight: number): number {
  return (Math.min(density, highestDensity) - Math.min(birth, highestDensity)) * weight;
}

function newCluster(parent: number, birth: number): CondensedCluster {
  return { parent, birth, children: [], stability: 0, points: [] };
}

/** Clusters of most stability that do not contain each other, those nearer than `epsilon` joined. */
function chosen(clusters: readonly CondensedCluster[], epsilon: number): number[] {
  const isChosen = new Uint8Array(clusters.length);
  const best = new Float64Array(clusters.length);
  for (let index = clusters.length - 1; index >= 0; index--) {
    const { children, stability } = clusters[index]!;
    const below = children.reduce((sum, child) => sum + best[child]!, 0);
    const isLeaf = children.length === 0;
    // all points as one cluster say nothing: taken only where nothing splits them
    if (isLeaf || (index > 0 && stability >= below)) {
      isChosen[index] = 1;
      best[index] = stability;
    } else best[index] = below;
  }
  const found = new Set<number>();
  const visit = (index: number): void => {
    if (isChosen[index]) found.add(index);
    else for (const child of clusters[index]!.children) visit(child);
  };
  visit(0);
  if (epsilon <= 0) return [...found];
  const joined = new Set<number>();
  for (const index of found) {
    let at = index;
    // a cluster was born where it split from its parent's other part, at this distance
    while (clusters[at]!.parent !== -1 && 1 / clusters[at]!.birth < epsilon) at = clusters[at]!.parent;
    joined.add(at);
  }
  const isBelowAnother = (index: number): boolean => {
    for (let at = clusters[index]!.parent; at !== -1; at = clusters[at]!.parent)
      if (joined.has(at)) return true;
    return false;
  };
  return [...joined].filter((index) => !isBelowAnother(index)).toSorted((a, b) => a - b);
}

function pointsBelow(clusters: readonly CondensedCluster[], index: number): CondensedCluster["points"] {
  const { points, children } = clusters[index]!;
  return [...points, ...children.flatMap((child) => pointsBelow(clusters, child))];
}
