import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { autoscalingSchema } from "../autoscaling/autoscaling-config.js";
import { sloSchema } from "../autoscaling/slo-policy.js";
import { EventHeap } from "./event-heap.js";
import { type ClusterSimulation, simulateCluster } from "./simulate-cluster.js";
import { generateCalls } from "./simulated-load.js";
import type { CallTimes } from "./simulated-replica.js";
import { findKnee, firstTokenMsOf, recoveryS, reportOf } from "./simulation-report.js";
import { clusterCosts } from "./step-costs.js";

/** About 20 requests a second of the lengths below for one replica. */
const costs = clusterCosts.parse({
  base_ms: 4,
  per_prompt_token_ms: 0.2,
  per_sequence_ms: 0.3,
  max_num_seqs: 16,
  cold_start_s: 1,
});
const lengths = { burstiness: 1, promptTokens: 60, outputTokens: 40 };

function simulation(more: Partial<ClusterSimulation>): ClusterSimulation {
  return {
    calls: generateCalls({
      ...lengths,
      phases: [{ fromS: 0, requestsPerSecond: 10 }],
      durationS: 60,
      seed: 1,
    }),
    costs,
    autoscaling: autoscalingSchema.parse({}),
    maxOngoing: 16,
    maxQueued: -1,
    seed: 3,
    ...more,
  };
}

describe("a simulated cluster", () => {
  it("gives a call alone the time of its steps", () => {
    const calls = [{ atS: 5, promptTokens: 100, outputTokens: 11 }];
    const { outcomes } = simulateCluster(simulation({ calls }));
    const [one] = outcomes;
    assert.ok(one);
    assert.ok(Math.abs(firstTokenMsOf(one) - (4 + 0.2 * 100)) < 1e-6);
    assert.ok(Math.abs((one.endS - one.firstTokenS) * 1000 - 10 * (4 + 0.3)) < 1e-6);
  });

  it("a request's overhead delays it alone: steps and other requests go on", () => {
    const calls = [0, 0.001].map((atS) => ({ atS, promptTokens: 50, outputTokens: 20 }));
    const [without, with7] = [0, 7].map((request_overhead_ms) =>
      simulateCluster(simulation({ calls, costs: { ...costs, request_overhead_ms } })),
    );
    assert.ok(without && with7);
    for (const [at, { firstTokenS, endS, longestGapS }] of without.outcomes.entries()) {
      const later: CallTimes | undefined = with7.outcomes[at];
      assert.ok(later);
      assert.ok(Math.abs(later.firstTokenS - firstTokenS - 0.007) < 1e-9);
      assert.ok(Math.abs(later.endS - endS - 0.007) < 1e-9);
      assert.equal(later.longestGapS, longestGapS);
    }
  });

  it("replicas of one machine slow each other while both compute, those of others do not", () => {
    const calls = [0, 0].map((atS) => ({ atS, promptTokens: 10, outputTokens: 101 }));
    const autoscaling = autoscalingSchema.parse({ min_replicas: 2, max_replicas: 2 });
    const secondsOf = (replicas_per_host: number, concurrent: boolean): number => {
      const shared = {
        ...costs,
        replicas_per_host,
        neighbour_slowdown: 0.5,
        neighbour_prompt_slowdown: 0.25,
      };
      const some = concurrent ? calls : calls.slice(0, 1);
      const given = simulation({ calls: some, costs: shared, autoscaling, maxOngoing: 1 });
      const [first] = simulateCluster(given).outcomes;
      assert.ok(first);
      return first.endS - first.firstTokenS;
    };
    const alone = secondsOf(2, false);
    assert.ok(Math.abs(secondsOf(1, true) - alone) < 1e-9);
    assert.ok(Math.abs(secondsOf(2, true) / alone - 1.5) < 0.01);
  });

  it("computes every token once, refuses what the queue does not take, and is the same each time", () => {
    const given = simulation({ maxQueued: 3, maxOngoing: 2 });
    const [one, other] = [simulateCluster(given), simulateCluster(given)];
    assert.deepEqual(one, other);
    assert.ok(one.numRefused > 0);
    assert.equal(one.outcomes.length + one.numRefused, given.calls.length);
    for (const { call, firstTokenS, endS } of one.outcomes)
      assert.ok(firstTokenS > call.atS && endS >= firstTokenS);
  });

  it("two replicas take about twice what one takes", () => {
    const objective = { firstTokenMs: 1000, tokenMs: 100 };
    const kneeOf = (replicas: number): number => {
      const autoscaling = autoscalingSchema.parse({ min_replicas: replicas, max_replicas: replicas });
      return findKnee(simulation({ autoscaling }), objective, 0.99).requestsPerSecond ?? 0;
    };
    const [one, two] = [kneeOf(1), kneeOf(2)];
    assert.ok(two / one > 1.7 && two / one < 2.4, `${one} and ${two}`);
  });

  it("scales to zero and back; the first call waits for the cold start alone", () => {
    const autoscaling = autoscalingSchema.parse({
      min_replicas: 0,
      downscale_delay_s: 5,
      look_back_period_s: 5,
      metrics_interval_s: 1,
    });
    const calls = [0, 60].map((atS) => ({ atS, promptTokens: 10, outputTokens: 2 }));
    const { outcomes, targets, replicaSeconds } = simulateCluster(simulation({ calls, autoscaling }));
    for (const one of outcomes) assert.ok(firstTokenMsOf(one) < 1000 * (costs.cold_start_s + 0.3));
    assert.deepEqual(targets.map(([, target]) => target).slice(0, 4), [0, 1, 0, 1]);
    assert.ok(replicaSeconds < 40, `${replicaSeconds}`);
  });

  it("a burst: the objective's policy recovers at least three times as fast as Ray's, for at most 1.2 of its replica-seconds", () => {
    const burstS = 120;
    const calls = generateCalls({
      ...lengths,
      phases: [
        { fromS: 0, requestsPerSecond: 6 },
        { fromS: burstS, requestsPerSecond: 26 },
        { fromS: 300, requestsPerSecond: 6 },
      ],
      durationS: 600,
      seed: 11,
    });
    const autoscaling = autoscalingSchema.parse({ max_replicas: 2, target_ongoing_requests: 8 });
    const slo = sloSchema.parse({ ttft_ms: 500 });
    const ray = simulateCluster(simulation({ calls, autoscaling }));
    const ours = simulateCluster(simulation({ calls, autoscaling, slo }));
    const [slow, quick] = [ray, ours].map(({ outcomes }) => recoveryS(outcomes, burstS, slo.ttft_ms));
    assert.ok(slow !== undefined && quick !== undefined && slow >= 3 * quick, `${slow} s and ${quick} s`);
    const share = ours.replicaSeconds / ray.replicaSeconds;
    assert.ok(share <= 1.2, `${share} of the replica-seconds`);
    const objective = { firstTokenMs: slo.ttft_ms, tokenMs: 100 };
    assert.ok(reportOf(ours, objective).attainment > reportOf(ray, objective).attainment);
  });

  it("pre-warmed replicas are there before the burst", () => {
    const calls = generateCalls({
      ...lengths,
      phases: [
        { fromS: 0, requestsPerSecond: 1 },
        { fromS: 120, requestsPerSecond: 40 },
      ],
      durationS: 180,
      seed: 5,
    });
    const autoscaling = autoscalingSchema.parse({ max_replicas: 4 });
    const slo = sloSchema.parse({
      ttft_ms: 300,
      prewarm: [{ at: "09:01", duration_s: 600, replicas: 4 }],
    });
    const epochMs = Date.UTC(2026, 0, 5, 9, 0);
    const { targets, outcomes } = simulateCluster(simulation({ calls, autoscaling, slo, epochMs }));
    assert.ok(targets.some(([atS, target]) => target === 4 && atS >= 60 && atS < 61));
    assert.equal(recoveryS(outcomes, 120, 300), 0);
  });
});

it("the heap gives its values in order of time", () => {
  const heap = new EventHeap<number>();
  const times = Array.from({ length: 500 }, (_, at) => (at * 7919) % 503);
  for (const time of times) heap.push(time, time);
  const order: number[] = [];
  while (heap.nextS < Number.POSITIVE_INFINITY) order.push(heap.pop() ?? -1);
  assert.deepEqual(
    order,
    times.toSorted((a, b) => a - b),
  );
});
