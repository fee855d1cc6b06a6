import assert from "node:assert/strict";
import test from "node:test";
import type { TokenDivergence } from "../forcing/divergence.js";
import { ClusterBootstrap, Random } from "@octavo/statistics";
import { summarise } from "./summary.js";
import { ScoredTokenTable } from "./token-table.js";
import { accuracyBound, judge, noticeableNats, type ComparisonVerdict } from "./verdict.js";

const plain: TokenDivergence = {
  kl: 0,
  baselineLoss: 0.5,
  variantLoss: 0.5,
  baselineTop: 1,
  variantTop: 1,
  baselineTopProbability: 0.6,
  variantTopProbability: 0.6,
  isIdentical: false,
};

interface Simulation {
  readonly numClusters?: number;
  readonly tokensPerAnswer?: number;
  readonly isPlain?: boolean;
  /** What the token `index` of conversation `cluster` is like. */
  readonly token?: (cluster: number, index: number) => Partial<TokenDivergence>;
}

function simulate({ numClusters = 60, tokensPerAnswer = 20, isPlain = false, token }: Simulation): {
  table: ScoredTokenTable;
  verdict: ComparisonVerdict;
} {
  const table = new ScoredTokenTable();
  for (let cluster = 0; cluster < numClusters; cluster++) {
    for (let index = 0; index < tokensPerAnswer; index++) {
      const place = { cluster, answer: cluster, role: index % 2, position: index };
      table.add(place, 1, { ...plain, ...token?.(cluster, index) });
    }
  }
  const answers = {
    count: numClusters,
    isPlain: Array.from({ length: numClusters }, () => isPlain),
    numClusters,
  };
  return { table, verdict: judge(table, answers, new ClusterBootstrap(numClusters, 1000, 1)) };
}

const random = new Random(8);

test("the limit is what Pinsker's inequality gives for 3 right in 4", () => {
  assert.equal(noticeableNats, 0.5);
  assert.equal(accuracyBound(0), 0.5);
  assert.equal(accuracyBound(noticeableNats), 0.75);
  assert.ok(accuracyBound(50) <= 1 && accuracyBound(50) > 0.99);
});

test("equal logits are identical, whatever else", () => {
  assert.equal(simulate({ token: () => ({ isIdentical: true }) }).verdict.verdict, "identical");
  assert.equal(
    simulate({ numClusters: 2, token: () => ({ isIdentical: true }) }).verdict.verdict,
    "identical",
  );
  const almost = simulate({ token: (cluster, index) => ({ isIdentical: cluster + index > 0 }) });
  assert.equal(almost.verdict.verdict, "near-lossless");
});

test("small divergences are near-lossless, large ones drift, those between and few conversations inconclusive", () => {
  const withMean = (nats: number) =>
    simulate({ token: () => ({ kl: -Math.log(1 - random.uniform()) * (nats / 20) }) }).verdict;
  const small = withMean(0.1);
  assert.equal(small.verdict, "near-lossless");
  assert.ok(Math.abs(small.distances[0]!.natsPerAnswer.value - 0.1) < 0.02);
  assert.match(small.reasons.join(" "), /right at most 6\d\.\d % of the time/);
  assert.equal(withMean(0.9).verdict, "drift");
  assert.equal(withMean(0.5).verdict, "inconclusive");
  const few = simulate({ numClusters: 7, token: () => ({ kl: 1e-4 }) }).verdict;
  assert.equal(few.verdict, "inconclusive");
  assert.match(few.reasons.join(" "), /at least 8 conversations/);
});

test("the same divergence per token drifts in long answers", () => {
  const token = () => ({ kl: 0.005 * (0.5 + random.uniform()) });
  assert.equal(simulate({ tokensPerAnswer: 20, token }).verdict.verdict, "near-lossless");
  assert.equal(simulate({ tokensPerAnswer: 400, token }).verdict.verdict, "drift");
  // Plain text counts as answers of 256 tokens however long it is.
  const text = simulate({ tokensPerAnswer: 512, isPlain: true, token }).verdict;
  assert.ok(Math.abs(text.distances[0]!.natsPerAnswer.value - 0.005 * 256) < 0.05);
  assert.equal(text.exactness.length, 0);
});

test("answers lost beyond chance are drift even where distributions hardly differ", () => {
  const lost = (share: number) =>
    simulate({
      token: (cluster, index) => ({
        kl: 1e-3,
        ...(index === 3 && cluster < share * 60 && { variantTop: 2 }),
      }),
    }).verdict;
  const drift = lost(0.2);
  assert.equal(drift.verdict, "drift");
  assert.match(drift.reasons.join(" "), /whole answers: fewer exact in 12 conversations, more in 0/);
  assert.equal(lost(0.05).verdict, "near-lossless");
});

test("a likelihood lost on the data counts as much as a divergence", () => {
  const { verdict } = simulate({ token: () => ({ kl: 1e-3, variantLoss: 0.6 }) });
  assert.equal(verdict.verdict, "drift");
});

test("cells: roles, places in the answer, flips, perplexities", () => {
  const { table } = simulate({
    token: (_, index) => ({ kl: index, variantLoss: 0.5 + Math.LN2, ...(index === 0 && { variantTop: 2 }) }),
  });
  const { overall, byRole, byPosition, klHistogram } = summarise(table, 60, new ClusterBootstrap(60, 300, 1));
  assert.equal(overall.tokens, 1200);
  assert.equal(overall.kl.value, 9.5);
  assert.equal(overall.numFlips, 60);
  assert.equal(overall.flips.value, 0.05);
  assert.ok(Math.abs(overall.perplexityRatio.value - 2) < 1e-12);
  assert.ok(Math.abs(overall.baselinePerplexity.value - Math.exp(0.5)) < 1e-12);
  assert.deepEqual(
    byRole.map(({ name, tokens, kl }) => [name, tokens, kl.value]),
    [
      ["prose", 600, 9],
      ["JSON key", 600, 10],
    ],
  );
  assert.deepEqual(
    byPosition.map(({ name, tokens }) => [name, tokens]),
    [
      ["0 to 3", 240],
      ["4 to 15", 720],
      ["16 to 63", 240],
    ],
  );
  assert.equal(
    klHistogram.reduce((sum, { tokens }) => sum + tokens, 0),
    1200,
  );
  assert.equal(overall.klQuantiles.max, 19);
});
