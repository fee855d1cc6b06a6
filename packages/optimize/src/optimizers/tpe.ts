import type { Random } from "@octavo/statistics";

/** A tried set of items with its score; more is better. */
export interface Trial {
  readonly items: readonly number[];
  readonly score: number;
}

export interface SetSpace {
  readonly numItems: number;
  readonly minSize: number;
  readonly maxSize: number;
}

export interface TpeOptions {
  /** Share of the trials that count as good. */
  readonly gamma: number;
  /** Sets drawn before one is proposed. */
  readonly draws: number;
  /** Random sets before the first proposal. */
  readonly startup: number;
}

/**
 * The next set to try, by a tree-structured Parzen estimator (Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization"):
 * trials are divided into good and bad by their score, each half gives a density, sets are drawn from the good one, and the one with
 * the highest ratio of good to bad density is proposed. The density of a set is that of its size, with a prior of one trial spread
 * over all sizes, times that of each item's being in it or not, with a prior of half a trial each.
 */
export function proposeSet(
  trials: readonly Trial[],
  space: SetSpace,
  options: TpeOptions,
  random: Random,
): readonly number[] {
  if (trials.length < options.startup) return randomSet(space, random);
  const sorted = trials.toSorted((a, b) => b.score - a.score);
  const numGood = Math.max(1, Math.ceil(options.gamma * sorted.length));
  const good = densityOf(sorted.slice(0, numGood), space);
  const bad = densityOf(sorted.slice(numGood), space);
  const tried = new Set(trials.map(({ items }) => keyOf(items)));
  let best: { readonly items: readonly number[]; readonly ratio: number } | undefined;
  for (let draw = 0; draw < options.draws; draw += 1) {
    const items = drawSet(good, space, random);
    if (tried.has(keyOf(items))) continue;
    const ratio = good.logOf(items) - bad.logOf(items);
    if (best === undefined || ratio > best.ratio) best = { items, ratio };
  }
  return best?.items ?? randomSet(space, random);
}

interface SetDensity {
  readonly sizes: readonly number[];
  /** Probability of each item to be in the set. */
  readonly inclusion: readonly number[];
  logOf(items: readonly number[]): number;
}

function densityOf(trials: readonly Trial[], { numItems, minSize, maxSize }: SetSpace): SetDensity {
  const numSizes = maxSize - minSize + 1;
  const sizes = Array.from({ length: numSizes }, (_, at) => {
    const seen = trials.filter(({ items }) => items.length === minSize + at).length;
    return (seen + 1 / numSizes) / (trials.length + 1);
  });
  const inclusion = Array.from({ length: numItems }, (_, item) => {
    const seen = trials.filter(({ items }) => items.includes(item)).length;
    return (seen + 0.5) / (trials.length + 1);
  });
  return {
    sizes,
    inclusion,
    logOf(items) {
      const chosen = new Set(items);
      const ofItems = inclusion.reduce((sum, p, item) => sum + Math.log(chosen.has(item) ? p : 1 - p), 0);
      return ofItems + Math.log(sizes[items.length - minSize] ?? 1e-9);
    },
  };
}

/** A size of the density, then items one by one, each as likely as its odds. */
function drawSet({ sizes, inclusion }: SetDensity, { minSize }: SetSpace, random: Random): readonly number[] {
  const size = minSize + weighted(sizes, random);
  const left = inclusion.map((p) => p / (1 - p));
  const items: number[] = [];
  while (items.length < size) {
    const item = weighted(left, random);
    items.push(item);
    left[item] = 0;
  }
  return items;
}

function weighted(weights: readonly number[], random: Random): number {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let at = random.uniform() * total;
  for (const [index, weight] of weights.entries()) {
    at -= weight;
    if (at < 0 && weight > 0) return index;
  }
  return weights.findLastIndex((weight) => weight > 0);
}

function randomSet({ numItems, minSize, maxSize }: SetSpace, random: Random): readonly number[] {
  const size = random.integer(minSize, maxSize);
  return random.shuffle([...Array(numItems).keys()]).slice(0, size);
}

/** Sets are equal whatever the order of their items. */
function keyOf(items: readonly number[]): string {
  return items.toSorted((a, b) => a - b).join(" ");
}
