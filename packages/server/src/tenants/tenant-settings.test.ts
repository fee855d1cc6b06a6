import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { defaultTenantSettings } from "./tenant-settings.js";
import { parseTenantSettings } from "./tenants-file.js";

const sha256 = createHash("sha256").update("secret").digest("hex");

describe("the tenants file", () => {
  it("says lanes, tenants and keys", () => {
    const settings = parseTenantSettings(
      JSON.stringify({
        tenant_from: "key",
        lanes: ["now", "later"],
        default_lane: "later",
        tenants: { acme: { weight: 2, lane: "now", max_queued_requests: 10, max_queued_tokens: 5000 } },
        unknown_tenants: "default",
        keys: [
          { key: "sk-1", tenant: "acme" },
          { sha256: sha256.toUpperCase(), tenant: "acme", lane: "later" },
          { env: "GATEWAY_KEY", tenant_from: "header" },
        ],
      }),
      "tenants.json",
      { GATEWAY_KEY: "sk-3" },
    );
    assert.deepEqual(settings.lanes, ["now", "later"]);
    assert.equal(settings.defaultLane, "later");
    assert.deepEqual(settings.tenants["acme"], {
      weight: 2,
      lane: "now",
      maxQueuedRequests: 10,
      maxQueuedTokens: 5000,
    });
    const [first, second, third] = settings.keys;
    assert.ok(first !== undefined && "key" in first && first.key === "sk-1" && first.tenant === "acme");
    assert.ok(second !== undefined && "sha256" in second && second.sha256 === sha256);
    assert.ok(third !== undefined && "key" in third && third.key === "sk-3" && third.tenantFrom === "header");
  });

  it("says when requests of a lane are due", () => {
    const lanes = [
      { name: "now", queue_timeout_ms: 500, ttft_timeout_ms: 2000, timeout_ms: 60_000 },
      "usual",
      { name: "later", queue_timeout_ms: 0 },
    ];
    const settings = parseTenantSettings(JSON.stringify({ lanes }), "f");
    assert.deepEqual(settings.lanes, ["now", "usual", "later"]);
    assert.deepEqual(settings.laneDeadlines["now"], {
      queueTimeoutMs: 500,
      firstTokenTimeoutMs: 2000,
      timeoutMs: 60_000,
    });
    assert.equal(settings.laneDeadlines["usual"], undefined);
    assert.equal(settings.laneDeadlines["later"]?.queueTimeoutMs, 0);
  });

  it("may leave everything out", () => {
    assert.deepEqual(parseTenantSettings("{}", "f"), { ...defaultTenantSettings, tenantFrom: undefined });
    assert.equal(parseTenantSettings('{"lanes": ["a", "b", "c"]}', "f").defaultLane, "b");
  });

  const bad: readonly [string, unknown, RegExp][] = [
    ["what is not JSON", "{", /^f: not valid JSON/],
    ["another kind of value", [], /^f: .*object/],
    ["an unknown field", { tenant: {} }, /^f: .*"tenant"/],
    ["a misspelt term", { tenants: { a: { wieght: 2 } } }, /tenants\.a.*"wieght"/],
    ["a weight of nothing", { tenants: { a: { weight: 0 } } }, /tenants\.a\.weight/],
    ["a tenant that no header could carry", { tenants: { "a b": {} } }, /tenants/],
    [
      "a lane that there is not",
      { tenants: { a: { lane: "fast" } } },
      /tenants\.a\.lane: there is no lane "fast"; the lanes are interactive, standard, batch/,
    ],
    ["a default lane that there is not", { default_lane: "fast" }, /default_lane: there is no lane "fast"/],
    ["no lanes", { lanes: [] }, /lanes/],
    ["a lane twice", { lanes: ["a", { name: "a" }] }, /lanes: one is named twice/],
    ["a deadline before now", { lanes: [{ name: "a", ttft_timeout_ms: -1 }] }, /lanes\[0\]/],
    ["a deadline of another name", { lanes: [{ name: "a", ttft_timeout: 1 }] }, /lanes\[0\]/],
    ["a key without a key", { keys: [{ tenant: "a" }] }, /keys\[0\].*exactly one of key, sha256 and env/],
    ["a key twice over", { keys: [{ key: "a", sha256 }] }, /keys\[0\].*exactly one/],
    ["a key of a lane that there is not", { keys: [{ key: "a", lane: "x" }] }, /keys\[0\]\.lane/],
    ["a digest that is none", { keys: [{ sha256: "12" }] }, /keys\[0\]\.sha256.*64 hexadecimal digits/],
    [
      "one key for two",
      {
        keys: [
          { key: "a", tenant: "x" },
          { key: "a", tenant: "y" },
        ],
      },
      /keys\[1\]: this key was given before/,
    ],
    [
      "a variable that is not set",
      { keys: [{ env: "NOWHERE" }] },
      /keys\[0\]\.env: the environment has no variable NOWHERE/,
    ],
    ["a source that there is not", { tenant_from: "cookie" }, /tenant_from/],
  ];
  for (const [what, value, message] of bad) {
    it(`refuses ${what}, saying where`, () => {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      assert.throws(
        () => parseTenantSettings(text, "f", {}),
        (error: unknown) =>
          error instanceof OctavoError && error.code === "invalid_option" && message.test(error.message),
      );
    });
  }
});
