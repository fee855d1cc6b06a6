import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { TargetPool } from "@octavo/gateway/parts";
import { clusterSchema } from "../../config/deployment-schema.js";
import { DeploymentController } from "../../controller/deployment-controller.js";
import { testDriverConformance } from "../../testing/driver-conformance.js";
import { FakeKubernetes, podReplicaKey } from "../../testing/fake-kubernetes.js";
import { fakeReplicaCommand, fakeSpec, until } from "../../testing/test-specs.js";
import { KubernetesDriver } from "./kubernetes-driver.js";

const skip = process.platform === "linux" ? false : "pods need loopback addresses of their own";

async function open() {
  const fake = await FakeKubernetes.start(fakeReplicaCommand);
  const folder = await mkdtemp(join(tmpdir(), "octavo-kubernetes-"));
  const kubeconfig = join(folder, "config");
  await writeFile(kubeconfig, fake.kubeconfig);
  const deployments = [{ name: "fake", model_loading_config: { model_id: "m" } }];
  const { driver: config } = clusterSchema.parse({
    version: 1,
    deployments,
    driver: {
      kind: "kubernetes",
      kubeconfig,
      poll_interval_s: 0.05,
      min_ready_seconds: 1,
      replica_key: podReplicaKey,
    },
  });
  assert.ok(config.kind === "kubernetes");
  const said: string[] = [];
  const tell = (message: string): number => said.push(message);
  const driver = new KubernetesDriver({ config, tell });
  return {
    fake,
    driver,
    said,
    tell,
    async [Symbol.asyncDispose]() {
      await driver.close();
      await fake.close();
      await rm(folder, { recursive: true });
    },
  };
}

describe("Kubernetes", { skip }, () => {
  testDriverConformance("kubernetes", async () => {
    const { fake, driver, ...rest } = await open();
    return {
      driver,
      periodMs: 20,
      rest: () => new Promise((resolve) => setTimeout(resolve, 1100)),
      spec: (version, kind) =>
        fakeSpec({ version, engineArgs: kind === "broken" ? ["--fault", "exit"] : [] }),
      async kill({ id }) {
        fake.kill(id);
        await until(async () => (await driver.observe("fake")).every((one) => one.id !== id));
      },
      [Symbol.asyncDispose]: () => rest[Symbol.asyncDispose](),
    };
  });

  it("serving goes on with the pods known last while the API server is gone; watches resume, and begin anew after 410", async () => {
    await using under = await open();
    const { fake, driver, tell } = under;
    const pool = new TargetPool({ name: "fake", maxQueued: -1 });
    const spec = fakeSpec({ fields: { num_replicas: 2 } });
    const controller = new DeploymentController({ spec, driver, pool, tell });
    const members = (): string[] => Array.from(pool.members, ({ name }) => name);
    await until(() => members().length === 2);
    const before = members();

    fake.setAnswering(false);
    await until(() => !controller.isReachable);
    assert.deepEqual(members(), before);
    assert.ok(under.said.some((line) => /serving goes on with the replicas known last/.test(line)));
    fake.kill(before[0] ?? "");
    fake.setAnswering(true);
    await until(
      () => controller.isReachable && members().length === 2 && !members().includes(before[0] ?? ""),
    );

    // a watch that ends goes on where it was: nothing is listed again
    fake.bookmark();
    const { list } = fake.counts;
    const { watch } = fake.counts;
    fake.disconnect();
    await until(() => fake.counts.watch > watch);
    assert.equal(fake.counts.list, list);

    // what it missed is gone: everything is listed again
    fake.compact();
    fake.disconnect();
    await until(() => fake.counts.list > list);
    const [gone = ""] = members();
    fake.kill(gone);
    await until(() => members().length === 2 && !members().includes(gone));
    // each one that replaced another had the other's hot prefixes first
    assert.equal(
      under.said.filter((line) => / is ready .*, 3 tokens of hot prefixes cached$/.test(line)).length,
      3,
    );
    await controller.close();
  });

  it("says before a start what cannot be met, in the API server's words", async () => {
    await using under = await open();
    const { fake, driver } = under;
    assert.deepEqual(await driver.problems([fakeSpec()]), []);
    const [missing = ""] = await driver.problems([fakeSpec({ fields: { name: "other" } })]);
    assert.match(missing, /other: Deployment other in default is not there; install the chart/);
    fake.maxUnavailable = "25%";
    assert.match((await driver.problems([fakeSpec()])).join(), /set its strategy's maxUnavailable to 0/);
    fake.setAnswering(false);
    assert.match((await driver.problems([fakeSpec()])).join(), /^Kubernetes at http:\/\/127\.0\.0\.1:\d+: /);
    await assert.rejects(driver.observe("fake"), { code: "runner_unavailable" });
  });

  it("says what a pod runs: the specification's flags, its own name, the requests of its cores", async () => {
    await using under = await open();
    const fields = { ray_actor_options: { num_cpus: 2, memory: 1024 } };
    const spec = fakeSpec({ fields, engineArgs: ["--max-model-len", "512"] });
    await until(async () => {
      const wanted = { spec, count: 0, ready: new Set<string>(), rejected: new Map<string, string>() };
      return under.driver.apply(wanted).then(
        () => true,
        () => false,
      );
    });
    const [container] = under.fake.template.spec.containers;
    assert.deepEqual(container?.resources, { requests: { cpu: "2", memory: "1024" } });
    const expected =
      "serve --served-model-name m --drain-timeout 5 --threads 2 --max-model-len 512 --host 0.0.0.0 --port 8000 --replica-id $(POD_NAME)";
    assert.equal(container?.args?.join(" "), expected);
  });

  it("a kubeconfig that is not there is said", async () => {
    const driver = new KubernetesDriver({
      config: {
        kind: "kubernetes",
        kubeconfig: "/nowhere/config",
        objects: {},
        poll_interval_s: 1,
        min_ready_seconds: 1,
        namespace: undefined,
        replica_key: undefined,
        context: undefined,
      },
      tell: () => undefined,
    });
    assert.match((await driver.problems([fakeSpec()])).join(), /driver\.kubeconfig: .*\/nowhere\/config/);
  });
});
