import { roleNames, roles } from "../roles/role.js";
import type { Bootstrapped, ClusterBootstrap } from "@octavo/statistics";
import { holm, signTest } from "@octavo/statistics";
import { type ScoreEstimate, estimateOf } from "./summary.js";
import type { ScoredTokenTable } from "./token-table.js";

/**
 * - `identical`: every logit of every scored token is the same number.
 * - `near-lossless`: from one answer nobody can tell which model wrote it, and no kind of answer was lost.
 * - `drift`: the divergence of an answer is beyond that, or answers were lost beyond chance.
 * - `inconclusive`: the data does not decide between the two.
 */
export type VerdictName = "identical" | "near-lossless" | "drift" | "inconclusive";

/** How often a verdict may be wrong by the luck of the data. */
export const errorRate = 0.05;

/**
 * How often an observer who is shown an answer and must say which of the two models wrote it may be right: the usual
 * threshold of a noticeable difference in a forced choice between two, half way from guessing to certainty (Green and
 * Swets 1966).
 */
export const noticeableAccuracy = 0.75;

/**
 * Nats of divergence within one answer up to which no observer, even one who knows all probabilities of both models,
 * reaches that accuracy. The best one is right (1 + TV) / 2 of the time, TV the total variation between the answers'
 * distributions, and TV <= sqrt(KL / 2) (Pinsker). So KL <= 2 (2 accuracy - 1)^2.
 */
export const noticeableNats = 2 * (2 * noticeableAccuracy - 1) ** 2;

/** The best accuracy that a divergence allows: Pinsker's bound, or Bretagnolle and Huber's where that is lower. */
export function accuracyBound(klNats: number): number {
  const kl = Math.max(0, klNats);
  return (1 + Math.min(Math.sqrt(kl / 2), Math.sqrt(1 - Math.exp(-kl)))) / 2;
}

/** Plain text is judged as if it were answers of this many tokens. */
export const plainAnswerTokens = 256;

/** A mean over answers, held against `noticeableNats`. */
export interface DistanceCriterion {
  readonly name: string;
  readonly natsPerAnswer: ScoreEstimate;
  /** One-sided bounds that the verdict reads. */
  readonly atMost: number | undefined;
  readonly atLeast: number | undefined;
}

/** Answers, or their parts of one role, that greedy decoding writes exactly as the data has them. */
export interface ExactnessCriterion {
  readonly name: string;
  readonly answers: number;
  readonly baselineExact: number;
  readonly variantExact: number;
  /** Conversations in which the variant has fewer, and more, of them than the baseline. */
  readonly conversationsLost: number;
  readonly conversationsGained: number;
  /** One-sided exact sign test over those conversations, and as adjusted for the number of tests (Holm). */
  readonly p: number;
  readonly adjustedP: number;
}

export interface ComparisonVerdict {
  readonly verdict: VerdictName;
  readonly reasons: readonly string[];
  readonly noticeableNats: number;
  readonly tokensPerAnswer: number;
  readonly distances: readonly DistanceCriterion[];
  readonly exactness: readonly ExactnessCriterion[];
}

/**
 * Near-lossless needs every distance's upper bound (each at 95 %: all of them must hold, so that the whole errs no more
 * often) under the limit and no loss of exact answers. Drift needs one lower bound above it or one loss; the 5 % are
 * shared, half among the distances, half among the exactness tests.
 */
export function judge(
  table: ScoredTokenTable,
  answers: { readonly count: number; readonly isPlain: readonly boolean[]; readonly numClusters: number },
  bootstrap: ClusterBootstrap,
): ComparisonVerdict {
  const perAnswer = perAnswerSums(table, answers);
  const [kl, loss] = bootstrap.sample(perAnswer, [
    (sums) => sums[1]! / sums[0]!,
    (sums) => sums[2]! / sums[0]!,
  ]) as [Bootstrapped, Bootstrapped];
  const distances = [
    distance("divergence of an answer", kl),
    distance("likelihood of the data's answer lost", loss),
  ];
  const exactness = exactnessOf(table, answers);
  const numAnswers = perAnswer.reduce((sum, [count]) => sum + count!, 0);
  const facts = {
    noticeableNats,
    tokensPerAnswer: table.length / numAnswers,
    distances,
    exactness,
  };
  if (table.isIdentical) {
    return {
      ...facts,
      verdict: "identical",
      reasons: [`Every logit of all ${table.length} scored tokens is the same number.`],
    };
  }
  const reasons = [
    ...distances.flatMap(({ name, atLeast }) =>
      atLeast !== undefined && atLeast > noticeableNats
        ? [
            `The ${name} is at least ${nats(atLeast)}; up to ${nats(noticeableNats)} would go unnoticed in one answer.`,
          ]
        : [],
    ),
    ...exactness.flatMap(({ name, adjustedP, conversationsLost, conversationsGained }) =>
      adjustedP < errorRate / 2
        ? [
            `${name}: fewer exact in ${conversationsLost} conversations, more in ${conversationsGained} (p = ${adjustedP.toPrecision(2)}).`,
          ]
        : [],
    ),
  ];
  if (reasons.length > 0) return { ...facts, verdict: "drift", reasons };
  const undecided = distances.flatMap(({ name, atMost }) => {
    if (atMost === undefined) return [`The ${name} has no interval: at least 8 conversations are needed.`];
    return atMost < noticeableNats
      ? []
      : [
          `The ${name} may be as much as ${nats(atMost)}; up to ${nats(noticeableNats)} go unnoticed in one answer. More conversations narrow it.`,
        ];
  });
  if (undecided.length > 0) return { ...facts, verdict: "inconclusive", reasons: undecided };
  return {
    ...facts,
    verdict: "near-lossless",
    reasons: [
      `The divergence of an answer is at most ${nats(distances[0]!.atMost!)}: a reader who must say which model wrote one is right at most ${(100 * accuracyBound(distances[0]!.atMost!)).toFixed(1)} % of the time (guessing: 50 %, noticeable: ${100 * noticeableAccuracy} %).`,
      "No kind of answer is written exactly less often than chance explains.",
    ],
  };
}

function distance(name: string, bootstrapped: Bootstrapped): DistanceCriterion {
  return {
    name,
    natsPerAnswer: estimateOf(bootstrapped),
    atMost: bootstrapped.bound(1 - errorRate),
    atLeast: bootstrapped.bound(errorRate / 4),
  };
}

/** Per conversation: answers, KL, variant's loss beyond the baseline's. */
function perAnswerSums(
  table: ScoredTokenTable,
  { isPlain, numClusters }: { readonly isPlain: readonly boolean[]; readonly numClusters: number },
): number[][] {
  const clusters = Array.from({ length: numClusters }, () => [0, 0, 0]);
  let previous = -1;
  for (let token = 0; token < table.length; token++) {
    const sums = clusters[table.cluster[token]!]!;
    const answer = table.answer[token]!;
    if (isPlain[answer] === true) sums[0]! += 1 / plainAnswerTokens;
    else if (answer !== previous) sums[0]! += 1;
    previous = answer;
    sums[1]! += table.kl[token]!;
    sums[2]! += table.variantLoss[token]! - table.baselineLoss[token]!;
  }
  return clusters;
}

/** Greedy decoding reproduces an answer exactly if and only if, forced along it, every token is the most likely one. */
function exactnessOf(
  table: ScoredTokenTable,
  {
    count,
    isPlain,
    numClusters,
  }: { readonly count: number; readonly isPlain: readonly boolean[]; readonly numClusters: number },
): ExactnessCriterion[] {
  const groups = [
    { name: "whole answers", role: undefined },
    ...roles.map((role, index) => ({ name: `answers' ${roleNames[role]}`, role: index })),
  ];
  const found = groups.map(({ name, role }) => {
    const clusterOf = new Map<number, number>();
    const baseline = new Uint8Array(count).fill(1);
    const variant = new Uint8Array(count).fill(1);
    for (let token = 0; token < table.length; token++) {
      const answer = table.answer[token]!;
      if (isPlain[answer] === true || (role !== undefined && table.role[token] !== role)) continue;
      clusterOf.set(answer, table.cluster[token]!);
      if (table.isBaselineRight[token] !== true) baseline[answer] = 0;
      if (table.isVariantRight[token] !== true) variant[answer] = 0;
    }
    const balance = new Int32Array(numClusters);
    let baselineExact = 0;
    let variantExact = 0;
    for (const [answer, cluster] of clusterOf) {
      baselineExact += baseline[answer]!;
      variantExact += variant[answer]!;
      balance[cluster]! += variant[answer]! - baseline[answer]!;
    }
    const conversationsLost = balance.filter((value) => value < 0).length;
    const conversationsGained = balance.filter((value) => value > 0).length;
    const p = signTest(conversationsLost, conversationsGained);
    return {
      name,
      answers: clusterOf.size,
      baselineExact,
      variantExact,
      conversationsLost,
      conversationsGained,
      p,
    };
  });
  const judged = found.filter(({ answers }) => answers > 0);
  const adjusted = holm(judged.map(({ p }) => p));
  return judged.map((criterion, index) => ({ ...criterion, adjustedP: adjusted[index]! }));
}

function nats(value: number): string {
  return `${value.toPrecision(3)} nats`;
}
