import type { Advice, Chart, Hypothesis, MovedCase, RuleOfThumb, Verdict } from "../check.js";
import { defineCheck, type Judgement } from "../define-check.js";
import { collectReplicaSkew } from "./collect.js";
import { shuffleReplicas } from "../judging/placebos.js";
import { clusterMean, type ClusterMean, meanIntervalOver } from "../judging/cluster-mean.js";
import { intervalsFigure } from "../judging/figures.js";
import { lossEffect, planPairs, points } from "../judging/loss-effect.js";
import { evaluatorsOf } from "../judging/pairs.js";
import { decide, overallVerdict } from "../judging/verdicts.js";
import { lookAt } from "../judging/sequence-bounds.js";
import { type AgainstFleet, compareAgainstFleet } from "./against-fleet.js";
import { compareFingerprints, type Fingerprints, noMajority } from "./fingerprints.js";
import { type Fleet, fleetOf } from "./fleet.js";
import { heterogeneityNotes } from "./heterogeneity.js";
import { replicaSkewSettings, type ReplicaSkewSettings } from "./settings.js";

/**
 * Is every replica of a deployment the same model? The same cases go to each of them. Equal machines with equal weights give
 * equal logits, so equality comes first; after that each replica's scores are held against the others' on the same cases.
 */
export const replicaSkewCheck = defineCheck({
  name: "replica-skew",
  question: "Does one replica answer worse than the others, hidden in their average?",
  settings: replicaSkewSettings,
  needs: ["replicas", "cases"],
  sequence: ({ sequential, lookEvery: every }) => (sequential ? { every, axisTags: [] } : undefined),
  sideOf: ({ replica, condition }) => replica ?? condition,
  collect: collectReplicaSkew,
  placebo: () => shuffleReplicas,
  judge(observations, settings) {
    const { alpha, margin } = settings;
    const fleet = fleetOf(observations, settings);
    const answers = fleet.cases.flatMap(({ answers: byReplica }) => [...byReplica.values()]);
    const evaluators = evaluatorsOf(answers);
    const prints = compareFingerprints(fleet, settings);
    const compared = evaluators.flatMap((evaluator) =>
      compareAgainstFleet(fleet, evaluator, lookAt(observations, settings)),
    );
    const hypotheses = decide(
      [
        ...prints.effects,
        ...compared.map((one) =>
          lossEffect(`${one.replica}: ${one.evaluator} below the others`, one.compared, { margin, alpha }),
        ),
      ],
      alpha,
    );
    const total = fleet.cases.length;
    const failures = [...fleet.failures.values()].reduce((sum, count) => sum + count, 0);
    const missingShare = Math.max(
      fleet.incomplete / Math.max(1, total),
      failures / Math.max(1, failures + answers.length),
    );
    const verdict = overallVerdict(hypotheses, missingShare <= settings.maxMissingShare);
    return {
      verdict,
      summary: summaryOf(fleet, hypotheses, prints, verdict),
      ruleOfThumb: ruleOfThumb(fleet, evaluators, settings),
      hypotheses,
      sampleSize: planPairs(
        [
          ...prints.planned,
          ...compared.map((one) => ({
            name: `${one.replica}: ${one.evaluator}`,
            compared: one.compared,
            margin,
          })),
        ],
        settings,
      ),
      advice: verdict === "pass" ? [] : adviceFor(fleet, hypotheses, prints),
      movedCases: movedCases(fleet, compared, hypotheses, prints),
      figures: [
        ...heatmap(fleet, evaluators, 1 - alpha),
        ...intervalsFigure("Below the other replicas", "share", hypotheses),
      ],
      notes: [
        ...fleetNotes(fleet),
        ...printNotes(fleet, prints, settings),
        ...compared.map(
          ({ replica, evaluator, exactPValue: p, compared: { loss } }) =>
            p !== undefined &&
            p <= 0.05 &&
            loss > 0 &&
            `${replica}: ${evaluator} is below the others (exact test, p = ${p.toPrecision(2)}), whether or not beyond the margin`,
        ),
        ...heterogeneityNotes(compared, evaluators),
      ],
    };
  },
});

function summaryOf(
  { replicas, cases }: Fleet,
  hypotheses: readonly Hypothesis[],
  prints: Fingerprints,
  verdict: Verdict,
): string {
  if (replicas.length < 2) return "Nothing was compared: fewer than two replicas answered.";
  if (cases.length === 0) return "Nothing was compared: no case was answered by two replicas.";
  const failed = hypotheses.filter((one) => one.verdict === "fail");
  const [worst] = failed.toSorted((a, b) => (b.estimate ?? 0) - (a.estimate ?? 0));
  if (worst !== undefined) {
    const isLogits = prints.effects.some(({ name }) => name === worst.name);
    const what = isLogits
      ? `${worst.name} on ${points(worst.estimate ?? 0)} % of cases`
      : `${worst.name} by ${points(worst.estimate ?? 0)} points (margin ${points(worst.margin ?? 0)})`;
    const undecidable =
      isLogits && replicas.length === 2 ? "; with two replicas nothing says which of them is wrong" : "";
    return `A replica is not like the others: ${what}${undecidable}.`;
  }
  const counted = `${replicas.length} replicas on ${cases.length} cases`;
  return verdict === "pass"
    ? `${counted}: none differs from the others by more than the margin.`
    : `${counted}: not decided, more cases are needed.`;
}

function ruleOfThumb(
  fleet: Fleet,
  evaluators: readonly string[],
  { healthySpread, driftedDrop }: ReplicaSkewSettings,
): RuleOfThumb {
  let tripped = false;
  const rows = evaluators.map((evaluator) => {
    const means = fleet.replicas.map((replica) => meanOf(fleet, replica, evaluator)?.mean);
    const known = means.filter((mean) => mean !== undefined);
    const spread = known.length < 2 ? 0 : Math.max(...known) - Math.min(...known);
    const state =
      spread <= healthySpread + 1e-9 ? "healthy" : spread >= driftedDrop - 1e-9 ? "drifted" : "between";
    if (state === "drifted") tripped = true;
    return [
      evaluator,
      ...means.map((mean) => (mean === undefined ? null : Math.round(mean * 1000) / 1000)),
      Math.round(spread * 1000) / 10,
      state,
    ];
  });
  return {
    rule: `The same 100 cases on every replica each weekday: replicas within ${points(healthySpread)} points of each other are healthy, a drop of ${points(driftedDrop)} points or more on a rubric is a drifted replica.`,
    tripped,
    columns: ["evaluator", ...fleet.replicas, "spread (points)", ""],
    rows,
  };
}

function meanOf(fleet: Fleet, replica: string, evaluator: string): ClusterMean | undefined {
  return clusterMean(
    fleet.cases.flatMap(({ cluster, answers }) => {
      const value = answers.get(replica)?.scores[evaluator] ?? undefined;
      return value === undefined ? [] : [{ cluster, value }];
    }),
  );
}

function heatmap(fleet: Fleet, evaluators: readonly string[], confidence: number): readonly Chart[] {
  if (evaluators.length === 0 || fleet.replicas.length === 0) return [];
  return [
    {
      kind: "heatmap",
      title: "Mean score by replica and rubric",
      xLabel: "evaluator",
      yLabel: "replica",
      x: evaluators,
      y: fleet.replicas,
      cells: fleet.replicas.map((replica) =>
        evaluators.map((evaluator) => {
          const mean = meanOf(fleet, replica, evaluator);
          return mean === undefined
            ? null
            : { value: mean.mean, count: mean.count, interval: meanIntervalOver(mean, confidence) };
        }),
      ),
    },
  ];
}

function fleetNotes({ replicas, failures, incomplete, unnamed, cases }: Fleet): Judgement["notes"] {
  return [
    unnamed > 0 && `${unnamed} observations do not say which replica answered: left out`,
    ...[...failures].map(([replica, count]) => `${replica}: ${count} requests failed`),
    incomplete > 0 &&
      replicas.length > 1 &&
      `${incomplete} of ${Math.max(cases.length, incomplete)} cases were not answered by every replica`,
  ];
}

function printNotes(
  { cases, replicas }: Fleet,
  { kind, differing, undecided, effects }: Fingerprints,
  { isHomogeneous }: ReplicaSkewSettings,
): Judgement["notes"] {
  if (kind === undefined)
    return [cases.length > 0 && "neither outputs nor digests were recorded: equality was not looked at"];
  const what = kind === "digest" ? "logits" : "output";
  return [
    kind === "output" &&
      "answers carry no digests of logits: outputs were compared instead, and scores decide",
    kind === "digest" &&
      !isHomogeneous &&
      effects.length === 0 &&
      "the machines differ, so unequal logits were expected and decide nothing",
    ...[...differing].map(
      ([replica, { differs, of, first }]) =>
        differs > 0 &&
        `${replica}: ${what} unlike the majority's on ${differs} of ${of} cases, ${first} first`,
    ),
    undecided > 0 &&
      `${undecided} cases have no majority: ${replicas.length > 2 ? "they count for no replica" : "both replicas count as different there"}`,
  ];
}

function movedCases(
  fleet: Fleet,
  compared: readonly AgainstFleet[],
  hypotheses: readonly Hypothesis[],
  prints: Fingerprints,
): readonly MovedCase[] {
  const offset = prints.effects.length;
  return compared.flatMap(({ replica, evaluator, lostCases }, index) =>
    lostCases.map(({ caseId, own, others }) => {
      const one = fleet.cases.find((candidate) => candidate.caseId === caseId);
      const other = [...(one?.answers ?? [])].find(([name]) => name !== replica)?.[1];
      return {
        caseId,
        what: `${replica}: ${evaluator} ${own}, the others ${Math.round(others * 100) / 100}`,
        before: other?.output,
        after: one?.answers.get(replica)?.output,
        // those of a replica that failed come first
        severity: others - own + (hypotheses[offset + index]?.verdict === "fail" ? 1 : 0),
      };
    }),
  );
}

function adviceFor(
  { replicas }: Fleet,
  hypotheses: readonly Hypothesis[],
  prints: Fingerprints,
): readonly Advice[] {
  const failed = replicas.filter((replica) =>
    hypotheses.some(({ name, verdict }) => verdict === "fail" && name.startsWith(`${replica}: `)),
  );
  const isSplit = hypotheses.some(({ name, verdict }) => verdict === "fail" && name === noMajority);
  if (failed.length === 0 && isSplit)
    return [
      {
        knob: "model files",
        change: `compare the weights' digests and the flags of ${replicas.join(", ")} with those of the release`,
        because: "replicas disagree with one another, and no majority says which of them is wrong",
      },
    ];
  if (failed.length === 0)
    return [
      {
        knob: "cases",
        change: "run more cases on every replica",
        because: "the intervals still reach past the margin",
      },
    ];
  const names = failed.join(", ");
  return [
    {
      knob: "drain",
      change: `take ${names} out of the balancer (SIGTERM drains an octavo server) and start it again`,
      because: "its share of the traffic is answered worse, and health checks do not see it",
    },
    {
      knob: "model files",
      change: `check the weights' digest on ${names} against the others, and download them again`,
      because:
        prints.effects.length > 0
          ? "equal weights on equal machines give equal logits"
          : "a partial or stale copy still loads and answers",
    },
    {
      knob: "--quantization, --kv-cache-dtype, --max-model-len, chat template",
      change: `compare how ${names} was started with how the others were`,
      because: "a rolling restart may have left it with other settings",
    },
    {
      knob: "hardware",
      change: `look at clocks, memory errors and the processor's model of ${names}`,
      because: "bits that flip and kernels that differ show as other logits",
    },
  ];
}
