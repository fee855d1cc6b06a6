import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type IsolationReport, isolationReports } from "./isolation-report.js";
import { isolationCases } from "./isolation-cases.js";
import { requestsOf, together } from "./load.js";
import { simulate } from "./simulate.js";
import { linearCosts, recordedCosts } from "./step-costs.js";

describe("the scheduler in virtual time", () => {
  test("the same load gives the same result, and every request is served", () => {
    const load = { requestsPerMinute: 300, burstiness: 0.25, promptTokens: 200, outputTokens: 20 };
    const requests = together(
      requestsOf({ ...load, account: { tenant: "a" } }, 60_000, 1),
      requestsOf({ ...load, account: { tenant: "b" } }, 60_000, 2),
    );
    for (const policy of ["fcfs", "fair"] as const) {
      const options = {
        policy,
        costs: linearCosts("linear", 20, 0.1, 0.3),
        maxNumSeqs: 16,
        maxNumBatchedTokens: 512,
        numBlocks: 400,
        checkEvery: 7,
      };
      const run = simulate(requests, options);
      assert.equal(Object.keys(run.outcomes).length, requests.length);
      assert.deepEqual(simulate(requests, options), run);
    }
  });

  test("recorded costs are met where they were recorded, and linear between", () => {
    const steps = {
      name: "r",
      processor: "p",
      promptTokens: [0, 100],
      decodes: [0, 1, 4],
      ms: [
        [0, 10, 16],
        [30, 32, 50],
      ],
    };
    const costs = recordedCosts(steps);
    assert.equal(costs.of(0, 1), 10);
    assert.equal(costs.of(100, 4), 50);
    assert.equal(costs.of(50, 1), 21);
    assert.equal(costs.of(0, 2), 12);
    assert.equal(costs.of(200, 1), 54, "beyond the end it goes on as before");
    assert.equal(recordedCosts(steps, 3).of(50, 1), 63, "slower by so many times");
  });
});

describe("steps that compute prompts beside generating sequences", () => {
  const load = {
    requestsPerMinute: 15,
    burstiness: 1,
    promptTokens: 1500,
    outputTokens: 60,
    account: { tenant: "a" },
  };
  const requests = requestsOf(load, 600_000, 3);
  const machines = [
    // name, ms of any step, ms per prompt token, ms per generating sequence
    ["a large model on few cores", 80, 4.5, 2],
    ["a slow disk of weights", 150, 1, 1],
    ["a token that takes a third of the bound", 20, 70, 5],
    ["a quick machine with many sequences", 10, 0.3, 6],
  ] as const;
  for (const [name, base, perPromptToken, perDecode] of machines) {
    test(`keep --max-prefill-step-ms: ${name}`, () => {
      for (const policy of ["fcfs", "fair"] as const) {
        const { mixedStepsMs, outcomes } = simulate(requests.slice(0, perPromptToken > 10 ? 5 : 60), {
          policy,
          costs: linearCosts(name, base, perPromptToken, perDecode),
          maxNumSeqs: 8,
          maxNumBatchedTokens: 2048,
          numBlocks: 2000,
        });
        assert.ok(mixedStepsMs.length > 20 && Object.keys(outcomes).length > 0);
        const [longest = 0] = mixedStepsMs.slice(-1);
        const p99 = mixedStepsMs[Math.floor(0.99 * mixedStepsMs.length)] ?? 0;
        assert.ok(p99 <= 200 && longest <= 210, `p99 ${p99} ms, longest ${longest} ms`);
      }
    });
  }
  for (const [name, base, perPromptToken] of [
    ["a model too large for the bound", 400, 1],
    ["one whose prompt tokens are slow, too", 350, 40],
  ] as const) {
    test(`are little longer than those without, and prompts go on: ${name}`, () => {
      const served = requests.slice(0, 12);
      for (const policy of ["fcfs", "fair"] as const) {
        const { mixedStepsMs, outcomes } = simulate(served, {
          policy,
          costs: linearCosts(name, base, perPromptToken, 2),
          maxNumSeqs: 8,
          maxNumBatchedTokens: 2048,
          numBlocks: 2000,
          checkEvery: 101,
        });
        assert.equal(Object.keys(outcomes).length, served.length, "every prompt came to its end");
        const [longest = 0] = mixedStepsMs.slice(-1);
        const p99 = mixedStepsMs[Math.floor(0.99 * mixedStepsMs.length)] ?? 0;
        const most = Math.max(1.05 * (base + 16), base + 16 + perPromptToken);
        assert.ok(p99 <= most && longest <= 1.1 * most, `p99 ${p99} ms, longest ${longest} ms of ${most}`);
      }
    });
  }
});

/** 5 against 500 requests a minute, in bursts. */
describe("a small tenant beside a large one", () => {
  for (const isolationCase of isolationCases) {
    test(isolationCase.name, (context) => {
      const [firstCome, fair] = isolationReports(isolationCase, ["fcfs", "fair"]);
      assert.ok(firstCome !== undefined && fair !== undefined);
      context.diagnostic(line(firstCome));
      context.diagnostic(line(fair));
      assert.ok(firstCome.firstTokenToSolo > 5, "first-come does not keep them apart");
      assert.ok(fair.firstTokenToSolo <= 5, line(fair));
      assert.ok(fair.e2eToSolo <= 2.25, line(fair));
      assert.ok(fair.e2eToAggregate <= 1.5, line(fair));
      assert.ok(fair.throughputToFirstCome >= 0.93, line(fair));
    });
  }
});

function line(report: IsolationReport): string {
  const { policy, firstTokenToSolo, e2eToSolo, e2eToAggregate, throughputToFirstCome, utilization } = report;
  return (
    `${policy}: p99 to first token ${firstTokenToSolo.toFixed(2)} and to end ${e2eToSolo.toFixed(2)} of solo, ` +
    `${e2eToAggregate.toFixed(2)} of all; throughput ${(100 * throughputToFirstCome).toFixed(1)} % of first-come; ` +
    `${(100 * utilization).toFixed(0)} % busy, ${report.preemptions} preemptions`
  );
}
