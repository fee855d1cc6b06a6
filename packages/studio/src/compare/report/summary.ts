import { roleNames, roles } from "../roles/role.js";
import { type Bootstrapped, ClusterBootstrap, type Interval, type Statistic } from "@octavo/statistics";
import type { ScoredTokenTable } from "./token-table.js";

/** A figure and where 95 % of its resamples lie; no interval with fewer than 8 conversations. */
export interface ScoreEstimate {
  readonly value: number;
  readonly interval: Interval | undefined;
}

/** What a group of tokens says. Divergences in nats per token. */
export interface Cell {
  readonly name: string;
  readonly tokens: number;
  readonly conversations: number;
  /** Mean of KL(baseline || variant). */
  readonly kl: ScoreEstimate;
  readonly klQuantiles: {
    readonly p50: number;
    readonly p95: number;
    readonly p99: number;
    readonly max: number;
  };
  /** Share of tokens whose most likely token is another; where none was seen, resampling cannot say how many might be. */
  readonly flips: ScoreEstimate;
  readonly numFlips: number;
  readonly baselinePerplexity: ScoreEstimate;
  readonly variantPerplexity: ScoreEstimate;
  readonly perplexityRatio: ScoreEstimate;
}

export interface Summary {
  readonly overall: Cell;
  readonly byRole: readonly Cell[];
  readonly byPosition: readonly Cell[];
  /** Tokens by the power of ten of their divergence; the last bin has no end. */
  readonly klHistogram: readonly {
    readonly from: number;
    readonly to: number | undefined;
    readonly tokens: number;
  }[];
}

/** Places in an answer; the borders grow as answers thin out. */
export const positionBuckets: readonly (readonly [number, number])[] = [
  [0, 3],
  [4, 15],
  [16, 63],
  [64, 255],
  [256, 1023],
  [1024, Infinity],
];

export function summarise(
  table: ScoredTokenTable,
  numClusters: number,
  bootstrap: ClusterBootstrap,
): Summary {
  const all = Array.from({ length: table.length }, (_, index) => index);
  const cell = (name: string, tokens: readonly number[]): Cell =>
    cellOf(name, tokens, table, numClusters, bootstrap);
  return {
    overall: cell("all tokens", all),
    byRole: roles.flatMap((role, index) => {
      const tokens = all.filter((token) => table.role[token] === index);
      return tokens.length === 0 ? [] : [cell(roleNames[role], tokens)];
    }),
    byPosition: positionBuckets.flatMap(([first, last]) => {
      const tokens = all.filter((token) => {
        const position = table.position[token] ?? 0;
        return position >= first && position <= last;
      });
      return tokens.length === 0
        ? []
        : [cell(last === Infinity ? `${first} on` : `${first} to ${last}`, tokens)];
    }),
    klHistogram: histogramOf(table.kl),
  };
}

const ratio =
  (numerator: number): Statistic =>
  (sums) =>
    sums[numerator]! / sums[0]!;

/** Over sums of [tokens, KL, flips, baseline loss, variant loss]. */
const statistics: readonly Statistic[] = [
  ratio(1),
  ratio(2),
  (sums) => Math.exp(sums[3]! / sums[0]!),
  (sums) => Math.exp(sums[4]! / sums[0]!),
  (sums) => Math.exp((sums[4]! - sums[3]!) / sums[0]!),
];

function cellOf(
  name: string,
  tokens: readonly number[],
  table: ScoredTokenTable,
  numClusters: number,
  bootstrap: ClusterBootstrap,
): Cell {
  const clusters = Array.from({ length: numClusters }, () => [0, 0, 0, 0, 0]);
  let numFlips = 0;
  for (const token of tokens) {
    const sums = clusters[table.cluster[token]!]!;
    const isFlip = table.isFlip[token] === true;
    if (isFlip) numFlips++;
    sums[0]! += 1;
    sums[1]! += table.kl[token]!;
    sums[2]! += isFlip ? 1 : 0;
    sums[3]! += table.baselineLoss[token]!;
    sums[4]! += table.variantLoss[token]!;
  }
  const [kl, flips, baseline, variant, ratioOfBoth] = bootstrap.sample(clusters, statistics).map(estimateOf);
  const sorted = tokens.map((token) => table.kl[token]!).toSorted((a, b) => a - b);
  const quantile = (level: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(level * sorted.length))]!;
  return {
    name,
    tokens: tokens.length,
    conversations: clusters.filter(([count]) => count !== 0).length,
    kl: kl!,
    klQuantiles: { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), max: sorted.at(-1)! },
    flips: numFlips === 0 && !table.isIdentical ? { value: 0, interval: undefined } : flips!,
    numFlips,
    baselinePerplexity: baseline!,
    variantPerplexity: variant!,
    perplexityRatio: ratioOfBoth!,
  };
}

export function estimateOf(bootstrapped: Bootstrapped): ScoreEstimate {
  return { value: bootstrapped.value, interval: bootstrapped.interval() };
}

const lowestPower = -8;
const highestPower = 1;

function histogramOf(values: readonly number[]): Summary["klHistogram"] {
  const bins = Array.from({ length: highestPower - lowestPower + 1 }, () => 0);
  for (const value of values) {
    const power = value === 0 ? lowestPower - 1 : Math.floor(Math.log10(value));
    const bin = Math.min(highestPower, Math.max(lowestPower - 1, power)) - lowestPower + 1;
    if (bin < bins.length) bins[bin]! += 1;
    else bins[bins.length - 1]! += 1;
  }
  return bins.map((tokens, index) => ({
    from: index === 0 ? 0 : 10 ** (lowestPower + index - 1),
    to: index === bins.length - 1 ? undefined : 10 ** (lowestPower + index),
    tokens,
  }));
}
