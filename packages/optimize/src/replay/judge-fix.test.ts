import assert from "node:assert/strict";
import { test } from "node:test";
import type { Observation } from "@octavo/evals";
import { Random } from "@octavo/statistics";
import { judgeFix, type ReplayPair } from "./judge-fix.js";
import { measuresOf } from "./measures.js";
import type { ReplayedRequest } from "./recorded-workload.js";
import type { ReplayRun } from "./replay-on-server.js";

const requests = Array.from({ length: 40 }, (_, index): ReplayedRequest => ({
  atMs: 50 * index,
  tenant: undefined,
  asked: undefined,
  promptTokens: 100,
  cachedTokens: 0,
  outputTokens: 20,
  isOfCluster: index % 2 === 0,
}));

interface Effect {
  /** Of first tokens and gaps. */
  readonly firstToken?: number;
  readonly gap?: number;
  /** Chance that a request is refused. */
  readonly failing?: number;
}

/** A replay on a machine that is busy with other work: each run is faster or slower as a whole, each request by itself too. */
function runOf(
  random: Random,
  runNoise: number,
  { firstToken = 1, gap = 1, failing = 0 }: Effect,
): ReplayRun {
  const slow = Math.exp(runNoise * random.normal());
  const observations = requests.map((_request, index): Observation => {
    const isRefused = random.uniform() < failing;
    const own = Math.exp(0.8 * Math.sin(index) + 0.1 * random.normal());
    return {
      caseId: String(index),
      cluster: undefined,
      condition: "replay",
      tenant: undefined,
      replica: undefined,
      tags: [],
      scheduledEpochMs: 50 * index,
      firstTokenMs: isRefused ? undefined : 300 * firstToken * slow * own,
      durationMs: 1000,
      gapsMs: isRefused ? [] : [40 * gap * slow * own],
      promptTokens: 100,
      completionTokens: 20,
      cacheHitRatio: 0,
      preemptions: 0,
      recomputedTokens: 0,
      batchSize: 1,
      prefillTokensInBatch: 0,
      queueDepth: 0,
      replicaCount: 1,
      queueMs: 0,
      failureCode: isRefused ? "queue_full" : undefined,
      finishReason: "stop",
      scores: {},
      output: undefined,
    };
  });
  return { observations, computeMs: 1000, durationMs: 2000 };
}

function verdictOf(
  seed: number,
  { noise, before = {}, after }: { readonly noise: number; readonly before?: Effect; readonly after: Effect },
  kind: "serving" | "request" = "serving",
): string {
  const random = new Random(seed);
  const pairs = Array.from({ length: 6 }, (): ReplayPair => ({
    before: runOf(random, noise, before),
    after: runOf(random, noise, after),
  }));
  const measures = measuresOf({ kind, cause: "queue", quotes: [] }, [], 0.5);
  return judgeFix(measures, pairs, { requests }).verdict;
}

const tally = (count: number, of: (seed: number) => string): Readonly<Record<string, number>> => {
  const seen: Record<string, number> = { accepted: 0, rejected: 0, inconclusive: 0 };
  for (let seed = 1; seed <= count; seed++) seen[of(seed)]! += 1;
  return seen;
};

/** Patches that right nothing: without effect, with too little, and with a harm beside or instead of the good. */
const wrongPatches: readonly Effect[] = [
  {},
  { firstToken: 0.97 },
  { firstToken: 1.3 },
  { firstToken: 0.6, failing: 0.3 },
  { firstToken: 0.6, gap: 2.5 },
];

test("of 100 patches that right nothing none is accepted, on quiet and on busy machines", () => {
  const verdicts = [0.02, 0.1, 0.3, 0.6].flatMap((noise, at) =>
    wrongPatches.flatMap((after, kind) =>
      Array.from({ length: 5 }, (_, trial) => verdictOf(1000 * at + 100 * kind + trial, { noise, after })),
    ),
  );
  assert.equal(verdicts.length, 100);
  assert.equal(verdicts.filter((verdict) => verdict === "accepted").length, 0);
});

test("a patch without effect is accepted about as rarely as the interval says", () => {
  // one side of 99 %: 0.5 % of 400 are 2; 7 are beyond the 99.5th percentile of such a count
  assert.ok(tally(400, (seed) => verdictOf(seed, { noise: 0.3, after: {} }))["accepted"]! <= 7);
  const failing = { noise: 0.3, before: { failing: 0.3 }, after: { failing: 0.3 } };
  assert.ok(tally(400, (seed) => verdictOf(seed, failing, "request"))["accepted"]! <= 7);
});

test("a patch that rights the problem is accepted, and one that is noise-free and idle is rejected", () => {
  assert.ok(
    tally(50, (seed) => verdictOf(seed, { noise: 0.1, after: { firstToken: 0.5 } }))["accepted"]! >= 47,
  );
  assert.ok(tally(50, (seed) => verdictOf(seed, { noise: 0.01, after: {} }))["rejected"]! >= 45);
  assert.ok(
    tally(50, (seed) =>
      verdictOf(seed, { noise: 0.3, before: { failing: 0.4 }, after: { firstToken: 3 } }, "request"),
    )["accepted"]! >= 47,
    "requests that are no longer refused may make others wait",
  );
});

test("a harm that is shown rejects whatever got better; a problem that replays do not show is not judged", () => {
  assert.equal(verdictOf(3, { noise: 0.05, after: { firstToken: 0.5, gap: 3 } }), "rejected");
  assert.equal(verdictOf(3, { noise: 0.05, after: {} }, "request"), "inconclusive");
  const measures = measuresOf({ kind: "serving", cause: "queue", quotes: [] }, [], 0.5);
  assert.throws(() => judgeFix(measures, [], { requests }), /repeats is 0; at least 3 are needed/);
});

test("requests that fail less often are told from more replays, where one replay has too few", () => {
  const half = { noise: 0.1, before: { failing: 0.5 }, after: { failing: 0.1 } };
  assert.ok(tally(50, (seed) => verdictOf(seed, half, "request"))["accepted"]! >= 40);
});

test("a harm that is small beside what is won is no harm", () => {
  // gaps of 1 ms become 4 ms; first tokens come 150 ms earlier
  const small = { noise: 0.02, before: { gap: 0.025 }, after: { firstToken: 0.5, gap: 0.1 } };
  assert.equal(verdictOf(1, small), "accepted");
  assert.equal(verdictOf(1, { ...small, after: { gap: 0.1 } }), "rejected", "nothing is won");
  const large = { ...small, after: { firstToken: 0.5, gap: 2 } };
  assert.equal(verdictOf(1, large), "rejected", "79 ms against 150 ms");
});

test("what a cluster is about is what its findings quote", () => {
  const quotes = [{ field: "octavo.slowest_gap.duration", text: "0.8", trace: "a" }];
  const targetOf = (kind: string, cause: string, own: typeof quotes = []): string =>
    measuresOf({ kind, cause, quotes: own }, ["is_json"], 0.5).target.name;
  assert.equal(targetOf("serving", "prefill_burst", quotes), "longest gap");
  assert.equal(targetOf("serving", "queue"), "first token");
  assert.equal(targetOf("request", "queue_full"), "failed");
  assert.equal(targetOf("answer", "cut_off"), "cut off");
  assert.equal(targetOf("answer", "is_json"), "failed by is_json");
});
