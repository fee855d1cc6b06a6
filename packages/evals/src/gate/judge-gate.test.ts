import assert from "node:assert/strict";
import test from "node:test";
import type { CheckResult } from "../checks/check.js";
import type { Answer } from "../answers/answer.js";
import type { Score } from "../evaluators/evaluator.js";
import type { CaseRow, ScoredAnswer } from "../run/case-row.js";
import { sampleCheck } from "../report/testing/sample-report.js";
import { parseGateConfig } from "./config.js";
import { exitCodeOfChecks } from "./exit-codes.js";
import type { GateResult } from "./gate-result.js";
import { judgeGate } from "./judge-gate.js";
import { Measurements } from "./measurements.js";

interface Made {
  readonly passed?: boolean | "skipped" | "failed";
  readonly ttftMs?: number;
  readonly failure?: string;
  readonly tokens?: number;
  /** Whether the evaluator reads what the case lacks. */
  readonly leftOut?: boolean;
}

function made(
  target: string,
  index: number,
  { passed = true, ttftMs = 100, failure, tokens = 20, leftOut = false }: Made,
): ScoredAnswer {
  const answer: Answer = {
    caseId: `case-${index}`,
    target,
    model: undefined,
    text: "x",
    reasoning: undefined,
    toolCalls: [],
    finishReason: "stop",
    usage: { promptTokens: 1000, completionTokens: tokens, cachedTokens: 400 },
    timing: {
      scheduledEpochMs: index * 1000,
      sentEpochMs: index * 1000 + 10,
      durationMs: ttftMs + 400,
      pieceMs: [ttftMs, ttftMs + 200, ttftMs + 400],
    },
    serving: undefined,
    headers: {},
    failure: failure === undefined ? undefined : { code: failure, httpStatus: undefined, message: failure },
  };
  const score: Score =
    typeof passed === "boolean"
      ? { status: "scored", value: passed ? 1 : 0, passed }
      : passed === "skipped"
        ? { status: "skipped", reason: "no gold" }
        : { status: "failed", code: "judge_failed", reason: "down" };
  const skipped: Score = { status: "skipped", reason: "no gold" };
  if (failure !== undefined) return { answer, scores: leftOut ? { quality: skipped } : {} };
  return { answer, scores: { quality: score } };
}

function gate(
  health: string,
  count: number,
  make: (index: number) => { readonly baseline?: Made; readonly candidate: Made; readonly cluster?: string },
  {
    judged = [],
    extra = "",
    checks = [],
  }: { judged?: readonly string[]; extra?: string; checks?: Parameters<typeof judgeGate>[1]["checks"] } = {},
): GateResult {
  const config = parseGateConfig(
    "eval.yaml",
    `version: 1
targets: {candidate: {base_url: http://c}, baseline: {base_url: http://b}}
datasets: {golden: {path: golden.jsonl}}
evaluators: [quality]
prices: {usd_per_million_input_tokens: 1, usd_per_million_output_tokens: 10, usd_per_million_cached_tokens: 0.5}
health: ${health}
${extra}`,
    { checkSettings: () => undefined, evaluatorNames: (specs) => specs.map(String) },
  );
  const measurements = new Measurements({
    usdPerMillionInputTokens: 1,
    usdPerMillionOutputTokens: 10,
    usdPerMillionCachedTokens: 0.5,
  });
  for (let index = 0; index < count; index += 1) {
    const { baseline, candidate, cluster } = make(index);
    const row: CaseRow = {
      caseId: `case-${index}`,
      dataset: "golden",
      block: Math.floor(index / 10),
      cluster,
      tenant: undefined,
      tags: [],
      input: "",
      expected: undefined,
      answers: {
        candidate: made("candidate", index, candidate),
        ...(baseline === undefined ? {} : { baseline: made("baseline", index, baseline) }),
      },
    };
    measurements.add(row);
  }
  return judgeGate(config, { measurements, checks, judged, targets: ["candidate"] });
}

test("a pass rate passes, fails or is open by its interval", () => {
  const of = (passing: number): GateResult =>
    gate("{quality: [pass_rate(quality) >= 0.9]}", 200, (index) => ({
      candidate: { passed: index < passing },
    }));
  assert.deepEqual([of(198).outcome, of(198).exitCode], ["pass", 0]);
  assert.deepEqual([of(150).outcome, of(150).exitCode], ["fail", 2]);
  const open = of(183);
  assert.deepEqual([open.outcome, open.exitCode], ["inconclusive", 3]);
  const [item] = open.items;
  assert.equal(item?.estimate, 0.915);
  assert.equal(item?.numObservations, 200);
  assert.ok(item?.interval !== undefined && item.interval[0] < 0.9 && item.interval[1] > 0.9);
});

test("the estimate alone decides when it is asked to", () => {
  const result = gate("{quality: [pass_rate(quality) >= 0.9 by estimate]}", 10, () => ({ candidate: {} }));
  assert.deepEqual([result.outcome, result.items[0]?.method], ["pass", "estimate alone"]);
});

test("a loss is measured on pairs: what each side lost alone decides, not how hard the cases are", () => {
  const result = gate("{quality: [delta pass_rate(quality) >= -0.03]}", 600, (index) => ({
    baseline: { passed: index % 2 === 0 },
    candidate: { passed: index % 2 === 0 && index !== 4 },
  }));
  assert.equal(result.outcome, "pass");
  assert.equal(result.items[0]?.method, "pairs, Newcombe's method 10");
  assert.ok(Math.abs((result.items[0]?.estimate ?? 0) + 1 / 600) < 1e-12);
});

test("percentiles, means, costs and error rates are held to their bounds", () => {
  const result = gate(
    "{latency: [p50(ttft_ms) <= 200, ratio mean(ttft_ms) <= 1.5, delta mean(duration_ms) <= 50, delta mean(duration_ms) <= 50 using welch], error_rate: [error_rate(timeout) <= 0.1, error_rate <= 0.03], cost: [mean(cost_usd) <= 0.01 by estimate], throughput: [throughput >= 15]}",
    400,
    (index) => ({
      baseline: { ttftMs: 90 + (index % 20), tokens: 20 + (index % 3) },
      candidate: {
        ttftMs: 100 + (index % 23),
        tokens: 20 + ((index >> 1) % 3),
        ...(index % 25 === 0 ? { failure: "timeout" } : {}),
      },
    }),
  );
  const verdicts = Object.fromEntries(result.items.map(({ expectation, verdict }) => [expectation, verdict]));
  assert.deepEqual(verdicts, {
    "p50(ttft_ms) <= 200": "pass",
    "ratio mean(ttft_ms) <= 1.5": "pass",
    "delta mean(duration_ms) <= 50": "pass",
    "delta mean(duration_ms) <= 50 using welch": "pass",
    "throughput >= 15": "pass",
    "error_rate(timeout) <= 0.1": "pass",
    "error_rate <= 0.03": "inconclusive",
    "mean(cost_usd) <= 0.01 by estimate": "pass",
  });
  const cost = result.items.find(({ dimension }) => dimension === "cost");
  assert.ok(Math.abs((cost?.estimate ?? 0) - (600 + 200 + 210) / 1e6) < 1e-5);
  const p50 = result.items[0];
  assert.equal(p50?.estimate, 10 + 111);
});

test("conversations are drawn as a whole: the same answers in fewer clusters say less", () => {
  const width = (perCluster: number): number => {
    const { items } = gate("{quality: [pass_rate(quality) >= 0.5]}", 200, (index) => {
      const cluster = Math.floor(index / perCluster);
      return { candidate: { passed: cluster % 3 !== 0 }, cluster: `c${cluster}` };
    });
    const [low = 0, high = 0] = items[0]?.interval ?? [];
    return high - low;
  };
  assert.ok(width(10) > 2 * width(1));
});

test("each way of not deciding has an outcome of its own", () => {
  const quality = "{quality: [pass_rate(quality) >= 0.9]}";
  assert.equal(gate(quality, 50, () => ({ candidate: { passed: "skipped" } })).outcome, "data");
  const broken = gate(quality, 50, (index) => ({ candidate: { passed: index < 30 ? true : "failed" } }), {
    judged: ["quality"],
    extra: "judge: {base_url: http://j, max_failure_rate: 0.1}",
  });
  assert.deepEqual([broken.outcome, broken.exitCode], ["judge_broken", 8]);
  const unreachable = gate(quality, 50, (index) => ({
    candidate: index < 40 ? { failure: "connection" } : {},
  }));
  assert.deepEqual([unreachable.outcome, unreachable.exitCode], ["target_unreachable", 6]);
  const failed = gate(quality, 50, (index) => ({ candidate: { passed: index < 40 ? false : "failed" } }), {
    judged: ["quality"],
  });
  assert.equal(failed.outcome, "judge_broken", "no verdict is drawn from a judge that is broken");
  assert.deepEqual(
    failed.items.map(({ verdict }) => verdict),
    ["inconclusive"],
  );
  const slow = gate(
    "{quality: [pass_rate(quality) >= 0.9], latency: [p50(ttft_ms) <= 10]}",
    50,
    (index) => ({ candidate: { passed: index < 40 ? false : "failed" } }),
    { judged: ["quality"] },
  );
  assert.deepEqual(
    [slow.outcome, slow.items.map(({ dimension, verdict }) => `${dimension}: ${verdict}`)],
    ["fail", ["latency: fail", "quality: inconclusive"]],
    "a failure that has nothing to do with the judge stands",
  );
});

test("a check whose evaluator broke is a broken judge, unless something failed or it only warns", () => {
  const broken: CheckResult = {
    ...sampleCheck("quantization", "inconclusive"),
    brokenEvaluators: [{ evaluator: "quality", side: "candidate", failed: 30, of: 60 }],
  };
  const of = (extra: string, ...checks: readonly CheckResult[]): GateResult =>
    gate("{quality: [pass_rate(quality) >= 0.9]}", 100, () => ({ candidate: {} }), { extra, checks });
  const result = of("checks: {quantization: {}}", broken);
  assert.deepEqual([result.outcome, result.exitCode], ["judge_broken", 8]);
  assert.equal(of("checks: {quantization: {on_fail: warn}}", broken).outcome, "pass");
  const failed = sampleCheck("jitter", "fail");
  assert.equal(of("checks: {quantization: {}, jitter: {}}", broken, failed).outcome, "fail");
  assert.deepEqual(
    [
      [],
      [failed, broken],
      [broken],
      [sampleCheck("jitter", "pass")],
      [sampleCheck("tail", "inconclusive")],
    ].map(exitCodeOfChecks),
    [3, 2, 8, 0, 3],
  );
});

test("answers that never came have not passed, and leave other figures undecided", () => {
  const lost = (share: number, expectations: string, both = false): GateResult =>
    gate(expectations, 400, (index) => {
      const own: Made = index < 400 * share ? { failure: "timeout" } : { ttftMs: 90 + (index % 7) };
      return { candidate: own, baseline: both ? { ...own, ttftMs: 90 + (index % 5) } : {} };
    });
  const rates = lost(
    0.9,
    "{quality: [pass_rate(quality) >= 0.9, delta pass_rate(quality) >= -0.05, pass_rate(quality) >= 0.9 by estimate]}",
  );
  assert.equal(rates.outcome, "fail");
  assert.deepEqual(
    rates.items.map(({ estimate, verdict }) => [estimate, verdict]),
    [
      [0.1, "fail"],
      [-0.9, "fail"],
      [0.1, "fail"],
    ],
  );
  const figures =
    "{quality: [mean(quality) >= 0.9 by estimate], latency: [p50(ttft_ms) <= 200, delta mean(ttft_ms) <= 50]}";
  const open = lost(0.9, figures);
  assert.deepEqual(
    open.items.map(({ verdict }) => verdict),
    ["inconclusive", "inconclusive", "inconclusive"],
  );
  assert.match(open.items[0]?.summary ?? "", /360 of 400 answers of candidate have no such figure/);
  assert.equal(lost(0.04, figures, true).outcome, "pass", "some may be missing");
});

test("scores that an evaluator could not give leave its figures undecided", () => {
  const result = gate("{quality: [pass_rate(quality) >= 0.5]}", 100, (index) => ({
    candidate: { passed: index % 2 === 0 ? true : "failed" },
  }));
  assert.equal(result.outcome, "inconclusive");
});

test("a failed answer to a case that an evaluator leaves out is nothing to it", () => {
  const result = gate("{quality: [pass_rate(quality) >= 0.9]}", 200, (index) => ({
    candidate: index < 100 ? { failure: "timeout", leftOut: true } : {},
  }));
  assert.deepEqual([result.outcome, result.items[0]?.numObservations], ["pass", 100]);
});

test("clusters that are all alike are not certainty", () => {
  const of = (
    health: string,
    clusters: number,
    answerTo: (index: number) => Made = () => ({}),
  ): GateResult["items"][number] | undefined =>
    gate(health, clusters * 5, (index) => ({
      baseline: answerTo(index),
      candidate: answerTo(index),
      cluster: `c${index % clusters}`,
    })).items[0];
  const eight = of("{quality: [pass_rate(quality) >= 0.97]}", 8);
  assert.deepEqual([eight?.verdict, eight?.estimate], ["inconclusive", 1]);
  assert.ok(Math.abs((eight?.interval?.[0] ?? 0) - 0.6756) < 1e-3, "Wilson's lower end of 8 of 8");
  assert.equal(of("{quality: [pass_rate(quality) >= 0.97]}", 130)?.verdict, "pass");
  assert.equal(of("{error_rate: [error_rate <= 0.03]}", 8)?.verdict, "inconclusive");
  assert.equal(of("{error_rate: [error_rate <= 0.03]}", 130)?.verdict, "pass");
  assert.equal(of("{quality: [delta pass_rate(quality) >= -0.03]}", 8)?.verdict, "inconclusive");
  assert.equal(of("{quality: [delta pass_rate(quality) >= -0.03]}", 130)?.verdict, "pass");
  const latency = of("{latency: [p50(ttft_ms) <= 200]}", 9);
  assert.match(latency?.summary ?? "", /every value is the same/);
  assert.equal(of("{latency: [ratio mean(ttft_ms) <= 1.1]}", 9)?.verdict, "inconclusive");
  const half = of("{quality: [pass_rate(quality) >= 0.2]}", 20, (index) => ({ passed: index < 40 }));
  assert.equal(half?.estimate, 0.4);
  assert.ok(half?.interval !== undefined && half.interval[0] < 0.37 && half.interval[1] > 0.43);
});

test("a warning is shown and does not decide", () => {
  const result = gate(
    "{quality: [{expect: pass_rate(quality) >= 0.9, on_fail: warn}]}",
    100,
    () => ({ candidate: { passed: false } }),
    {
      extra: "checks: {quantization: {}, tail: {on_fail: warn}}",
      checks: [sampleCheck("quantization", "pass"), sampleCheck("tail", "fail")],
    },
  );
  assert.equal(result.outcome, "pass");
  assert.match(result.summary, /with 2 to look at/);
});

test("a good release is not stopped by the number of its expectations", () => {
  const many = Array.from({ length: 40 }, () => "pass_rate(quality) >= 0.93").join(", ");
  const make = (index: number): { candidate: Made } => ({ candidate: { passed: index < 176 } });
  assert.equal(gate("{quality: [pass_rate(quality) >= 0.93]}", 200, make).outcome, "fail");
  assert.equal(gate(`{quality: [${many}]}`, 200, make).outcome, "inconclusive");
});
