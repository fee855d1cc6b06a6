import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ServerConfig } from "../config.js";
import { endpoints } from "../routes/endpoints.js";
import { type OctavoMini, startOctavoMini } from "../testing/octavo-mini.js";
import { defaultTenantSettings } from "./tenant-settings.js";

/** Every endpoint that runs the model: a body with a prompt, and where the answer counts its cached tokens. */
const bodies: Readonly<Record<string, (text: string) => object>> = {
  "/v1/chat/completions": (text) => ({ messages: [{ role: "user", content: text }], max_tokens: 1 }),
  "/v1/chat/completions/batch": (text) => ({
    messages: [[{ role: "user", content: text }]],
    max_tokens: 1,
  }),
  "/v1/completions": (prompt) => ({ prompt, max_tokens: 1 }),
  "/v1/responses": (input) => ({ input, max_output_tokens: 1 }),
  "/v1/messages": (text) => ({ messages: [{ role: "user", content: text }], max_tokens: 1 }),
  "/v1/embeddings": (input) => ({ input }),
  "/pooling": (input) => ({ input }),
  "/score": (text) => ({ text_1: text, text_2: text }),
  "/rerank": (text) => ({ query: text, documents: [text] }),
};

const tenants = {
  ...defaultTenantSettings,
  keys: [
    { key: "a-1", tenant: "a" },
    { key: "a-2", tenant: "a", lane: "batch" },
    { key: "b-1", tenant: "b" },
    { key: "gateway", tenantFrom: "header" as const },
  ],
};

type Headers = Readonly<Record<string, string>>;
const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` });

async function withServer(
  config: Partial<ServerConfig>,
  use: (
    send: (path: string, text: string, headers: Headers, more?: object) => Promise<Hits>,
  ) => Promise<void>,
): Promise<void> {
  await using octavoMini: OctavoMini = await startOctavoMini(
    {
      maxModelLen: 512,
      numThreads: 2,
      kvCacheMemoryBytes: 64 * 2 ** 20,
      enableFaultInjection: config.enableFaultInjection ?? false,
    },
    config,
  );
  let hits = 0;
  octavoMini.llm.engine.observe({ onPrefixLookup: (_, hit) => void (hits += hit) });
  await use(async (path, text, headers, more = {}) => {
    hits = 0;
    const response = await fetch(octavoMini.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ ...bodies[path]?.(text), ...more }),
    });
    const answer = await response.text();
    assert.equal(response.status, 200, answer);
    const told = /"(?:cached_tokens|cache_read_input_tokens)":(\d+)/.exec(answer)?.[1];
    if (told !== undefined) assert.equal(Number(told), hits, `${path} tells what the engine found`);
    return hits;
  });
}
type Hits = number;

const prompt = (about: string): string => `${about}: ${"my number is 4711, ".repeat(12)}`;
const generating = endpoints.filter(({ span }) => span !== "none");

describe("a prompt that one tenant sent", () => {
  it("is cached for its own keys only, on every endpoint that runs the model", () =>
    withServer({ tenants, apiKeys: ["op-1", "op-2"] }, async (send) => {
      for (const { path } of generating) {
        assert(path in bodies, `${path} runs the model: give it a body here`);
        const text = prompt(path);
        // these hold the text twice: their second prompt may find the first
        const repeats = path === "/score" || path === "/rerank";
        const first = await send(path, text, bearer("a-1"));
        if (!repeats) assert.equal(first, 0, path);
        for (const key of ["a-1", "a-2"])
          assert((await send(path, text, bearer(key))) > first, `${path} ${key}`);
        for (const key of ["b-1", "op-1", "op-2"])
          assert((await send(path, text, bearer(key))) <= first, `${path} ${key}`);
      }
    }));

  it("is found under any key that speaks for the tenant, and under no forged header", () =>
    withServer({ tenants, apiKeys: ["op-1"] }, async (send) => {
      const ask = (headers: Headers, more = {}): Promise<Hits> =>
        send("/v1/completions", prompt("x"), headers, more);
      assert.equal(await ask(bearer("a-1")), 0);
      assert((await ask({ ...bearer("gateway"), "x-tenant-id": "a" })) > 0);
      for (const key of ["b-1", "op-1", "gateway"]) assert.equal(await ask(bearer(key)), 0);
      for (const forged of ["a", "tenant a", "tenant"])
        assert((await ask({ ...bearer("b-1"), "x-tenant-id": forged })) > 0, "b's own by now, not a's");
      assert.equal(await ask({ ...bearer("gateway"), "x-tenant-id": "c" }), 0);
    }));

  it("is divided further by cache_salt, which opens nobody else's", () =>
    withServer({ tenants }, async (send) => {
      const ask = (key: string, salt?: string): Promise<Hits> =>
        send("/v1/completions", prompt("x"), bearer(key), salt === undefined ? {} : { cache_salt: salt });
      for (const salt of [undefined, "s", "tenant a"]) assert.equal(await ask("a-1", salt), 0);
      for (const salt of [undefined, "s", "tenant a"]) assert((await ask("a-2", salt)) > 0);
      for (const salt of [undefined, "s", "tenant a", "8:tenant a"]) assert.equal(await ask("b-1", salt), 0);
    }));

  it("is evicted by a fault only for the key that injects it", () =>
    withServer({ tenants, apiKeys: ["op"], enableFaultInjection: true }, async (send) => {
      const ids = Array.from({ length: 64 }, (_, index) => 300 + index);
      const ask = (key: string): Promise<Hits> => send("/v1/completions", "", bearer(key), { prompt: ids });
      for (const key of ["op", "a-1"]) assert.equal(await ask(key), 0);
      const fault = { kind: "evict", prompt_tokens: ids };
      await send("/fault_injection", "", bearer("op"), fault);
      assert.equal(await ask("op"), 0);
      assert((await ask("a-1")) > 0);
    }));

  it("is shared with all where the operator says so, and where there are neither keys nor tenants", async () => {
    await withServer({ tenants, prefixCacheSharing: "all" }, async (send) => {
      assert.equal(await send("/v1/completions", prompt("x"), bearer("a-1")), 0);
      assert((await send("/v1/completions", prompt("x"), bearer("b-1"))) > 0);
    });
    await withServer({}, async (send) => {
      assert.equal(await send("/v1/completions", prompt("x"), {}), 0);
      assert((await send("/v1/completions", prompt("x"), {})) > 0);
      assert.equal(await send("/v1/completions", prompt("x"), { "x-tenant-id": "a" }), 0);
      assert.equal(await send("/v1/completions", prompt("x"), { "x-tenant-id": "b" }), 0);
    });
  });
});
