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

describe("answers that are not streamed", () => {
  test("are half of what checks of scores ask for, the same cases under every condition", async () => {
    const asked = new Map<string, Set<boolean | undefined>>();
    const watching = (name: string, isRight: (stream: boolean | undefined) => boolean) =>
      functionTarget(name, (one, { stream }) => {
        asked.set(one.id, (asked.get(one.id) ?? new Set()).add(stream));
        return isRight(stream) ? rightFor(one) : "wrong";
      });
    const sound = watching("sound", () => true);
    const bed = (candidate: typeof sound) =>
      bedOf(candidate, { baseline: sound, replicas: [sound, sound, candidate], cases: testCases(80) });
    for (const name of ["quantization", "replica-skew"]) {
      const broken = await checkNamed(name).run(bed(watching("broken", (stream) => stream === true)), {});
      assert.equal(broken.result.verdict, "fail", name);
      const wrong = broken.observations.filter(({ scores }) => scores["exact"] === 0);
      assert(wrong.length > 20 && wrong.every(({ tags }) => tags.includes("not-streamed")), name);
    }
    assert([...asked.values()].every((ways) => ways.size === 1));
    const numWhole = [...asked.values()].filter((ways) => ways.has(false)).length;
    assert(numWhole > 25 && numWhole < 55, `${numWhole} of 80 were not streamed`);
  });
});
