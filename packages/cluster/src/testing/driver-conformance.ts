import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { warmPrefixes } from "../controller/prefix-warm-up.js";
import { isHealthy } from "../controller/replica-identity.js";
import type { ObservedReplica, ReplicaDriver, ReplicaSpec } from "../drivers/replica-driver.js";

export interface DriverUnderTest extends AsyncDisposable {
  readonly driver: ReplicaDriver;
  /** A specification of the same deployment; another version replaces its replicas. Those of `broken` end at their start. */
  spec(version: string, kind?: "broken"): ReplicaSpec;
  /** Makes a replica die as a machine's failure would. */
  kill(replica: ObservedReplica): Promise<void>;
  /** Waits until what runs replicas counts those that answer as available, where it takes a while. */
  rest?(): Promise<void>;
  /** How often the driver is asked. */
  readonly periodMs: number;
}

/** What every driver does, whatever runs its replicas. `open` starts from no replicas. */
export function testDriverConformance(name: string, open: () => Promise<DriverUnderTest>): void {
  describe(`the ${name} driver`, () => {
    it("starts replicas that answer, replaces those that die or are rejected, updates them in turn, and stops them", async () => {
      await using under = await open();
      const { driver, periodMs } = under;
      const deployment = under.spec("one").deployment.name;
      const seen = new Set<string>();
      const rejected = new Map<string, string>();
      let ready: readonly ObservedReplica[] = [];

      /** One turn of a controller: looks, finds out who is healthy, and says what is wanted. */
      const turn = async (spec: ReplicaSpec, count: number): Promise<void> => {
        const observed = await driver.observe(deployment);
        for (const { id } of observed) seen.add(id);
        const healthy = await Promise.all(
          observed.map(
            async ({ id, state, url }) =>
              state === "running" && url !== undefined && !rejected.has(id) && (await isHealthy(url, 2000)),
          ),
        );
        for (const { id, version } of observed.filter((_, at) => healthy[at]))
          if (version === "differs") rejected.set(id, "its logits differ");
        ready = observed.filter(({ id }, at) => healthy[at] === true && !rejected.has(id));
        await driver.apply({ spec, count, ready: new Set(ready.map(({ id }) => id)), rejected });
        await new Promise((resolve) => setTimeout(resolve, periodMs));
      };
      const settle = async (spec: ReplicaSpec, count: number): Promise<void> => {
        for (;;) {
          await turn(spec, count);
          const observed = await driver.observe(deployment);
          const good = ready.filter(({ version }) => version === spec.version);
          if (good.length === count && observed.length === count) return;
        }
      };

      const one = under.spec("one");
      await settle(one, 2);
      const [first, second] = ready;
      assert.ok(first && second && first.id !== second.id && first.url !== second.url);

      const warmUp = { url: second.url ?? "", others: [first.url ?? ""], timeoutMs: 5000 };
      assert.ok(driver.replicaKey);
      assert.equal(await warmPrefixes({ ...warmUp, key: driver.replicaKey }), 3);
      assert.equal(await warmPrefixes({ ...warmUp, key: "another key" }), 0);

      await under.kill(first);
      await settle(one, 2);
      assert.ok(
        !ready.some(({ id }) => id === first.id),
        "a replica that died does not come back under its id",
      );
      assert.ok(
        ready.some(({ id }) => id === second.id),
        "the other one was left alone",
      );

      rejected.set(second.id, "differs");
      await settle(one, 2);
      assert.ok(!ready.some(({ id }) => id === second.id));
      rejected.clear();

      await under.rest?.();
      const two = under.spec("two");
      let fewest = Number.POSITIVE_INFINITY;
      const isUpdated = (): boolean => ready.every(({ version }) => version === "two") && ready.length === 2;
      while (!isUpdated()) {
        await turn(two, 2);
        fewest = Math.min(fewest, ready.length);
      }
      assert.ok(fewest >= 2, `there were ${fewest} ready replicas during the update`);
      await settle(two, 2);

      // replicas that end at their start, again and again, and replicas that are not like the others: the version before serves on
      for (const bad of [under.spec("broken", "broken"), under.spec("differs")]) {
        await under.rest?.();
        const isSeen = (): boolean => bad.version === "broken" || rejected.size > 0;
        for (let turns = 0; turns < 25 || !isSeen(); turns += 1) {
          await turn(bad, 2);
          const served = ready.filter(({ version }) => version === "two").length;
          assert.ok(served >= 2, `${served} replicas serve on beside version ${bad.version}`);
        }
        await settle(two, 2);
      }
      rejected.clear();

      const before = ready.map(({ id }) => id);
      await settle(two, 1);
      assert.ok(before.includes(ready[0]?.id ?? ""), "scaling down keeps one that was there");
      await settle(two, 0);
      await settle(two, 1);
      assert.ok(!before.includes(ready[0]?.id ?? ""), "an id is never given twice");
      assert.ok(seen.size >= 7, [...seen].join());
    });
  });
}
