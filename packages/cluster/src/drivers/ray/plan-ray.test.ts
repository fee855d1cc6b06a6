import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { mulberry32 } from "@octavo/protocol/testing/mulberry32";
import { fakeSpec } from "../../testing/test-specs.js";
import type { ObservedReplica } from "../replica-driver.js";
import { planRay } from "./plan-ray.js";

const replica = (id: string, version: string): ObservedReplica => ({
  id,
  version,
  state: "running",
  url: "http://x",
});

const plan = (
  count: number,
  ready: readonly string[],
  observed: readonly ObservedReplica[],
  running: Record<string, number>,
): object =>
  Object.fromEntries(
    planRay(
      { spec: fakeSpec({ version: "two" }), count, ready: new Set(ready), rejected: new Map() },
      observed,
      new Map(Object.entries(running)),
    ),
  );

describe("how many replicas Ray is asked for", () => {
  it("as many as wanted where there is one version, none of one that nobody wants", () => {
    assert.deepEqual(plan(3, [], [], {}), { two: 3 });
    assert.deepEqual(plan(0, [], [], { two: 3 }), {});
    assert.deepEqual(plan(0, [], [], { one: 2 }), {});
  });

  it("old ones go as new ones are admitted, one by one", () => {
    const old = [replica("a", "one"), replica("b", "one")];
    assert.deepEqual(plan(2, ["a", "b"], old, { one: 2 }), { one: 2, two: 1 });
    const beside = [...old, replica("c", "two")];
    assert.deepEqual(plan(2, ["a", "b"], beside, { one: 2, two: 1 }), { one: 2, two: 1 });
    assert.deepEqual(plan(2, ["a", "b", "c"], beside, { one: 2, two: 1 }), { one: 1, two: 2 });
    const last = [...beside, replica("d", "two")];
    assert.deepEqual(plan(2, ["a", "c", "d"], last, { one: 1, two: 2 }), { two: 2 });
  });

  it("a controller that has just started and met nobody takes nothing away", () => {
    assert.deepEqual(plan(2, [], [replica("a", "one"), replica("b", "one")], { one: 2 }), { one: 2, two: 1 });
  });

  it("any order of starts and admissions ends at the number wanted, and never asks for fewer than that in all", () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const random = mulberry32(seed);
      const count = 1 + Math.floor(random() * 4);
      let running: Record<string, number> = { one: count };
      let observed = Array.from({ length: count }, (_, at) => replica(`one-${at}`, "one"));
      const ready = new Set(observed.map(({ id }) => id));
      let next = 0;
      for (let step = 0; step < 100; step += 1) {
        running = plan(count, [...ready], observed, running) as Record<string, number>;
        const total = Object.values(running).reduce((sum, number) => sum + number, 0);
        assert.ok(total >= count && total <= count + 1, `seed ${seed}: ${JSON.stringify(running)}`);
        for (const version of ["one", "two"]) {
          const own = observed.filter((one) => one.version === version);
          const wanted = running[version] ?? 0;
          for (const { id } of own.slice(wanted)) {
            observed = observed.filter((one) => one.id !== id);
            ready.delete(id);
          }
          if (own.length < wanted && random() < 0.5) observed.push(replica(`two-${(next += 1)}`, version));
        }
        for (const { id } of observed) if (random() < 0.3) ready.add(id);
      }
      assert.deepEqual(running, { two: count });
    }
  });
});
