import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import type { Account, GenerationRequest } from "@octavo/engine";
import type { ServerConfig } from "../config.js";
import { startTestServer, type TestServer } from "../testing/test-server.js";
import { otherTenants, TenantLabels } from "./tenant-labels.js";
import { defaultTenantSettings, type TenantSettings } from "./tenant-settings.js";

const settings = (more: Partial<TenantSettings>): TenantSettings => ({ ...defaultTenantSettings, ...more });
const messages = [{ role: "user", content: "hi" }];

/** The account of the request that the engine was last asked for. */
function lastAccount({ model }: TestServer): Account | undefined {
  return model.engine.requests.at(-1)?.account;
}

async function ask(
  server: TestServer,
  headers: Readonly<Record<string, string>> = {},
  fields: object = {},
): Promise<Response> {
  return server.post("/v1/chat/completions", { messages, max_tokens: 2, ...fields }, headers);
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe("the tenant of a request", () => {
  it("comes from the header if no key decides; invalid names count as none", async () => {
    await using server = await startTestServer();
    await ask(server, { "x-tenant-id": "acme" });
    assert.deepEqual(lastAccount(server), { tenant: "acme", lane: 1, cacheScope: "tenant acme" });
    for (const headers of [{}, { "x-tenant-id": "a b" }, { "x-tenant-id": "x".repeat(200) }]) {
      await ask(server, headers, { user: "somebody" });
      assert.equal(lastAccount(server)?.tenant, "default");
    }
  });

  it("comes only from the key if keys have tenants: a forged header is ignored", async () => {
    const tenants = settings({
      tenants: { acme: { weight: 3, lane: "interactive", maxQueuedRequests: 7 } },
      keys: [
        { key: "sk-acme", tenant: "acme" },
        { sha256: createHash("sha256").update("sk-batch").digest("hex"), tenant: "acme", lane: "batch" },
        { key: "sk-plain" },
        { key: "sk-gateway", tenantFrom: "header" },
      ],
    });
    await using server = await startTestServer({ tenants, apiKeys: ["sk-old"] });
    const forged = { "x-tenant-id": "victim" };
    const acme = { tenant: "acme", weight: 3, maxQueuedRequests: 7, cacheScope: "tenant acme" };
    await ask(server, { ...forged, ...bearer("sk-acme") }, { user: "victim" });
    assert.deepEqual(lastAccount(server), { ...acme, lane: 0 });
    await ask(server, { ...forged, ...bearer("sk-batch") });
    assert.deepEqual(lastAccount(server), { ...acme, lane: 2 });
    for (const [key, cacheScope] of [
      ["sk-plain", "key 3"],
      ["sk-old", "key 0"],
    ] as const) {
      await ask(server, { ...forged, ...bearer(key) });
      assert.deepEqual(lastAccount(server), { tenant: "default", lane: 1, cacheScope });
    }
    await ask(server, { "x-tenant-id": "acme", ...bearer("sk-gateway") });
    assert.equal(lastAccount(server)?.tenant, "acme", "a gateway speaks for others");
    const before = server.model.engine.requests.length;
    assert.equal((await ask(server, { ...forged, ...bearer("sk-wrong") })).status, 401);
    assert.equal((await ask(server, forged)).status, 401);
    assert.equal(server.model.engine.requests.length, before);
  });

  it("comes from the field user if configured, on every endpoint", async () => {
    await using server = await startTestServer({ tenants: settings({ tenantFrom: "user" }) });
    const tenantOf = (request: Pick<GenerationRequest, "account"> | undefined) => request?.account?.tenant;
    await ask(server, { "x-tenant-id": "forged" }, { user: "ann" });
    assert.equal(lastAccount(server)?.tenant, "ann");
    await ask(server, {}, { user: "ann smith, of acme" });
    assert.match(lastAccount(server)?.tenant ?? "", /^user-[\da-f]{16}$/);
    await server.post("/v1/completions", { prompt: "hi", max_tokens: 2, user: "bob" });
    assert.equal(lastAccount(server)?.tenant, "bob");
    await server.post("/v1/responses", { input: "hi", user: "carol" });
    assert.equal(lastAccount(server)?.tenant, "carol");
    await server.post("/v1/messages", { messages, max_tokens: 2, metadata: { user_id: "dave" } });
    assert.equal(lastAccount(server)?.tenant, "dave");
    await server.post("/v1/embeddings", { input: "hi", user: "erin" });
    assert.equal(tenantOf(server.model.engine.embeddings.at(-1)), "erin");
  });

  it("is the default tenant for unknown names if configured", async () => {
    const tenants = settings({ tenants: { acme: {} }, unknownTenants: "default" });
    await using server = await startTestServer({ tenants });
    for (const [name, tenant] of [
      ["acme", "acme"],
      ["made-up-1", "default"],
      ["constructor", "default"],
    ] as const) {
      await ask(server, { "x-tenant-id": name });
      assert.equal(lastAccount(server)?.tenant, tenant);
    }
  });

  it("reports unknown lanes at start-up", async () => {
    const config: Partial<ServerConfig> = { tenants: settings({ defaultLane: "fast" }) };
    await assert.rejects(startTestServer(config), { code: "invalid_option", message: /no lane "fast"/ });
  });
});

describe("deadlines", () => {
  it("are the operator's, and a request may shorten them", async () => {
    await using server = await startTestServer({ queueTimeoutMs: 5000, firstTokenTimeoutMs: 0 });
    const deadlines = () => server.model.engine.requests.at(-1)?.deadlines;
    await ask(server);
    assert.deepEqual(deadlines(), { queueMs: 5000, firstTokenMs: undefined, totalMs: undefined });
    const octavo = { queue_timeout_ms: 9000, ttft_timeout_ms: 800, timeout_ms: 60_000 };
    await ask(server, {}, { octavo });
    assert.deepEqual(deadlines(), { queueMs: 5000, firstTokenMs: 800, totalMs: 60_000 });
    await ask(server, {}, { octavo: { queue_timeout_ms: 100 } });
    assert.equal(deadlines()?.queueMs, 100);
    for (const wrong of [
      { timeout_ms: 0 },
      { timeout_ms: -1 },
      { ttft_timeout_ms: "1" },
      { queue_timeout_ms: 1e12 },
    ]) {
      const answer = await ask(server, {}, { octavo: wrong });
      assert.equal(answer.status, 400);
    }
  });
});

describe("deadlines of a lane", () => {
  it("replace the operator's, and a request may shorten them", async () => {
    const tenants = settings({
      tenants: { shop: { lane: "interactive" }, nightly: { lane: "batch" } },
      laneDeadlines: {
        interactive: { queueTimeoutMs: 300, firstTokenTimeoutMs: 900, timeoutMs: 20_000 },
        batch: { queueTimeoutMs: 0, firstTokenTimeoutMs: 60_000 },
      },
    });
    await using server = await startTestServer({ tenants, queueTimeoutMs: 5000, firstTokenTimeoutMs: 7000 });
    const deadlinesOf = async (tenant: string, octavo = {}) => {
      await ask(server, { "x-tenant-id": tenant }, { octavo });
      return server.model.engine.requests.at(-1)?.deadlines;
    };
    assert.deepEqual(await deadlinesOf("shop"), { queueMs: 300, firstTokenMs: 900, totalMs: 20_000 });
    assert.deepEqual(await deadlinesOf("nightly"), {
      queueMs: undefined,
      firstTokenMs: 60_000,
      totalMs: undefined,
    });
    assert.deepEqual(await deadlinesOf("other"), { queueMs: 5000, firstTokenMs: 7000, totalMs: undefined });
    assert.deepEqual(await deadlinesOf("shop", { ttft_timeout_ms: 100, timeout_ms: 30_000 }), {
      queueMs: 300,
      firstTokenMs: 100,
      totalMs: 20_000,
    });
  });

  it("must name existing lanes", async () => {
    const tenants = settings({ laneDeadlines: { fast: { timeoutMs: 1 } } });
    await assert.rejects(startTestServer({ tenants }), { code: "invalid_option", message: /no lane "fast"/ });
  });
});

describe("labels of tenants", () => {
  it("are bounded: callers cannot create unbounded series", async () => {
    await using server = await startTestServer({ tenants: settings({ tenants: { acme: {} } }) });
    for (let index = 0; index < 150; index += 1) await ask(server, { "x-tenant-id": `made-up-${index}` });
    await ask(server, { "x-tenant-id": "acme" });
    const text = await (await fetch(`${server.url}/metrics`)).text();
    const seen = new Set(
      [...text.matchAll(/octavo:tenant_tokens_total\{[^}]*tenant="([^"]+)"/g)].map(([, name]) => name),
    );
    assert.equal(seen.size, 101, "a hundred of their own, and one for the others");
    assert.ok(seen.has(otherTenants) && seen.has("acme"));
  });

  it("stay assigned, and configured tenants always have one", () => {
    const labels = new TenantLabels(["a", "b", "c"], 2);
    assert.deepEqual(
      ["x", "a", "c", "y"].map((tenant) => labels.of(tenant)),
      [otherTenants, "a", "c", otherTenants],
    );
    const few = new TenantLabels([], 2);
    assert.deepEqual(
      ["x", "y", "z", "x"].map((tenant) => few.of(tenant)),
      ["x", "y", otherTenants, "x"],
    );
  });
});
