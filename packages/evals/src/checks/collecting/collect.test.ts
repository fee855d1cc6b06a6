import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { functionTarget } from "../../targets/function-target.js";
import { checkNamed } from "../table.js";
import { bedOf, testCases, rightFor } from "../testing/test-bed.js";

describe("A/A runs on what was collected", () => {
  test("with conditions dealt by chance, checks seldom fail", async () => {
    let draw = 0;
    const unstable = functionTarget("c", (one) => (++draw % 5 === 0 ? "wrong" : rightFor(one)));
    const bed = bedOf(unstable, {
      baseline: unstable,
      replicas: [unstable, unstable, unstable],
      cases: testCases(40),
    });
    for (const name of ["quantization", "eviction", "replica-skew", "tail", "eviction-burst"]) {
      const quick =
        name === "eviction-burst" ? { burst_lead_ms: 0, burst_in_flight: 1, most_fillers: 1 } : {};
      const row = checkNamed(name);
      const { observations } = await row.run(bed, quick);
      const alarms = row.falseAlarms(observations, {}, { runs: 100, seed: 1 })!;
      assert(alarms.failed <= 10, `${name}: ${JSON.stringify(alarms)}`);
      assert.equal(alarms.runs, 100);
    }
  });
});
