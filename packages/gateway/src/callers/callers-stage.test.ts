import assert from "node:assert/strict";
import type { webcrypto } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import type { Exchange } from "../exchange/exchange.js";
import type { AdminRoute, Stage } from "../exchange/stage.js";
import { sampleContext, sampleExchange } from "../limits/testing/sample-exchange.js";
import { callersStage } from "./callers-stage.js";
import { KeyFile, newCallerKey } from "./key-file.js";

const stageOf = async (config: object, nowMs = Date.now): Promise<Stage> =>
  callersStage.create(callersStage.schema.parse(config), sampleContext({ nowMs }));

const withKey = (key: string, model = "m"): Exchange =>
  sampleExchange({ headers: { authorization: `Bearer ${key}` }, body: { model } });

const ask = async (stage: Stage, exchange: Exchange): Promise<Exchange> => {
  await stage.onRequest(exchange);
  return exchange;
};

const admin = async (stage: Stage, method: string, path: string, body?: unknown, values: string[] = []) => {
  const route = stage.adminRoutes!.find((row: AdminRoute) => row.method === method && row.path === path)!;
  return route.handle({ values, query: new URLSearchParams(), body });
};

test("a key says who calls, under any of the headers that clients use", async () => {
  const { key, sha256 } = newCallerKey();
  const stage = await stageOf({ keys: [{ id: "k1", sha256, tenant: "acme", tags: ["gold"] }] });
  for (const headers of [
    { authorization: `Bearer ${key}` },
    { authorization: `bearer  ${key}` },
    { "x-api-key": key },
    { "api-key": key },
  ]) {
    const { caller, ledger } = await ask(stage, sampleExchange({ headers }));
    assert.deepEqual(caller, { keyId: "k1", tenant: "acme", models: undefined, tags: ["gold"] });
    assert.deepEqual([ledger.keyId, ledger.tenant], ["k1", "acme"]);
  }
});

test("what is not a valid key is refused, and errors do not repeat it", async () => {
  const { key, sha256 } = newCallerKey();
  const later = Date.UTC(2027, 0, 1);
  const keys = [
    { id: "old", sha256, expires: "2026-12-31T00:00:00Z" },
    { id: "off", sha256: newCallerKey().sha256, disabled: true },
  ];
  const stage = await stageOf({ keys }, () => later);
  for (const headers of [
    {},
    { authorization: `Bearer ${key}` },
    { authorization: "Bearer nonsense" },
    { authorization: `Basic ${key}` },
    { authorization: `Bearer ${"x".repeat(9000)}` },
    { authorization: `Bearer ${sha256}` },
  ]) {
    await assert.rejects(
      ask(stage, sampleExchange({ headers })),
      (error: { code: string; message: string }) => {
        assert.equal(error.code, "unauthorized");
        assert.ok(!error.message.includes(key) && !error.message.includes("nonsense"));
        return true;
      },
    );
  }
  await ask(await stageOf({ keys }, () => later - 40 * 86_400_000), withKey(key));
});

test("a key is for its models", async () => {
  const { key, sha256 } = newCallerKey();
  const stage = await stageOf({ keys: [{ id: "k", sha256, models: ["small"] }] });
  await ask(stage, withKey(key, "small"));
  await assert.rejects(ask(stage, withKey(key, "large")), { code: "permission_denied", status: 403 });
});

test("keys are made, rotated and removed without a restart, and only their digests are kept", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-keys-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "keys.json");
  await writeFile(file, '{"keys":[]}');
  const [one, two] = await Promise.all([stageOf({ keys_file: file }), stageOf({ keys_file: file })]);
  t.after(() => Promise.all([one.close?.(), two.close?.()]));
  const { key } = (await admin(one, "POST", "keys", { id: "k", tenant: "acme" })) as { key: string };
  assert.equal((await ask(one, withKey(key))).caller.tenant, "acme");
  const kept = await readFile(file, "utf8");
  assert.ok(!kept.includes(key) && kept.includes("sha256"));
  assert.ok(!JSON.stringify(await admin(one, "GET", "keys")).includes(key));
  // the other instance reads the file within its interval
  for (let tries = 0; ; tries++) {
    const found = await ask(two, withKey(key)).catch(() => undefined);
    if (found !== undefined) break;
    assert.ok(tries < 600, "the file is read again");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await assert.rejects(admin(one, "POST", "keys", { id: "k" }), { code: "invalid_option" });
  await assert.rejects(admin(one, "POST", "keys", { name: "k" }), { code: "invalid_request" });
  await admin(one, "DELETE", "keys/*", undefined, ["k"]);
  await assert.rejects(ask(one, withKey(key)), { code: "unauthorized" });
  await assert.rejects(admin(one, "DELETE", "keys/*", undefined, ["k"]), { code: "not_found" });
});

test("a file that became damaged keeps the keys that were there", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-keys-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "keys.json");
  const { key, sha256 } = newCallerKey();
  await writeFile(path, JSON.stringify({ keys: [{ id: "k", sha256 }] }));
  const file = new KeyFile(path);
  await writeFile(path, '{"keys":[{"id":"k","sha256":"short"}]}');
  assert.throws(() => file.reload(), { code: "invalid_option", message: /keys\.0\.sha256: expected 64/ });
  assert.equal(file.ring.find(key, 0)?.id, "k");
  assert.throws(() => new KeyFile(join(folder, "none.json")), { code: "invalid_option", param: "keys_file" });
});

test("tokens of the issuer are let in as long as they are valid", async (t) => {
  const issuer = "https://login.example";
  const [{ publicKey, privateKey }, other] = await Promise.all([
    generateKeyPair("ES256"),
    generateKeyPair("ES256"),
  ]);
  let asked = 0;
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: "1", alg: "ES256" }] };
  const server = createServer((_, response) => {
    asked++;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(keys));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
  const jwt = { jwks_url: url, issuer, audience: "gateway", models_claim: "models", tags_claim: "scope" };
  let now = Date.now();
  const stage = await stageOf({ jwt }, () => now);
  const sign = (
    claims: Record<string, unknown>,
    changes: { key?: webcrypto.CryptoKey; iss?: string; exp?: string } = {},
  ) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: "ES256", kid: "1" })
      .setIssuer(changes.iss ?? issuer)
      .setAudience("gateway")
      .setExpirationTime(changes.exp ?? "2h")
      .sign(changes.key ?? privateKey);
  const token = await sign({ sub: "acme", models: ["m"], scope: "gold batch" });
  const { caller } = await ask(stage, withKey(token));
  assert.deepEqual(caller, { keyId: undefined, tenant: "acme", models: ["m"], tags: ["gold", "batch"] });
  for (let i = 0; i < 20; i++) await ask(stage, withKey(token));
  assert.equal(asked, 1, "keys are fetched once");
  await assert.rejects(ask(stage, withKey(token, "large")), { code: "permission_denied" });
  const claims = { sub: "acme", models: ["m"] };
  const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from(JSON.stringify({ ...claims, iss: issuer, aud: "gateway", exp: 4e9 })).toString("base64url")}.`;
  for (const [what, bad] of [
    ["another key", await sign(claims, { key: other.privateKey })],
    ["another issuer", await sign(claims, { iss: "https://evil.example" })],
    ["no tenant", await sign({ models: ["m"] })],
    ["expired", await sign(claims, { exp: "-1h" })],
    ["no signature", none],
    ["changed", `${token.slice(0, -4)}AAAA`],
  ] as const)
    await assert.rejects(ask(stage, withKey(bad)), { code: "unauthorized" }, what);
  now += 3 * 3_600_000;
  await assert.rejects(ask(stage, withKey(token)), { code: "unauthorized" }, "what was verified expires too");
  const away = await stageOf({ jwt: { ...jwt, jwks_url: "http://127.0.0.1:1/jwks" } });
  await assert.rejects(ask(away, withKey(token)), { code: "store_unavailable", status: 503 });
});

test("without keys nobody gets in, unless everybody may", async () => {
  assert.equal(callersStage.schema.safeParse({}).success, false);
  const { caller } = await ask(await stageOf({ anonymous: true }), sampleExchange());
  assert.equal(caller.tenant, undefined);
  await assert.rejects(stageOf({ keys: ["a", "a"].map((id) => ({ id, sha256: "0".repeat(64) })) }), {
    code: "invalid_option",
  });
});
