// Charts of deploy/helm: rendered by Helm, judged by the published schemas of Kubernetes, KEDA and the Prometheus operator, and held to
// the program they start.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import test, { after } from "node:test";
import { parse, parseAllDocuments, stringify } from "yaml";
import { root } from "../lib/steps.mjs";

const tools = process.env.KUBERNETES_TOOLS;
const skip = tools === undefined ? "KUBERNETES_TOOLS names no folder with helm and schemas" : false;
const folder = mkdtempSync(join(tmpdir(), "octavo-helm-"));
after(() => rmSync(folder, { recursive: true }));

const chartAt = (chart) => join(root, "deploy/helm", chart);
let numFiles = 0;

function render(chart, values = {}) {
  const path = join(folder, `values-${(numFiles += 1)}.yaml`);
  writeFileSync(path, stringify(values));
  const { status, stdout, stderr } = spawnSync(
    join(tools, "bin/helm"),
    [
      "template",
      "octavo",
      chartAt(chart),
      "--namespace",
      "llm",
      "--kube-version",
      "1.35.0",
      "--values",
      path,
    ],
    { encoding: "utf8" },
  );
  return { status, stderr, objects: parseAllDocuments(stdout).map((document) => document.toJS()) };
}

/** What the schema of Kubernetes 1.37 says against objects of its own kinds; unknown fields are faults. */
function coreFaults(objects) {
  const path = join(folder, `objects-${(numFiles += 1)}.yaml`);
  writeFileSync(path, objects.map((one) => stringify(one)).join("---\n"));
  const { status, stdout, stderr } = spawnSync(join(tools, "bin/kubernetes-validate"), ["--strict", path], {
    encoding: "utf8",
  });
  return status === 0 ? "" : stdout + stderr;
}

async function customModels() {
  const at = (path) =>
    import(pathToFileURL(join(tools, "node_modules/@kubernetes-models", path, "index.js")).href);
  const { ScaledObject } = await at("keda/keda.sh/v1alpha1");
  const { ServiceMonitor } = await at("prometheus-operator/monitoring.coreos.com/v1");
  return { ScaledObject, ServiceMonitor };
}

async function check(objects) {
  const models = await customModels();
  assert.equal(coreFaults(objects.filter(({ kind }) => !(kind in models))), "");
  for (const one of objects) if (one.kind in models) new models[one.kind](one).validate();
}

const find = (objects, kind) => objects.find((one) => one.kind === kind);
const all = {
  networkPolicy: { enabled: true },
  serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
};
const ownClaim = { modelCache: { persistentVolumeClaim: { enabled: true } } };

test("what the charts render is valid, with everything on and with nothing", { skip }, async () => {
  const full = {
    ...all,
    ...ownClaim,
    model: "Qwen/Qwen3-0.6B",
    servedModelName: "qwen",
    extraArgs: ["--max-model-len", "4096"],
  };
  const keda = { autoscaling: { keda: { enabled: true } } };
  const hpa = { autoscaling: { hpa: { enabled: true } } };
  for (const [chart, values] of [
    ["octavo", {}],
    ["octavo", { ...full, ...keda }],
    ["octavo", { ...full, ...hpa }],
    ["octavo-gateway", {}],
    ["octavo-gateway", { ...all, autoscaling: { enabled: true } }],
    ["octavo-gateway", { ...all, mode: "cluster", replicaCount: 1 }],
  ]) {
    const { status, stderr, objects } = render(chart, values);
    assert.equal(status, 0, stderr);
    await check(objects);
  }
  const { objects } = render("octavo", { ...full, ...keda });
  const kinds = objects.map(({ kind }) => kind).toSorted((one, other) => one.localeCompare(other));
  assert.equal(
    kinds.join(),
    "Deployment,NetworkPolicy,PersistentVolumeClaim,PodDisruptionBudget,ScaledObject,Service,ServiceMonitor",
  );
});

test("the schemas refuse what is misspelt", { skip }, async () => {
  const { objects } = render("octavo", { ...all, autoscaling: { keda: { enabled: true } } });
  const deployment = structuredClone(find(objects, "Deployment"));
  deployment.spec.template.spec.containers[0].readynessProbe = {};
  assert.match(coreFaults([deployment]), /readynessProbe/);
  const { ScaledObject, ServiceMonitor } = await customModels();
  const scaled = structuredClone(find(objects, "ScaledObject"));
  scaled.spec.minReplicaCount = "none";
  assert.throws(() => new ScaledObject(scaled).validate(), /minReplicaCount/);
  const monitor = structuredClone(find(objects, "ServiceMonitor"));
  monitor.spec.endpoints = "all";
  assert.throws(() => new ServiceMonitor(monitor).validate(), /endpoints/);
});

test(
  "pods run flags that the server has, find their model in the cache, and drain before they are killed",
  { skip },
  () => {
    const { objects } = render("octavo", {
      model: "Qwen/Qwen3-0.6B",
      drainSeconds: 40,
      preStopSeconds: 7,
      ...ownClaim,
    });
    const { spec } = find(objects, "Deployment").spec.template;
    const [container] = spec.containers;
    const [init] = spec.initContainers;
    const main = join(root, "packages/cli/dist/main.js");
    const help = (command) => execFileSync(process.execPath, [main, command, "--help"], { encoding: "utf8" });
    const serve = help(container.args[0]);
    for (const flag of container.args.filter((word) => word.startsWith("--")))
      assert.ok(serve.includes(flag), flag);
    assert.equal(init.command[1], "pull");
    assert.match(help("pull"), /<model>/);
    assert.deepEqual(init.volumeMounts, container.volumeMounts);
    const { claimName } = spec.volumes.find(({ name }) => name === "models").persistentVolumeClaim;
    assert.equal(claimName, find(objects, "PersistentVolumeClaim").metadata.name);
    const sleepS = Number(container.lifecycle.preStop.exec.command[1]);
    const drainS = Number(container.args[container.args.indexOf("--drain-timeout") + 1]);
    assert.deepEqual([sleepS, drainS], [7, 40]);
    assert.ok(spec.terminationGracePeriodSeconds > sleepS + drainS);
    assert.equal(
      find(objects, "Deployment").spec.strategy.rollingUpdate.maxUnavailable,
      0,
      "as driver: kubernetes asks",
    );
  },
);

test("scaling asks for metrics that the server has, of these replicas alone", { skip }, () => {
  const { objects } = render("octavo", { autoscaling: { keda: { enabled: true } } });
  const { query, threshold } = find(objects, "ScaledObject").spec.triggers[0].metadata;
  const names = query.match(/vllm:\w+/g);
  assert.deepEqual(names, ["vllm:num_requests_running", "vllm:num_requests_waiting"]);
  assert.equal(query.match(/namespace="llm",service="octavo"/g).length, 2);
  assert.equal(threshold, "8");
  assert.equal(
    find(objects, "Deployment").spec.replicas,
    undefined,
    "the autoscaler's number is not written over",
  );
});

test("the gateway's configuration is one, and mode cluster may do what its driver does", { skip }, () => {
  const main = join(root, "packages/cli/dist/main.js");
  const path = join(folder, "config.yaml");
  const configOf = (objects) => find(objects, "ConfigMap").data["config.yaml"];
  writeFileSync(path, configOf(render("octavo-gateway").objects));
  execFileSync(process.execPath, [main, "gateway", "check", "--config", path], { stdio: "pipe" });
  const config = {
    version: 1,
    driver: "kubernetes",
    deployments: [{ name: "octavo", model_loading_config: { model_id: "octavo-mini" } }],
    gateway: { listen: { host: "0.0.0.0", port: 8080 } },
  };
  // merged with the chart's own values, of which null takes one away
  const { objects } = render("octavo-gateway", {
    mode: "cluster",
    replicaCount: 1,
    config: { ...config, listen: null, targets: null, routes: null },
  });
  const written = parse(configOf(objects));
  assert.deepEqual(written, config);
  writeFileSync(path, configOf(objects));
  const { stderr } = spawnSync(process.execPath, [main, "cluster", "check", "--config", path], {
    encoding: "utf8",
    env: { ...process.env, KUBECONFIG: join(folder, "nowhere") },
  });
  assert.match(stderr, /cannot be met here/, "valid, but there is no Kubernetes here");
  const rules = find(objects, "Role").rules.map(({ resources, verbs }) => `${resources}: ${verbs}`);
  assert.deepEqual(rules, [
    "endpointslices: list,watch",
    "deployments: get,patch",
    "deployments/scale: patch",
    "pods: get,delete",
  ]);
  assert.equal(find(objects, "Deployment").spec.template.spec.serviceAccountName, "octavo-octavo-gateway");
});

test("values that cannot be met are refused before anything is installed", { skip }, () => {
  for (const [chart, values, words] of [
    ["octavo", { autoscaling: { hpa: { enabled: true }, keda: { enabled: true } } }, /enable one/],
    [
      "octavo",
      { autoscaling: { keda: { enabled: true }, minReplicas: 5, maxReplicas: 2 } },
      /minReplicas is above/,
    ],
    ["octavo", { autoscaling: { hpa: { enabled: true }, minReplicas: 0 } }, /does not scale to zero/],
    ["octavo", { port: 80 }, /port/],
    ["octavo", { extraArgs: "--x" }, /extraArgs/],
    ["octavo-gateway", { mode: "proxy" }, /mode/],
    ["octavo-gateway", { mode: "cluster" }, /set replicaCount to 1/],
  ]) {
    const { status, stderr } = render(chart, values);
    assert.notEqual(status, 0);
    assert.match(stderr, words);
  }
});
