import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { type AutoscalingConfig, autoscalingSchema } from "./autoscaling-config.js";
import { aggregated, OngoingWindow } from "./ongoing-window.js";
import { type PendingScale, rayDecision } from "./ray-rule.js";

/** Decisions of Ray Serve 2.60 itself, written by `tools/oracle/make-ray-autoscaling-fixtures.py`. */
interface Fixture {
  readonly cases: readonly {
    readonly config: object;
    /** Time, replicas that run, target before, ongoing requests, decision. */
    readonly moments: readonly (readonly [number, number, number, number, number])[];
  }[];
  readonly averages: readonly {
    readonly times: readonly number[];
    readonly values: readonly number[];
    readonly end: number;
    readonly expected: Readonly<Record<AutoscalingConfig["aggregation_function"], number>>;
  }[];
}

const fixture = JSON.parse(
  readFileSync(new URL("../../fixtures/ray-autoscaling.json", import.meta.url), "utf8"),
) as Fixture;

describe("Ray's rule", () => {
  it("decides as Ray Serve decides, over sequences of moments of random configurations", () => {
    let numScaled = 0;
    for (const [number, { config: given, moments }] of fixture.cases.entries()) {
      const config = autoscalingSchema.parse(given);
      let pending: PendingScale | undefined;
      for (const [nowS, numRunning, target, totalRequests, expected] of moments) {
        const decision = rayDecision({ config, numRunning, target, totalRequests, nowS, pending });
        assert.equal(decision.target, expected, `case ${number} at ${nowS}`);
        pending = decision.pending;
        if (expected !== target) numScaled += 1;
      }
    }
    assert.ok(numScaled > 150, `${numScaled} decisions changed something`);
  });

  it("averages, or takes the peak or the trough, as Ray Serve does", () => {
    for (const { times, values, end, expected } of fixture.averages)
      for (const aggregation of ["mean", "max", "min"] as const) {
        const found = aggregated(times, values, end, aggregation);
        assert.ok(Math.abs(found - expected[aggregation]) < 1e-9, `${aggregation}: ${found}`);
      }
  });

  // cases by hand from the published formula: ceil(current + factor * (ongoing / target - current)), held for the delay
  it("follows the published formula", () => {
    const decide = (given: object, numRunning: number, totalRequests: number): number =>
      rayDecision({
        config: autoscalingSchema.parse({
          max_replicas: 100,
          upscale_delay_s: 0,
          downscale_delay_s: 0,
          ...given,
        }),
        numRunning,
        target: numRunning,
        totalRequests,
        nowS: 0,
        pending: undefined,
      }).target;
    assert.equal(decide({}, 1, 10), 5);
    assert.equal(decide({}, 4, 9), 5);
    assert.equal(decide({ upscaling_factor: 0.5 }, 2, 20), 6);
    assert.equal(decide({ downscaling_factor: 0.5 }, 8, 4), 5);
    assert.equal(decide({ max_replicas: 3 }, 1, 10), 3);
    assert.equal(decide({ min_replicas: 2 }, 4, 0), 2);
    assert.equal(decide({ min_replicas: 0 }, 4, 0), 1, "to one before zero");
    assert.equal(decide({ min_replicas: 0 }, 1, 0), 0);
    assert.equal(decide({ min_replicas: 0 }, 0, 0.3), 1);
  });
});

describe("the window of ongoing requests", () => {
  const config = autoscalingSchema.parse({ metrics_interval_s: 10, look_back_period_s: 30 });

  it("knows what was reported, and forgets what is older than the look-back period", () => {
    const window = new OngoingWindow(config);
    for (let now = 0; now <= 100; now += 0.1) window.observe(now, now < 50 ? 4 : 10);
    // the last report was at 100 and looks back to 70
    assert.equal(window.total(100), 10);
    const late = new OngoingWindow(config);
    for (let now = 0; now < 20; now += 0.1) late.observe(now, now < 11 ? 2 : 100);
    assert.equal(late.total(19.9), 2, "what came after the last report is not known");
  });

  it("reports at once where it is told to", () => {
    const window = new OngoingWindow(config);
    window.observe(0, 0);
    window.observe(1, 5);
    assert.equal(window.total(1), 0);
    window.report(1, 5);
    assert.ok(window.total(2) > 0);
  });
});

it("a configuration that contradicts itself is refused", () => {
  for (const wrong of [
    { min_replicas: 3, max_replicas: 2 },
    { initial_replicas: 5, max_replicas: 4 },
    { min_replicas: 2, initial_replicas: 1, max_replicas: 4 },
    { target_ongoing_requests: 0 },
    { upscale_delay_s: -1 },
    { max_replicas: 0 },
    { min_replica: 1 },
  ])
    assert.equal(autoscalingSchema.safeParse(wrong).success, false, JSON.stringify(wrong));
});
