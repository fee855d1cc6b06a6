import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Random } from "@octavo/statistics";
import { arrivalsOf, type ClientLoad, composedArrivals } from "./arrivals.js";

const even: ClientLoad = { tenant: "even", requestsPerMinute: 600, burstiness: 4 };
const bursty: ClientLoad = { tenant: "bursty", requestsPerMinute: 60, burstiness: 0.25 };

function gaps(load: ClientLoad): readonly number[] {
  const times = arrivalsOf(load, 3_600_000, new Random(1)).map(({ atMs }) => atMs);
  return times.map((at, index) => at - (times[index - 1] ?? 0));
}

describe("arrivals", () => {
  it("keep their client's rate and spread", () => {
    for (const load of [even, bursty]) {
      const all = gaps(load);
      const mean = all.reduce((sum, gap) => sum + gap, 0) / all.length;
      const spread = Math.sqrt(all.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / all.length) / mean;
      assert.ok(Math.abs(mean / (60_000 / load.requestsPerMinute) - 1) < 0.1, load.tenant);
      assert.ok(Math.abs(spread * Math.sqrt(load.burstiness) - 1) < 0.1, load.tenant);
    }
  });

  it("of one client do not move when another is left out", () => {
    const both = composedArrivals([even, bursty], 60_000, new Random(7));
    const alone = composedArrivals([even], 60_000, new Random(7));
    assert.deepEqual(
      both.filter(({ tenant }) => tenant === "even"),
      alone,
    );
    assert.ok(both.every(({ atMs }, index) => index === 0 || atMs >= both[index - 1]!.atMs));
    assert.ok(both.every(({ atMs }) => atMs < 60_000));
  });
});
