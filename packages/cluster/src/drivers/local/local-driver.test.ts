import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { testDriverConformance } from "../../testing/driver-conformance.js";
import { fakeReplicaCommand, fakeSpec, fakeStandbyCommand, until } from "../../testing/test-specs.js";
import type { ReplicaSpec } from "../replica-driver.js";
import { CoreSet, ownCores, parseCores } from "./core-set.js";
import { LocalDriver } from "./local-driver.js";
import { planLocal } from "./plan-local.js";

const openDriver = (log = "off", said: string[] = []): LocalDriver =>
  new LocalDriver({
    config: { cores: undefined, log },
    command: fakeReplicaCommand,
    tell: (message) => said.push(message),
  });

const wanted = (spec: ReplicaSpec, count: number, ready: readonly string[] = []) => ({
  spec,
  count,
  ready: new Set(ready),
  rejected: new Map<string, string>(),
});

const withStandby = (said: string[] = []): LocalDriver =>
  new LocalDriver({
    config: { cores: undefined, log: "off" },
    command: fakeReplicaCommand,
    standby: fakeStandbyCommand,
    tell: (message) => said.push(message),
  });

for (const [name, open] of [
  ["local", openDriver],
  ["standby local", withStandby],
] as const)
  testDriverConformance(name, async () => {
    const driver = open();
    return {
      driver,
      periodMs: 10,
      spec: (version, kind) =>
        fakeSpec({ version, engineArgs: kind === "broken" ? ["--fault", "exit"] : [] }),
      async kill({ id }) {
        const pid = driver.pidOf(id);
        assert.ok(pid);
        process.kill(pid, "SIGKILL");
        await until(async () => (await driver.observe("fake")).every((replica) => replica.id !== id));
      },
      [Symbol.asyncDispose]: () => driver.close(),
    };
  });

describe("local replicas", () => {
  it("says before a start what the machine cannot give", async () => {
    const driver = openDriver();
    const many = ownCores().length + 1;
    const spec = (fields: object): ReplicaSpec => fakeSpec({ fields });
    assert.deepEqual(await driver.problems([spec({})]), []);
    const [cores = ""] = await driver.problems([
      spec({ num_replicas: many, ray_actor_options: { num_cpus: 1 } }),
    ]);
    assert.match(cores, new RegExp(`take ${many} cores .* there are ${many - 1}$`));
    const [memory = ""] = await driver.problems([
      spec({ num_replicas: 2, ray_actor_options: { num_cpus: 0, memory: 2 ** 50 } }),
    ]);
    assert.match(memory, /take 2097152\.0 GiB .* the machine has/);
    const source = { model_loading_config: { model_id: "m", model_source: "/nowhere/model" } };
    assert.match((await driver.problems([spec(source)]))[0] ?? "", /there is no model at \/nowhere\/model/);
    const foreign = new LocalDriver({
      config: { cores: "4000", log: "off" },
      command: fakeReplicaCommand,
      tell: () => undefined,
    });
    assert.match((await foreign.problems([spec({})]))[0] ?? "", /may not run on 4000/);
  });

  it("one that ends at once is started again after ever longer times, with what it said", async () => {
    const said: string[] = [];
    const driver = openDriver("off", said);
    const spec = fakeSpec({ engineArgs: ["--fault", "exit"] });
    await until(async () => {
      await driver.apply(wanted(spec, 1));
      return said.some((line) => line.includes("3 of fake in a row"));
    });
    assert.ok(said.some((line) => /ended by itself \(exit code 3: there is no such model\)/.test(line)));
    const waits = said.flatMap((line) => /starts in ([\d.]+) s/.exec(line)?.[1] ?? []).map(Number);
    assert.deepEqual(waits, [0.5, 1]);
    await driver.close();
  });

  it("a process waits once all replicas are ready, is the next one, on its cores, and is replaced; one that dies is not missed", async () => {
    const driver = withStandby();
    const spec = fakeSpec({ fields: { ray_actor_options: { num_cpus: 1 } } });
    const settle = (count: number): Promise<unknown> =>
      until(async () => {
        const ready = (await driver.observe("fake")).filter(({ url }) => url !== undefined);
        await driver.apply(
          wanted(
            spec,
            count,
            ready.map(({ id }) => id),
          ),
        );
        return ready.length === count;
      });
    await driver.apply(wanted(spec, 1));
    assert.equal(driver.standbyPid, undefined, "the first replica does not share its start");
    await settle(1);
    await until(() => driver.standbyPid !== undefined);
    const waiting = driver.standbyPid;
    await settle(2);
    assert.equal(driver.pidOf("fake-1"), waiting);
    if (process.platform === "linux") {
      const [, cores = ""] =
        /^Cpus_allowed_list:\s*(\S+)/m.exec(await readFile(`/proc/${waiting}/status`, "utf8")) ?? [];
      assert.equal(parseCores(cores).length, 1);
    }
    const next = driver.standbyPid;
    assert.ok(next !== undefined && next !== waiting);
    process.kill(next, "SIGKILL");
    await until(() => driver.standbyPid === undefined);
    await settle(3);
    assert.equal(driver.standbyPid, undefined, "it is not started over and over");
    await driver.close();
  });

  it("a log that cannot be written costs its lines alone", async () => {
    for (const log of ["/nowhere/replicas.log", "/dev/full"]) {
      const driver = openDriver(log);
      await until(async () => {
        await driver.apply(wanted(fakeSpec(), 1));
        return (await driver.observe("fake")).some(({ state }) => state === "running");
      });
      await until(() => driver.droppedLogLines > 0);
      await driver.close();
    }
    const folder = await mkdtemp(join(tmpdir(), "octavo-cluster-"));
    const path = join(folder, "replicas.log");
    const driver = openDriver(path);
    await until(async () => {
      await driver.apply(wanted(fakeSpec(), 1));
      return (await driver.observe("fake")).some(({ state }) => state === "running");
    });
    await driver.close();
    assert.match(await readFile(path, "utf8"), /^\[fake-0\] fake replica at http/);
    await rm(folder, { recursive: true });
  });

  it("cores are dealt evenly and given back", () => {
    assert.deepEqual(parseCores("0-2,5,2"), [0, 1, 2, 5]);
    const set = new CoreSet([0, 1, 2, 3]);
    assert.deepEqual(set.take("a", 2), [0, 1]);
    assert.deepEqual(set.take("b", 2), [2, 3]);
    assert.deepEqual(set.take("c", 2), [0, 1], "a new version shares with the one that it replaces");
    set.release("b");
    assert.deepEqual(set.take("d", 1), [2]);
  });

  it("where the new version never becomes ready, the old one stays", () => {
    const spec = fakeSpec({ version: "two" });
    const replica = (id: string, version: string) =>
      ({ id, version, state: "running", url: "http://x" }) as const;
    const old = [replica("a", "one"), replica("b", "one")];
    assert.deepEqual(planLocal(wanted(spec, 2, ["a", "b"]), old), { start: 1, stop: [] });
    const beside = [...old, replica("c", "two")];
    assert.deepEqual(planLocal(wanted(spec, 2, ["a", "b"]), beside), { start: 0, stop: [] });
    const next = planLocal(wanted(spec, 2, ["a", "b", "c"]), beside);
    assert.deepEqual(next, { start: 1, stop: [{ id: "a", how: "drain" }] });
  });
});
