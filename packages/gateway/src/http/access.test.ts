import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { newCallerKey } from "../callers/key-file.js";
import { FakeTarget } from "../testing/fake-target.js";
import { sampleBody, startTestGateway, type TestGateway } from "../testing/test-gateway.js";
import { AdminListener } from "./admin-listener.js";
import { adminPaths, operationPaths, ownPaths } from "./paths.js";

const adminKey = "the-admin-key-of-the-operator";
const [acme, acmeSecond, bravo] = [newCallerKey(), newCallerKey(), newCallerKey()];
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const callers = {
  "no key": {},
  "a wrong key": bearer("ok-nobody"),
  "tenant A": bearer(acme.key),
  "A's second key": bearer(acmeSecond.key),
  "tenant B": bearer(bravo.key),
  operator: bearer(adminKey),
} as const;
type Caller = keyof typeof callers;
const tenants: ReadonlySet<string> = new Set(["tenant A", "A's second key", "tenant B"]);

const sampleBodies: Readonly<Record<string, object>> = {
  completions: { model: "m", prompt: "hello" },
  embeddings: { model: "m", input: "hello" },
  responses: { model: "m", input: "hello" },
  rerank: { model: "m", query: "q", documents: ["d"] },
  score: { model: "m", text_1: "a", text_2: "b" },
};

describe("every endpoint of the gateway with every key", () => {
  let folder: string;
  let target: FakeTarget;
  let gateway: TestGateway;
  let admin: AdminListener;
  let adminUrl: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "octavo-gateway-access-"));
    const keysFile = join(folder, "keys.json");
    await writeFile(keysFile, JSON.stringify({ keys: [] }));
    target = await FakeTarget.start();
    const priced = (...names: string[]) => ({
      url: target.url,
      models: Object.fromEntries(names.map((name) => [name, { input: 1, output: 2 }])),
      probe: { path: "off" },
    });
    gateway = await startTestGateway({
      targets: {
        octavo: { provider: "octavo", ...priced("octavo") },
        vllm: { provider: "vllm", ...priced("vllm") },
        shared: { provider: "vllm", shared_by_tenants: true, ...priced("shared") },
        plain: { provider: "openai-compatible", ...priced("m", "other") },
      },
      callers: {
        keys_file: keysFile,
        keys: [
          { id: "a-1", sha256: acme.sha256, tenant: "acme" },
          { id: "a-2", sha256: acmeSecond.sha256, tenant: "acme", models: ["m", "octavo", "vllm"] },
          { id: "b-1", sha256: bravo.sha256, tenant: "bravo and sons" },
        ],
      },
      cache: { requests: "all", models: ["other"] },
      rate_limits: { default_max_tokens: 16 },
      budgets: [{ name: "month", per: "tenant", dollars: 10 }],
      guardrails: { rules: [{ name: "words", check: "blocklist", words: ["forbidden"], action: "flag" }] },
      cascades: [
        {
          model: "cascaded",
          cheap: { target: "plain", model: "m" },
          strong: { target: "plain", model: "other" },
        },
      ],
      rollouts: [
        {
          name: "next",
          model: "rolled",
          primary: { target: "plain", model: "m" },
          canary: { target: "plain", model: "other" },
        },
      ],
    });
    admin = new AdminListener({
      gateway: gateway.gateway,
      admin: { host: "127.0.0.1", port: 0, key: adminKey },
      reload: () => Promise.resolve(),
    });
    adminUrl = (await admin.listen(0)).url;
  });
  after(async () => {
    await admin.close();
    await gateway[Symbol.asyncDispose]();
    await target[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  it("lets tenants in where a call is made, and nobody without a key", async () => {
    for (const [path, operation] of operationPaths)
      for (const [name, headers] of Object.entries(callers)) {
        const seen = target.calls.length;
        const answer = await gateway.post(path, sampleBodies[operation] ?? sampleBody, headers);
        const said = `${path} with ${name}: ${await answer.text()}`;
        assert.equal(answer.status, tenants.has(name) ? 200 : 401, said);
        assert.equal(target.calls.length - seen, tenants.has(name) ? 1 : 0, `${path} with ${name}`);
      }
    for (const [path, access] of ownPaths)
      for (const method of ["GET", "HEAD"])
        for (const [name, headers] of Object.entries(callers)) {
          const { status } = await fetch(gateway.url + path, { method, headers });
          assert.equal(status, access === "public" || tenants.has(name) ? 200 : 401, `${path} with ${name}`);
        }
  });

  it("lets the operator alone into the admin port, and has nothing of it on the public one", async () => {
    const stages = gateway.gateway.runtime.stages.flatMap(({ stage }) => stage.adminRoutes ?? []);
    const endpoints = [...adminPaths, ...stages.map(({ method, path }) => `${method} /admin/${path}`)];
    // a stage that adds endpoints and is not configured here would be missing from the table
    for (const wanted of ["keys", "budgets", "cascades", "rollouts"])
      assert(
        endpoints.some((endpoint) => endpoint.includes(`/admin/${wanted}`)),
        wanted,
      );
    for (const endpoint of endpoints) {
      const [method = "", pattern = ""] = endpoint.split(" ");
      const path = pattern.replaceAll("*", "x");
      for (const [name, headers] of Object.entries(callers)) {
        const body = method === "POST" || method === "PUT" ? { body: "{}" } : {};
        const sent = {
          method,
          headers: { ...headers, "content-type": "application/json" },
          ...body,
        };
        const answer = await fetch(adminUrl + path, sent);
        const text = await answer.text();
        assert.equal(answer.status === 401, name !== "operator", `${endpoint} with ${name}: ${text}`);
        assert(answer.status < 500, `${endpoint} with ${name}: ${text}`);
        assert.equal((await fetch(gateway.url + path, sent)).status, 404, `${endpoint} on the public port`);
      }
    }
  });

  it("lists the models that the key may name", async () => {
    const models = async (name: Caller): Promise<string[]> => {
      const answer = await fetch(`${gateway.url}/v1/models`, { headers: callers[name] });
      return ((await answer.json()) as { data: { id: string }[] }).data.map(({ id }) => id).toSorted();
    };
    assert.deepEqual(await models("A's second key"), ["m", "octavo", "vllm"]);
    assert((await models("tenant B")).includes("shared"));
  });

  const chat = async (name: Caller, model: string, more: object = {}) => {
    await gateway.post("/v1/chat/completions", { ...sampleBody, model, ...more }, callers[name]);
    return target.calls.at(-1);
  };

  it("serves no tenant the answer that another one's call left in the cache", async () => {
    const cacheOf = async (name: Caller): Promise<string | null> => {
      const body = { ...sampleBody, model: "other", messages: [{ role: "user", content: "only once" }] };
      return (await gateway.post("/v1/chat/completions", body, callers[name])).headers.get("x-octavo-cache");
    };
    assert.equal(await cacheOf("tenant A"), "miss");
    assert.equal(await cacheOf("tenant A"), "hit");
    assert.equal(await cacheOf("tenant B"), "miss");
  });

  it("keeps tenants apart at targets that know the gateway's key alone", async () => {
    const tenantOf = async (name: Caller, more = {}) =>
      (await chat(name, "octavo", more))?.headers["x-tenant-id"];
    assert.equal(await tenantOf("tenant A"), "acme");
    assert.equal(await tenantOf("A's second key"), "acme");
    assert.match(String(await tenantOf("tenant B")), /^sha256:[0-9a-f]{64}$/);
    const forged = await gateway.post(
      "/v1/chat/completions",
      { ...sampleBody, model: "octavo" },
      { ...callers["tenant B"], "x-tenant-id": "acme" },
    );
    assert.equal(forged.status, 200);
    assert.notEqual(target.calls.at(-1)?.headers["x-tenant-id"], "acme");

    const saltOf = async (name: Caller, more = {}) => (await chat(name, "vllm", more))?.body["cache_salt"];
    const salt = await saltOf("tenant A");
    assert.match(String(salt), /^[0-9a-f]{64}$/);
    assert.equal(await saltOf("A's second key"), salt);
    assert.notEqual(await saltOf("tenant B"), salt);
    // another tenant's salt, sent as one's own, is not that tenant's
    assert.notEqual(await saltOf("tenant B", { cache_salt: salt }), salt);
    const own = await saltOf("tenant A", { cache_salt: "mine" });
    assert.notEqual(own, salt);
    assert.notEqual(await saltOf("tenant B", { cache_salt: "mine" }), own);
    assert.equal((await chat("tenant A", "shared"))?.body["cache_salt"], undefined);
    assert.equal((await chat("tenant A", "m"))?.body["cache_salt"], undefined);
  });

  it("asks for no stored answer where the target would give it to any tenant", async () => {
    const ask = async (model: string, more: object): Promise<readonly [number, string | null]> => {
      const body = { model, input: "hello", ...more };
      const answer = await gateway.post("/v1/responses", body, callers["tenant B"]);
      return [answer.status, answer.headers.get("x-octavo-error-code")];
    };
    for (const field of [{ previous_response_id: "resp_of_a" }, { conversation: "conv_of_a" }]) {
      assert.deepEqual(await ask("m", field), [400, "unsupported_parameter"]);
      assert.deepEqual(await ask("vllm", field), [400, "unsupported_parameter"]);
      assert.deepEqual(await ask("shared", field), [200, null]);
      // an Octavo server is told the tenant, and finds what that tenant stored
      assert.deepEqual(await ask("octavo", field), [200, null]);
    }
  });
});
