import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { TestRandom } from "@octavo/text/testing/random";
import { SimulatedTraffic, type Trouble } from "../testing/simulated-traffic.js";
import { alarmThreshold, EDetector } from "./e-detector.js";
import { LatencySketch, RollingSketch } from "./latency-sketch.js";
import type { DetectorThresholds } from "./thresholds.js";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** What is alerted of when trouble comes after a day of peace, lasts, and goes. */
function alertsOf(trouble: Trouble, lastsMs = 20 * minuteMs, thresholds: Partial<DetectorThresholds> = {}) {
  const traffic = new SimulatedTraffic(7, thresholds);
  traffic.run(dayMs);
  assert.equal(traffic.alerts.length, 0);
  const fromMs = traffic.nowMs;
  traffic.run(lastsMs, trouble);
  traffic.run(hourMs);
  return traffic.alerts.map(({ detector, status, reason, tenant, atMs, form, example }) => ({
    detector,
    status,
    reason,
    tenant,
    form,
    culprits: example?.culprits.length,
    afterMs: atMs - fromMs,
  }));
}

describe("detectors in simulated time", () => {
  it("raise no alert in 100 uneventful days", () => {
    const traffic = new SimulatedTraffic(1);
    traffic.run(100 * dayMs);
    assert.deepEqual(
      traffic.alerts.map(({ detector, tenant, evidence }) => [detector, tenant, evidence]),
      [],
    );
    const { now, usual } = traffic.suite.decodeLatency.p99Ms;
    assert.ok(now !== undefined && usual !== undefined && usual > 50 && usual < 400, `${now} ${usual}`);
    const ratio = traffic.suite.cacheHitRatio.ratio.usual;
    assert.ok(ratio !== undefined && Math.abs(ratio - 0.63) < 0.02, String(ratio));
  });

  for (const [reason, trouble] of [
    ["prefill-burst", { prefillMs: 600 }],
    ["slow-compute", { decodeFactor: 20 }],
    ["batch-growth", { decodeFactor: 20, neighbours: 60 }],
    ["host-stall", { hostMs: 600 }],
    ["kv-eviction", { absentMs: 900, isPreempted: true }],
    ["scheduler-starve", { absentMs: 900 }],
  ] as const) {
    it(`tell ${reason} as the reason of slow tokens, and when it is over`, () => {
      const alerts = alertsOf(trouble).filter(({ detector }) => detector === "decode_latency");
      assert.deepEqual(
        alerts.map(({ status, reason: given, form }) => [status, given, form]),
        [
          ["firing", reason, "sequential"],
          ["resolved", reason, "sequential"],
        ],
      );
      const [fired, resolved] = alerts;
      assert.ok((fired?.afterMs ?? Infinity) <= 10 * minuteMs, `fired after ${fired?.afterMs} ms`);
      assert.ok((resolved?.afterMs ?? 0) > 20 * minuteMs && (resolved?.afterMs ?? Infinity) < 40 * minuteMs);
    });
  }

  it("keep data of a firing alert out of the baseline, so that it lasts as long as its cause", () => {
    const alerts = alertsOf({ prefillMs: 600 }, 3 * hourMs).filter(
      ({ detector }) => detector === "decode_latency",
    );
    assert.deepEqual(
      alerts.map(({ status }) => status),
      ["firing", "resolved"],
    );
    assert.ok((alerts[1]?.afterMs ?? 0) > 3 * hourMs);
  });

  it("distinguish a cache that is too small from new prompts", () => {
    for (const [reason, evictedShare] of [
      ["kv-eviction", 1],
      ["traffic-change", 0],
    ] as const) {
      const alerts = alertsOf({ lostHits: 0.8, evictedShare }, hourMs);
      assert.deepEqual(
        alerts.map(({ detector, status, reason: given }) => [detector, status, given]),
        [
          ["cache_hit_ratio", "firing", reason],
          ["cache_hit_ratio", "resolved", reason],
        ],
      );
      assert.ok((alerts[0]?.afterMs ?? Infinity) <= hourMs);
    }
  });

  it("find a small tenant that waits for others, and name the others", () => {
    const alerts = alertsOf({ slowTenant: { name: "small", ms: 5000, cause: "queue" } }, 4 * hourMs);
    const tenants = alerts.filter(({ detector }) => detector === "tenant_latency");
    assert.deepEqual(
      tenants.map(({ status, tenant, reason, culprits }) => [status, tenant, reason, culprits]),
      [
        ["firing", "small", "scheduler-starve", 0],
        ["resolved", "small", "scheduler-starve", 0],
      ],
    );
  });

  it("do not report a tenant with long prompts, or a slowdown of all", () => {
    const own = alertsOf({ slowTenant: { name: "small", ms: 5000, cause: "prefill" } }, 4 * hourMs);
    const all = alertsOf({ slowForAllMs: 5000 }, 4 * hourMs);
    for (const alerts of [own, all])
      assert.deepEqual(
        alerts.filter(({ detector }) => detector === "tenant_latency"),
        [],
      );
  });

  it("report a nearly full KV cache, and whether it causes evictions", () => {
    for (const [preemptions, reason] of [
      [0, "kv-pressure"],
      [2, "kv-eviction"],
    ] as const) {
      const traffic = new SimulatedTraffic(3);
      const wait = (ms: number): void => {
        for (let second = 0; second < ms / 1000; second += 1) {
          traffic.nowMs += 1000;
          traffic.evaluate();
        }
      };
      wait(60_000);
      traffic.stats.kvCacheUsage = 0.95;
      wait(10_000);
      traffic.stats.kvCacheUsage = 0.5;
      wait(60_000);
      assert.equal(traffic.alerts.length, 0, "a moment is no alert");
      traffic.stats.kvCacheUsage = 0.95;
      wait(5000);
      const step = { step: 1, startMs: 0, durationMs: 1, computeMs: 1, prefillMs: 0, numSequences: 1 };
      const rest = { prefillTokens: 0, decodeTokens: 1, blocksUsed: 950, blocksEvicted: 0, preemptions };
      traffic.suite.observer.onStep?.({ ...step, ...rest });
      wait(40_000);
      traffic.stats.kvCacheUsage = 0.87;
      wait(60_000);
      assert.equal(traffic.alerts.length, 1, "it does not flutter");
      traffic.stats.kvCacheUsage = 0.5;
      wait(60_000);
      assert.deepEqual(
        traffic.alerts.map(({ detector, status, reason: given }) => [detector, status, given]),
        [
          ["kv_usage", "firing", reason],
          ["kv_usage", "resolved", reason],
        ],
      );
    }
  });

  it("report a request that was overtaken for too long, but not a queue in which all wait", () => {
    const traffic = new SimulatedTraffic(5);
    traffic.run(hourMs);
    const queued = (waitedMs: number): void => {
      traffic.nowMs += 100;
      traffic.request("small", waitedMs, "queue");
      traffic.evaluate();
    };
    traffic.nowMs += minuteMs;
    // first come, first served: each waits as long as those before it
    for (let index = 0; index < 50; index += 1) queued(30_000);
    assert.equal(traffic.alerts.length, 0);
    for (let index = 0; index < 20; index += 1) queued(50);
    queued(40_000);
    const [starved] = traffic.alerts;
    assert.equal(starved?.detector, "scheduler_starvation");
    assert.equal(starved.reason, "scheduler-starve");
    assert.ok(starved.exampleRequestId !== undefined);
    traffic.run(5 * minuteMs);
    assert.equal(traffic.alerts.at(-1)?.status, "resolved");

    const before = traffic.alerts.length;
    traffic.stats.waiting = 1;
    traffic.stats.oldestWaitingMs = 20_000;
    traffic.nowMs += 30_000;
    traffic.evaluate();
    assert.equal(traffic.alerts.length, before, "nobody came after it");
    queued(50);
    assert.equal(traffic.alerts.length, before + 1);
  });

  it("also alert by plain rules if enabled", () => {
    const traffic = new SimulatedTraffic(11, {}, true);
    traffic.run(dayMs);
    for (let index = 0; index < 120; index += 1) {
      traffic.nowMs += 1000;
      traffic.request("large", 200, "queue", { lostHits: 0.9, evictedShare: 1 });
      traffic.evaluate();
    }
    assert.deepEqual(
      traffic.alerts.map(({ detector, form, reason }) => [detector, form, reason]),
      [["cache_hit_ratio", "rule", "kv-eviction"]],
    );
  });

  it("monitor any number of tenants in bounded memory", () => {
    const traffic = new SimulatedTraffic(13);
    for (let index = 0; index < 5000; index += 1) {
      traffic.nowMs += 10;
      traffic.request(`t${index}`, 100, "queue");
    }
    assert.ok(traffic.suite.tenantLatency.ratios().size <= 129);
  });
});

describe("the sequential test", () => {
  it("stays quiet on chance, and finds a change whenever it comes", () => {
    const random = new TestRandom(17);
    const test = new EDetector();
    const alarmAt = alarmThreshold(10, 10_000, 1);
    const observe = (rate: number): void => test.observe((random.next() < rate ? 1 : 0) - 0.01, 0.01);
    for (let index = 0; index < 500_000; index += 1) {
      observe(0.01);
      assert.ok(test.value < alarmAt);
    }
    let needed = 0;
    for (; test.value < alarmAt && needed < 5000; needed += 1) observe(0.2);
    assert.ok(needed < 200, `${needed} observations`);
    test.reset();
    assert.equal(test.value, 1);
  });
});

describe("sketches", () => {
  it("have quantiles within 2.5 %, whatever is added and taken away", () => {
    const random = new TestRandom(19);
    const sketch = new LatencySketch();
    const gone = new LatencySketch();
    const values: number[] = [];
    for (let index = 0; index < 20_000; index += 1) {
      const value = 0.1 * Math.exp(8 * random.next());
      sketch.add(value);
      if (index % 3 === 0) gone.add(value);
      else values.push(value);
    }
    sketch.removeAll(gone);
    values.sort((a, b) => a - b);
    assert.equal(sketch.count, values.length);
    for (const share of [0.01, 0.5, 0.9, 0.99, 1]) {
      const exact = values[Math.max(0, Math.ceil(share * values.length) - 1)]!;
      assert.ok(Math.abs((sketch.quantile(share) ?? 0) / exact - 1) < 0.026, `${share}`);
    }
    assert.equal(new LatencySketch().quantile(0.5), undefined);
    for (const odd of [Number.NaN, -1, 0, Number.POSITIVE_INFINITY, 1e12]) new LatencySketch().add(odd);
  });

  it("forget slices as they leave the window", () => {
    const rolling = new RollingSketch(3);
    rolling.add(10);
    rolling.rotate();
    rolling.add(1000);
    rolling.rotate();
    assert.equal(rolling.total.count, 2);
    let left = 0;
    rolling.rotate((slice) => (left = slice.count));
    assert.equal(left, 1);
    assert.equal(rolling.total.count, 1);
  });
});
