import type { Answer } from "../../answers/answer.js";
import { type CheckResult, type Chart, type Verdict } from "../../checks/check.js";
import { type CheckName, checkNames } from "../../checks/table.js";
import type { CaseRow, ScoredAnswer } from "../../run/case-row.js";
import type { EvalReport } from "../report.js";

/** Text as a hostile model would write it into a report. */
export const hostileText =
  "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> \u202Egnp.exe \u0000\u001b[31m \ud800 <!-- ]]> &amp; {{7*7}}";

const verdicts: readonly Verdict[] = ["pass", "fail", "inconclusive"];

const intervals: Chart = {
  kind: "intervals",
  title: "Change of pass rates by axis",
  unit: "share",
  rows: ["json", "tools", "prose", "a rather long name of an axis that does not fit"].map((label, index) => ({
    label,
    estimate: -0.02 * index + 0.01,
    interval: [-0.02 * index - 0.02, -0.02 * index + 0.03] as const,
    margin: -0.02,
    verdict: verdicts[index % 3] ?? "pass",
  })),
};

const heatmap: Chart = {
  kind: "heatmap",
  title: "Groundedness by prompt length and place in the output",
  xLabel: "output tokens",
  yLabel: "prompt tokens",
  x: ["first 500", "500 to 2000", "2000 and more"],
  y: ["to 8k", "8k to 32k", "32k to 64k", "64k and more"],
  cells: [
    [0.93, 0.91, 0.9],
    [0.92, 0.88, 0.84],
    [0.9, 0.82, 0.71],
    [0.86, 0.74, undefined],
  ].map((row) =>
    row.map((value) =>
      value === undefined ? null : { value, count: 120, interval: [value - 0.05, value + 0.04] as const },
    ),
  ),
};

const replicas: Chart = {
  kind: "heatmap",
  title: "Latency by replica",
  xLabel: "percentile",
  yLabel: "replica",
  x: ["p50", "p99"],
  y: ["replica-1", "replica-2"],
  cells: [
    [
      { value: 210, count: 400, interval: [200, 222] },
      { value: 900, count: 400, interval: undefined },
    ],
    [
      { value: 230, count: 400, interval: [215, 240] },
      { value: 1400, count: 400, interval: [1200, 1700] },
    ],
  ],
};

const series: Chart = {
  kind: "series",
  title: "Gaps between tokens, p99 of 10 s",
  xLabel: "seconds",
  yLabel: "ms",
  lines: [
    {
      label: "chat tenant",
      points: Array.from(
        { length: 3000 },
        (_, x) => [x / 10, 22 + 5 * Math.sin(x / 40) + (x > 1200 && x < 1500 ? 60 : 0)] as const,
      ),
    },
    {
      label: "usual for this hour",
      points: [
        [0, 24],
        [150, 26],
        [300, 25],
      ],
    },
  ],
  spans: [{ label: "burst of prompts", from: 120, to: 150 }],
  threshold: 50,
};

const steps: Chart = {
  kind: "steps",
  title: "Steps around the slowest gap",
  steps: Array.from({ length: 24 }, (_, index) => ({
    startMs: index * 20 + (index > 12 ? 120 : 0),
    durationMs: index === 12 ? 138 : 18,
    prefillTokens: index === 12 ? 1900 : index % 5 === 0 ? 120 : 0,
    decodeTokens: 32,
    isBlamed: index === 12,
    label: `step ${4000 + index}`,
  })),
};

/** A result with everything that a page can show. */
export function sampleCheck(
  check: CheckName,
  verdict: Verdict,
  text = "the second tool call lost an argument",
): CheckResult {
  return {
    check,
    verdict,
    summary: `Tool calls lost 4.1 points (95 % interval 1.9 to 6.3), more than the 2 points that were allowed. ${text}`,
    ruleOfThumb: {
      rule: "Per-axis delta against FP16; 2 points on tool calls block an agent",
      tripped: verdict === "fail",
      columns: ["axis", "baseline", "candidate", "delta"],
      rows: [
        ["json", 0.94, 0.93, -0.01],
        ["tools", 0.91, 0.869, -0.041],
        [text, null, 0.5, null],
      ],
    },
    hypotheses: [
      {
        name: "json",
        method: "exact McNemar, non-inferiority",
        estimate: -0.01,
        interval: [-0.019, 0.002],
        confidence: 0.95,
        margin: -0.02,
        unit: "share",
        pValue: 0.0123,
        verdict: "pass",
      },
      {
        name: "tools",
        method: "exact McNemar, non-inferiority",
        estimate: -0.041,
        interval: [-0.063, -0.021],
        confidence: 0.95,
        margin: -0.02,
        unit: "share",
        pValue: 0.81,
        verdict: "fail",
      },
      {
        name: "p99 of gaps",
        method: "block bootstrap",
        estimate: 1.12,
        interval: [0.91, 1.6],
        confidence: 0.95,
        margin: 1.25,
        unit: "ratio",
        pValue: undefined,
        verdict: "inconclusive",
      },
      {
        name: text,
        method: text,
        estimate: undefined,
        interval: undefined,
        confidence: 0.95,
        margin: undefined,
        unit: "nats",
        pValue: undefined,
        verdict: "inconclusive",
      },
    ],
    sampleSize: {
      have: 812,
      needed: verdict === "inconclusive" ? 1955 : 640,
      alpha: 0.05,
      power: 0.8,
      basis: "paired binary, discordance 10 %",
    },
    advice:
      verdict === "pass"
        ? []
        : [
            {
              knob: "--quantization fp8",
              change: "serve tool-using agents from 8 bits",
              because: "4-bit groups lose arguments of nested objects first",
            },
            { knob: "--max-num-batched-tokens", change: "from 8192 to 2048", because: text },
          ],
    movedCases: [
      {
        caseId: "refund-17",
        what: "tool_calls: an argument is missing",
        before: '{"name":"refund","arguments":{"order":"A-17","amount":12.5}}',
        after: '{"name":"refund","arguments":{"order":"A-17"}}',
        severity: 1,
      },
      { caseId: text, what: text, before: text, after: `${text} and more`, severity: 0.5 },
      { caseId: "silent", what: "no answer", before: undefined, after: undefined, severity: 0.1 },
    ],
    figures: [intervals, heatmap, replicas, series, steps],
    notes: ["12 spans have no cache hit ratio", text],
  };
}

function sampleAnswer(target: string, caseId: string, text: string, passed: boolean): ScoredAnswer {
  const answer: Answer = {
    caseId,
    target,
    model: "octavo-mini",
    text,
    reasoning: undefined,
    toolCalls: [],
    finishReason: "stop",
    usage: { promptTokens: 212, completionTokens: 40, cachedTokens: 0 },
    timing: { scheduledEpochMs: 0, sentEpochMs: 0, durationMs: 240, pieceMs: [30, 40, 50] },
    serving: undefined,
    headers: {},
    failure: undefined,
  };
  return {
    answer,
    scores: {
      exact_match: {
        status: "scored",
        value: passed ? 1 : 0,
        passed,
        reason: passed ? "equal" : "another text",
      },
      groundedness: { status: "failed", code: "judge_failed", reason: "the judge answered prose" },
    },
  };
}

export function sampleCase(index: number, text = ""): CaseRow {
  const caseId = `case-${index}`;
  const before = `The badge of Mel Hato reads DQD-${7000 + index}. It was issued in Odessa.${text}`;
  const isLost = index % 9 === 0;
  const after = isLost
    ? `The badge of Mel Hato reads DQD-${6000 + index}. It was issued there.${text}`
    : before;
  return {
    caseId,
    dataset: "golden",
    block: 0,
    cluster: undefined,
    tenant: undefined,
    tags: ["extraction", index % 2 === 0 ? "json" : "prose"],
    input: `What does the badge of Mel Hato read? (question ${index})${text}`,
    expected: `DQD-${7000 + index}`,
    answers: {
      baseline: sampleAnswer("baseline", caseId, before, index % 7 !== 0),
      candidate: sampleAnswer("candidate", caseId, after, !isLost && index % 14 !== 0),
    },
  };
}

export function sampleReport(overrides: Partial<EvalReport> = {}): EvalReport {
  return {
    format: "octavo.eval/1",
    name: "octavo-mini in 4 bits against bf16",
    startedAt: "2026-11-21T10:00:00.000Z",
    durationMs: 184_000,
    seed: 1,
    targets: [
      { name: "baseline", role: "baseline", url: "http://127.0.0.1:8001/v1", model: "octavo-mini" },
      { name: "candidate", role: "candidate", url: "http://127.0.0.1:8002/v1", model: "octavo-mini-int4" },
    ],
    datasets: [{ name: "golden" }],
    evaluators: ["baseline", "candidate"].flatMap((target, index) =>
      ["exact_match", "json_schema", "groundedness"].map((evaluator, at) => ({
        evaluator,
        target,
        scored: 190,
        passed: 170,
        skipped: 8,
        failed: 2,
        passRate: {
          estimate: 0.9 - 0.03 * index - 0.02 * at,
          confidence: 0.95,
          interval: [0.86 - 0.03 * index - 0.02 * at, 0.93 - 0.03 * index - 0.02 * at] as const,
        },
        mean: { estimate: 0.9, interval: undefined, confidence: 0.95 },
      })),
    ),
    calibrations: [
      {
        judge: "octavo-mini",
        evaluator: "groundedness",
        numLabels: 120,
        kappa: { estimate: 0.71, interval: [0.6, 0.82], confidence: 0.95 },
        balancedAccuracy: { estimate: 0.86, interval: [0.8, 0.91], confidence: 0.95 },
        correctedPassRate: { estimate: 0.83, interval: [0.74, 0.92], confidence: 0.95 },
        bins: [0.05, 0.2, 0.45, 0.7, 0.95].map((predicted, index) => ({
          predicted,
          observed: Math.min(1, predicted * 0.85 + 0.05),
          interval: [Math.max(0, predicted * 0.85 - 0.08), Math.min(1, predicted * 0.85 + 0.16)] as const,
          count: 10 + 20 * index,
        })),
      },
    ],
    comparisons: [
      {
        evaluator: "pairwise_preference",
        judge: "octavo-mini",
        target: "candidate",
        numPairs: 190,
        disagreement: { estimate: 0.16, interval: [0.11, 0.22], confidence: 0.95 },
        firstPreferred: { estimate: 0.7, interval: [0.51, 0.84], confidence: 0.95 },
      },
    ],
    cascades: [
      {
        evaluator: "helpful",
        target: "candidate",
        numScored: 190,
        stages: [
          { name: "1:contains", numDecided: 12 },
          { name: "2:is_helpful", numDecided: 141 },
          { name: "3:is_helpful", numDecided: 37 },
        ],
        numAudited: 17,
        agreement: { estimate: 0.941, interval: [0.73, 0.99], confidence: 0.95 },
      },
    ],
    checks: checkNames.map((name, index) => sampleCheck(name, verdicts[(index * 2) % 3] ?? "pass")),
    gate: {
      name: "release",
      outcome: "fail",
      exitCode: 2,
      summary: "2 of 5 expectations failed: quantization, pass_rate(json_schema) >= 0.97.",
      items: [
        {
          dimension: "quality",
          expectation: "pass_rate(json_schema) >= 0.97",
          onFail: "error",
          verdict: "fail",
          estimate: 0.91,
          interval: [0.88, 0.94],
          bound: 0.97,
          unit: "share",
          numObservations: 190,
          method: "Wilson interval",
          summary: "",
        },
        {
          dimension: "latency",
          expectation: "p95(ttft_ms) <= 800",
          onFail: "error",
          verdict: "pass",
          estimate: 312,
          interval: [280, 360],
          bound: 800,
          unit: "ms",
          numObservations: 200,
          method: "order statistics",
          summary: "",
        },
        {
          dimension: "cost",
          expectation: "mean(cost_usd) <= 0.001",
          onFail: "warn",
          verdict: "inconclusive",
          estimate: 0.00098,
          interval: [0.0009, 0.0011],
          bound: 0.001,
          unit: "usd",
          numObservations: 200,
          method: "bootstrap",
          summary: "",
        },
        {
          dimension: "check",
          expectation: "quantization",
          onFail: "error",
          verdict: "fail",
          estimate: undefined,
          interval: undefined,
          bound: undefined,
          unit: "share",
          numObservations: 812,
          method: "",
          summary: "",
        },
      ],
    },
    cases: Array.from({ length: 40 }, (_, index) => sampleCase(index)),
    numCases: 200,
    warnings: ["The judge is the model under test: it favours its own answers."],
    ...overrides,
  };
}
