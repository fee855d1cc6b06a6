// Records what Kubernetes answers the driver into fixtures/kubernetes.json; see CONTRIBUTING.md for what it needs.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { asRecord, parseJson } from "@octavo/protocol";
import { clusterSchema } from "../config/deployment-schema.js";
import { KubernetesDriver } from "../drivers/kubernetes/kubernetes-driver.js";
import { chartedName, startChartedCluster } from "./charted-cluster.js";
import { withoutManagedFields, type RecordedApiCall } from "./recorded-kubernetes.js";
import { fakeSpec, until } from "./test-specs.js";

const deployment = `/apis/apps/v1/namespaces/default/deployments/${chartedName}`;
const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const selector = `labelSelector=${encodeURIComponent(`kubernetes.io/service-name=${chartedName}`)}`;
const pods = "/api/v1/namespaces/default/pods";
const merge = "application/merge-patch+json";
const strategic = "application/strategic-merge-patch+json";

const plane = await startChartedCluster();
const folder = await mkdtemp(join(tmpdir(), "octavo-record-"));
try {
  await writeFile(join(folder, "config"), plane.kubeconfig);
  const { driver: config } = clusterSchema.parse({
    version: 1,
    deployments: [{ name: "fake", model_loading_config: { model_id: "m" } }],
    driver: { kind: "kubernetes", kubeconfig: join(folder, "config"), objects: { fake: chartedName } },
  });
  if (config.kind !== "kubernetes") throw new TypeError(config.kind);
  const driver = new KubernetesDriver({ config, tell: () => undefined });
  const wanted = {
    spec: fakeSpec(),
    count: 2,
    ready: new Set<string>(),
    rejected: new Map<string, string>(),
  };
  const [first, second] = await until(async () => {
    await driver.observe("fake").then(
      () => driver.apply(wanted),
      () => undefined,
    );
    const { text } = await plane.call("GET", `${slices}?${selector}`);
    const isReady = (text.match(/"ready": ?true/g) ?? []).length === 2;
    return isReady && (await driver.observe("fake"));
  });
  await driver.close();

  const exchanges: RecordedApiCall[] = [];
  const record = async (
    name: string,
    method: RecordedApiCall["method"],
    path: string,
    { body, type, as = "driver" }: { body?: object; type?: string; as?: "driver" | "nobody" } = {},
  ): Promise<RecordedApiCall> => {
    const { status, text } = await plane.call(method, path, {
      as,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(type !== undefined && { type }),
    });
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    const answers = path.includes("watch=true")
      ? lines.map((line) => parseJson(line)?.value)
      : [parseJson(text)?.value];
    const one = { name, method, path, type, body, status, answers: answers.map(withoutManagedFields) };
    exchanges.push(one);
    return one;
  };
  await record("deployment", "GET", deployment);
  await record("no such deployment", "GET", `${deployment}-other`);
  await record("list", "GET", `${slices}?${selector}`);
  await record("pod", "GET", `${pods}/${first?.id}`);
  await record("another pod", "GET", `${pods}/${second?.id}`);
  await record("no such pod", "GET", `${pods}/gone`);
  await record("who is not known", "GET", deployment, { as: "nobody" });
  await record("what the role does not have", "GET", "/api/v1/namespaces/default/secrets");
  await record("a patch of no known kind", "PATCH", deployment, { body: {}, type: "text/plain" });
  const listed = exchanges.find(({ name }) => name === "list")?.answers[0] as
    | { metadata: { resourceVersion: string } }
    | undefined;
  const watch = `${slices}?allowWatchBookmarks=true&watch=true&timeoutSeconds=6&${selector}`;
  const watched = record("watch", "GET", `${watch}&resourceVersion=${listed?.metadata.resourceVersion}`);
  await record("delete", "DELETE", `${pods}/${first?.id}?gracePeriodSeconds=1`);
  await record("scale", "PATCH", `${deployment}/scale`, { body: { spec: { replicas: 1 } }, type: merge });
  const annotations = { "octavo.dev/version": "two" };
  const body = { spec: { minReadySeconds: 1, template: { metadata: { annotations } } } };
  await record("update", "PATCH", deployment, { body, type: strategic });
  await watched;
  await plane.restartApiServer();
  await record("watch from too far back", "GET", `${watch}&resourceVersion=1`);
  const path = fileURLToPath(new URL("../../fixtures/kubernetes.json", import.meta.url));
  const { text } = await plane.call("GET", "/version");
  const version = asRecord(parseJson(text)?.value)["gitVersion"];
  await writeFile(path, `${JSON.stringify({ version, exchanges }, null, 1)}\n`);
} finally {
  await plane.close();
  await rm(folder, { recursive: true });
}
