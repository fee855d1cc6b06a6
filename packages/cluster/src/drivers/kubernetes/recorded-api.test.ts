import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { asObjects, asRecord, type JsonFields } from "@octavo/protocol";
import { request } from "undici";
import { clusterSchema } from "../../config/deployment-schema.js";
import { FakeKubernetes } from "../../testing/fake-kubernetes.js";
import { type RecordedApiCall, recording } from "../../testing/recorded-kubernetes.js";
import { fakeReplicaCommand, fakeSpec, until } from "../../testing/test-specs.js";
import { KubernetesDriver } from "./kubernetes-driver.js";

function recorded(name: string): RecordedApiCall {
  const found = recording.exchanges.find((one) => one.name === name);
  assert.ok(found, name);
  return found;
}

/** Answers as recorded, and what was asked. `instead`: another recording by the name of the one that would answer. */
async function replay(instead: Map<string, string>) {
  const asked: { readonly name: string; readonly type: string | undefined; readonly body: string }[] = [];
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    const url = new URL(incoming.url ?? "/", "http://recorded");
    const isWatch = url.searchParams.get("watch") === "true";
    const type = incoming.headers["content-type"];
    const own = recording.exchanges.find(
      ({ method, path, type: sent = type }) =>
        method === incoming.method &&
        sent === type &&
        path.split("?")[0] === url.pathname &&
        path.includes("watch=true") === isWatch,
    );
    const name = own?.name ?? "no such pod";
    asked.push({ name, type, body: Buffer.concat(chunks).toString() });
    const { status, answers } = recorded(instead.get(name) ?? name);
    instead.delete(isWatch ? name : "");
    response.writeHead(status, { "content-type": "application/json" });
    response.end(answers.map((one) => `${JSON.stringify(one)}\n`).join(""));
  };
  const server = createServer((incoming, response) => void answer(incoming, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const folder = await mkdtemp(join(tmpdir(), "octavo-recorded-"));
  const { port } = server.address() as AddressInfo;
  const kubeconfig = {
    clusters: [
      { name: "c", cluster: { server: `http://127.0.0.1:${port}`, "insecure-skip-tls-verify": true } },
    ],
    users: [{ name: "u", user: { token: "t" } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u", namespace: "default" } }],
    "current-context": "c",
  };
  await writeFile(join(folder, "config"), JSON.stringify(kubeconfig));
  const { driver: config } = clusterSchema.parse({
    version: 1,
    deployments: [{ name: "fake", model_loading_config: { model_id: "m" } }],
    driver: {
      kind: "kubernetes",
      kubeconfig: join(folder, "config"),
      objects: { fake: "fake-octavo" },
      poll_interval_s: 0.01,
    },
  });
  assert.ok(config.kind === "kubernetes");
  const driver = new KubernetesDriver({ config, tell: () => undefined });
  return {
    driver,
    asked,
    async [Symbol.asyncDispose]() {
      await driver.close();
      server.close();
      server.closeAllConnections();
      await rm(folder, { recursive: true });
    },
  };
}

/** Words that say what an answer is. */
const literals = new Set(["kind", "apiVersion", "status", "reason", "code", "type", "addressType"]);

/** Where an answer has what the recorded one does not, or something of another type. */
function oddities(found: unknown, like: readonly unknown[], path: string): readonly string[] {
  if (Array.isArray(found)) return found.flatMap((one, at) => oddities(one, like.flat(), `${path}[${at}]`));
  if (typeof found !== "object" || found === null)
    return like.some((one) => typeof one === typeof found) ? [] : [path];
  const others = like.filter((one) => typeof one === "object" && one !== null).map(asRecord);
  if (others.length === 0) return [path];
  // labels, annotations and the fields that they hold have names of their own
  const isMap = /\.(labels|annotations|matchLabels)$/.test(path);
  return Object.entries(found).flatMap(([name, value]) => {
    const values = others.flatMap((one) => (isMap ? Object.values(one) : name in one ? [one[name]] : []));
    const isOther = literals.has(name) && typeof value !== "object" && !values.includes(value);
    return isOther ? [`${path}.${name}: ${String(value)}`] : oddities(value, values, `${path}.${name}`);
  });
}

describe(`Kubernetes as recorded (${recording.version})`, () => {
  it("the driver finds pods, follows them as events come, and lists again after 410", async () => {
    await using under = await replay(new Map([["watch", "watch from too far back"]]));
    const { driver, asked } = under;
    const [first, second] = ["pod", "another pod"].map(
      (name) =>
        asRecord(recorded(name).answers[0]) as { metadata: { name: string }; status: { podIP: string } },
    );
    assert.ok(first && second);
    const seen = new Map<string, Set<string>>();
    await until(async () => {
      for (const { id, version, url, state } of await driver.observe("fake")) {
        const name = `${id} ${version} ${url}`;
        seen.set(name, (seen.get(name) ?? new Set()).add(state));
      }
      // the watch that was recorded has run to its end: of its last slice only one pod was recorded
      return asked.filter(({ name }) => name === "watch").length > 1 && seen.size === 2;
    });
    const named = ({ metadata, status }: typeof first): string =>
      `${metadata.name} one http://${status.podIP}:8000`;
    assert.deepEqual(new Set(seen.keys()), new Set([named(first), named(second)]));
    assert.ok(seen.get(named(first))?.has("running"));
    assert.ok(asked.filter(({ name }) => name === "list").length >= 2);
  });

  it("what the driver sends is what was accepted, and refusals are said in the server's words", async () => {
    const instead = new Map<string, string>();
    await using under = await replay(instead);
    const { driver, asked } = under;
    const wanted = { ready: new Set<string>(), rejected: new Map<string, string>() };
    await until(() =>
      driver.apply({ ...wanted, spec: fakeSpec(), count: 1 }).then(
        () => true,
        () => false,
      ),
    );
    const sent = asked.find(({ name }) => name === "scale");
    const scale = recorded("scale");
    assert.deepEqual([sent?.type, JSON.parse(sent?.body ?? "")], [scale.type, scale.body]);
    await driver.apply({ ...wanted, spec: fakeSpec({ version: "two" }), count: 2 });
    assert.equal(asked.find(({ name }) => name === "update")?.type, recorded("update").type);

    assert.deepEqual(await driver.problems([fakeSpec()]), []);
    instead.set("deployment", "no such deployment");
    assert.match(
      (await driver.problems([fakeSpec()])).join(),
      /Deployment fake-octavo in default is not there/,
    );
    for (const [name, message] of [
      ["who is not known", /^Kubernetes at \S+: Unauthorized$/],
      ["what the role does not have", /^Kubernetes at \S+: secrets is forbidden: User /],
    ] as const) {
      instead.set("deployment", name);
      assert.match((await driver.problems([fakeSpec()])).join(), message);
    }
  });

  it("the API server of the other tests answers nothing that Kubernetes does not", async () => {
    const fake = await FakeKubernetes.start(fakeReplicaCommand);
    const config = JSON.parse(fake.kubeconfig) as { clusters: { cluster: { server: string } }[] };
    const server = config.clusters[0]?.cluster.server ?? "";
    const call = async (one: RecordedApiCall, path: string, token = "t"): Promise<unknown[]> => {
      const answer = await request(server + path, {
        method: one.method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(one.body && { "content-type": one.type ?? "application/json" }),
        },
        ...(one.body && { body: JSON.stringify(one.body) }),
      });
      assert.equal(answer.statusCode, one.status, one.name);
      if (!path.includes("watch=true")) return [await answer.body.json()];
      let text = "";
      answer.body.on("error", () => undefined);
      for await (const chunk of answer.body) {
        text += String(chunk);
        if (text.includes("BOOKMARK") || text.includes("ERROR")) break;
      }
      return text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as unknown);
    };
    try {
      const [scale, update] = [recorded("scale"), recorded("update")];
      const own = (path: string, pod = ""): string =>
        path
          .replace("fake-octavo-other", "other")
          .replace(/(pods\/)fake-[\w-]+/, `$1${pod}`)
          .replaceAll("fake-octavo", "fake");
      const args = ["--host", "0.0.0.0", "--port", "8000", "--replica-id", "$(POD_NAME)"];
      const containers = [{ name: "octavo", args }];
      const template = { metadata: { annotations: {} }, spec: { containers } };
      await call({ ...update, body: { spec: { template } } }, own(update.path));
      await call({ ...scale, body: { spec: { replicas: 2 } } }, own(scale.path));
      const items = async (): Promise<readonly JsonFields[]> =>
        asObjects(asRecord((await call(recorded("list"), own(recorded("list").path)))[0])["items"]);
      const pod = await until(async () => {
        const endpoints = asObjects((await items())[0]?.["endpoints"]);
        const isReady =
          endpoints.length === 2 && endpoints.every((one) => asRecord(one["conditions"])["ready"]);
        return isReady && String(asRecord(endpoints[0]?.["targetRef"])["name"]);
      });
      const found: string[] = [];
      for (const one of recording.exchanges) {
        // the fake has no roles
        if (one.name === "what the role does not have") continue;
        if (one.name === "watch from too far back") fake.compact();
        const watch = one.name === "watch" ? setTimeout(() => fake.bookmark(), 300) : undefined;
        const path = own(one.path, pod).replace(/resourceVersion=\d{2,}/, "resourceVersion=1");
        const answers = await call(one, path, one.name === "who is not known" ? "other" : "t");
        clearTimeout(watch);
        found.push(...answers.flatMap((answer) => oddities(answer, one.answers, one.name)));
      }
      assert.deepEqual(found, []);
    } finally {
      await fake.close();
    }
  });
});
