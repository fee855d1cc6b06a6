import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { after, before } from "node:test";
import { freePorts } from "@octavo/protocol/free-ports";
import { hasRay, type RayNode, RayServer } from "@octavo/protocol/testing/ray-server";
import { clusterSchema } from "../../config/deployment-schema.js";
import { isHealthy } from "../../controller/replica-identity.js";
import { testDriverConformance } from "../../testing/driver-conformance.js";
import { fakeReplicaCommand, fakeSpec, until } from "../../testing/test-specs.js";
import type { ObservedReplica, ReplicaSpec } from "../replica-driver.js";
import { RayDriver } from "./ray-driver.js";

const skip = hasRay ? false : "there is no ray on this machine";

const configOf = (fields: object) => {
  const shape = { version: 1, deployments: [{ name: "a", model_loading_config: { model_id: "m" } }] };
  const { driver } = clusterSchema.parse({ ...shape, driver: { kind: "ray", ...fields } });
  assert.ok(driver.kind === "ray");
  return driver;
};

describe("Ray Serve with two raylets", { skip }, () => {
  let ray: RayServer;
  let second: RayNode;
  let httpPort = 0;
  before(async () => {
    [httpPort = 0] = await freePorts(1);
    ray = await RayServer.start(4);
    second = await ray.addNode(4);
  });
  after(() => ray.stop());

  const open = (said: string[] = []): RayDriver =>
    new RayDriver({
      config: configOf({
        dashboard: ray.dashboardUrl,
        http_port: httpPort,
        command: fakeReplicaCommand,
        poll_interval_s: 0.2,
      }),
      tell: (message) => said.push(message),
    });
  const specOf = (version: string, more: Parameters<typeof fakeSpec>[0] = {}): ReplicaSpec =>
    fakeSpec({
      version,
      ...more,
      fields: {
        ray_actor_options: { num_cpus: 1 },
        graceful_shutdown_timeout_s: 2,
        // as often does Ray look whether a process is gone
        health_check_period_s: 1,
        ...more.fields,
      },
    });

  testDriverConformance("ray", async () => {
    const driver = open();
    return {
      driver,
      periodMs: 100,
      spec: (version, kind) => specOf(version, { engineArgs: kind === "broken" ? ["--fault", "exit"] : [] }),
      async kill({ id }) {
        const pid = driver.pidOf(id);
        assert.ok(pid);
        process.kill(pid, "SIGKILL");
        await until(async () => (await driver.observe("fake")).every((replica) => replica.id !== id));
      },
      [Symbol.asyncDispose]: () => driver.close(),
    };
  });

  it("a node that dies takes its replica along, and another node gets a new one; requests through Ray stream", async () => {
    const driver = open();
    const spec = specOf("nodes");
    const settle = async (): Promise<readonly ObservedReplica[]> => {
      for (;;) {
        const observed = await driver.observe("fake");
        const healthy = await Promise.all(
          observed.map(
            async ({ state, url }) => state === "running" && url !== undefined && isHealthy(url, 2000),
          ),
        );
        if (healthy.length === 2 && healthy.every(Boolean)) return observed;
        await driver.apply({ spec, count: 2, ready: new Set(), rejected: new Map() });
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    };
    const first = await settle();
    const answer = await fetch(`http://127.0.0.1:${httpPort}/octavo/fake/nodes/server_info`);
    assert.equal(answer.status, 200);
    const { replica_id: answered } = (await answer.json()) as { replica_id: string };
    assert.ok(first.some((one) => one.id === answered));
    const reports = await until(async () => {
      const said = (await (await fetch(`http://127.0.0.1:${httpPort}/octavo`)).json()) as Record<
        string,
        object
      >;
      return Object.values(said).some((one) => "octavo_requests_running" in one) ? said : false;
    });
    assert.deepEqual(
      { ...reports[answered], url: "", age_s: 0 },
      { url: "", age_s: 0, healthy: true, octavo_requests_running: 3, octavo_kv_cache_usage: 0.25 },
    );
    await second.kill();
    await until(async () =>
      (await driver.observe("fake")).some(({ id }) => !first.some((one) => one.id === id)),
    );
    const next = await settle();
    assert.ok(
      next.some(({ id }) => first.some((one) => one.id === id)),
      "the one on the other node was left alone",
    );
    await driver.close();
    assert.deepEqual(await driver.observe("fake"), []);
  });

  it("what Ray gives up on is said in the replica's own words", async () => {
    const said: string[] = [];
    const driver = open(said);
    const spec = specOf("broken", { engineArgs: ["--fault", "exit"] });
    await until(async () => {
      await driver.apply({ spec, count: 1, ready: new Set(), rejected: new Map() });
      return said.length > 0;
    });
    assert.match(
      said[0] ?? "",
      /^octavo-fake-broken: fake-\w+ ended with 3: there is no such model.*; it is started over in 5 s$/,
    );
    await driver.close();
  });

  it("says before a start what Ray's nodes cannot give", async () => {
    const driver = open();
    assert.deepEqual(await driver.problems([specOf("one")]), []);
    const fields = { num_replicas: 3, ray_actor_options: { num_cpus: 5 } };
    const found = await driver.problems([specOf("one", { fields })]);
    assert.match(
      found.join("\n"),
      /no node of Ray has 5 CPU; the largest has 4\n.* take 15 CPU .*; Ray has 4$/,
    );
  });
});

describe("a Ray that does not answer", () => {
  it("is a problem before a start, and unavailable afterwards", async () => {
    const driver = new RayDriver({
      config: configOf({ dashboard: "http://127.0.0.1:1" }),
      tell: () => undefined,
    });
    assert.match(
      (await driver.problems([fakeSpec()])).join(),
      /Ray's dashboard at http:\/\/127\.0\.0\.1:1 does not answer/,
    );
    await assert.rejects(driver.observe("fake"), { code: "runner_unavailable" });
    const wanted = {
      spec: fakeSpec(),
      count: 1,
      ready: new Set<string>(),
      rejected: new Map<string, string>(),
    };
    await assert.rejects(driver.apply(wanted), { code: "runner_unavailable" });
    await driver.close();
  });
});
