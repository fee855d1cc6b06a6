import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { clusterSchema } from "../../config/deployment-schema.js";
import { cannotStart, chartedName, startChartedCluster } from "../../testing/charted-cluster.js";
import type { ControlPlane } from "../../testing/control-plane.js";
import { testDriverConformance } from "../../testing/driver-conformance.js";
import { podReplicaKey } from "../../testing/fake-kubernetes.js";
import { fakeSpec, until } from "../../testing/test-specs.js";
import { KubernetesDriver } from "./kubernetes-driver.js";

describe("Kubernetes' own API server and controllers", { skip: cannotStart }, () => {
  let plane: ControlPlane;
  let folder: string;
  before(async () => {
    plane = await startChartedCluster();
    folder = await mkdtemp(join(tmpdir(), "octavo-kubernetes-"));
    await writeFile(join(folder, "config"), plane.kubeconfig);
  });
  after(async () => {
    await plane.close();
    await rm(folder, { recursive: true });
  });

  const open = (): KubernetesDriver => {
    const { driver: config } = clusterSchema.parse({
      version: 1,
      deployments: [{ name: "fake", model_loading_config: { model_id: "m" } }],
      driver: {
        kind: "kubernetes",
        kubeconfig: join(folder, "config"),
        objects: { fake: chartedName },
        poll_interval_s: 0.2,
        min_ready_seconds: 2,
        replica_key: podReplicaKey,
      },
    });
    assert.ok(config.kind === "kubernetes");
    return new KubernetesDriver({ config, tell: () => undefined });
  };

  testDriverConformance("kubernetes (real control plane)", async () => {
    const driver = open();
    return {
      driver,
      periodMs: 50,
      rest: () => new Promise((resolve) => setTimeout(resolve, 3000)),
      spec: (version, kind) =>
        fakeSpec({ version, engineArgs: kind === "broken" ? ["--fault", "exit"] : [] }),
      async kill({ id }) {
        await plane.kill(id);
        await until(async () => (await driver.observe("fake")).every((one) => one.id !== id));
      },
      [Symbol.asyncDispose]: () => driver.close(),
    };
  });

  it("has no problem with the charts, and says what is not there", async () => {
    const driver = open();
    assert.deepEqual(await driver.problems([fakeSpec()]), []);
    const [missing = ""] = await driver.problems([fakeSpec({ fields: { name: "other" } })]);
    assert.match(missing, /other: Deployment other in default is not there; install the chart/);
    await driver.close();
  });
});
