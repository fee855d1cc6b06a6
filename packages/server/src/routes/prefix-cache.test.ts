import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ServerConfig } from "../config.js";
import { defaultTenantSettings } from "../tenants/tenant-settings.js";
import { type OctavoMini, startOctavoMini } from "../testing/octavo-mini.js";

const replicaKey = "a key of the cluster";
const shown = { "x-octavo-replica-key": replicaKey };
const tenants = { ...defaultTenantSettings, tenantFrom: "header" as const };

const start = (config: Partial<ServerConfig> = {}): Promise<OctavoMini> =>
  startOctavoMini(
    { maxModelLen: 512, numThreads: 1, kvCacheMemoryBytes: 64 * 2 ** 20 },
    { replicaKey, tenants, ...config },
  );

const prompt = `You are a librarian. ${"Be short and kind. ".repeat(12)}`;

interface Completion {
  readonly choices: readonly { readonly text: string }[];
  readonly usage: { readonly prompt_tokens_details?: { readonly cached_tokens?: number } };
}

async function ask(url: string, tenant: string, salt?: string): Promise<{ text: string; cached: number }> {
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-tenant-id": tenant },
    body: JSON.stringify({
      prompt: `${prompt} Who wrote Emma?`,
      max_tokens: 16,
      temperature: 0,
      ...(salt !== undefined && { cache_salt: salt }),
    }),
  });
  const { choices, usage } = (await response.json()) as Completion;
  return { text: choices[0]?.text ?? "", cached: usage.prompt_tokens_details?.cached_tokens ?? 0 };
}

interface Hot {
  readonly prefixes: readonly {
    readonly tokens: readonly number[];
    readonly cache_scope: string | null;
    readonly cache_salt: string | null;
    readonly heat: number;
  }[];
}

const hot = async (url: string, query = ""): Promise<Hot> =>
  (await (await fetch(`${url}/prefix_cache/hot${query}`, { headers: shown })).json()) as Hot;

const warm = (url: string, body: object, headers: Readonly<Record<string, string>> = shown) =>
  fetch(`${url}/prefix_cache/warm`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

describe("hot prefixes from one server to another", () => {
  it("are cached there before the first request, for the tenant and the salt whose they are alone, and change no text", async () => {
    await using old = await start();
    await using fresh = await start();
    const first = await ask(old.url, "acme");
    assert.equal(first.cached, 0);
    for (let times = 0; times < 3; times += 1) await ask(old.url, "acme");
    await ask(old.url, "salty", "pepper");
    await ask(old.url, "salty", "pepper");
    const { prefixes } = await hot(old.url);
    assert.deepEqual(
      prefixes.map(({ cache_scope, cache_salt }) => [cache_scope, cache_salt]),
      [
        ["tenant acme", null],
        ["tenant salty", "pepper"],
      ],
    );
    const [hottest] = prefixes;
    assert.ok(hottest && hottest.tokens.length >= 64 && hottest.tokens.length % 16 === 0);

    const answer = await warm(fresh.url, { prefixes, timeout_ms: 60_000 });
    assert.deepEqual(await answer.json(), {
      prefixes: 2,
      tokens: prefixes.reduce((sum, { tokens }) => sum + tokens.length, 0),
    });
    const other = await ask(fresh.url, "bravo");
    assert.deepEqual(other, first, "another tenant finds nothing");
    const { cached, text } = await ask(fresh.url, "acme");
    assert.equal(cached, hottest.tokens.length);
    assert.equal(text, first.text);
    assert.equal((await ask(fresh.url, "salty")).cached, 0, "the tenant without its salt");
    assert.ok((await ask(fresh.url, "salty", "pepper")).cached > 0);

    const { tokens } = hottest;
    assert.equal((await hot(old.url, `?max_tokens=${tokens.length - 1}`)).prefixes.length, 0);
    await fetch(`${old.url}/reset_prefix_cache`, { method: "POST" });
    assert.deepEqual((await hot(old.url)).prefixes, [], "what is to be forgotten is");
  });

  it("are told and taken only under the key, and only where there is one", async () => {
    const prefixes = [{ tokens: Array.from({ length: 32 }, (_, at) => at + 40) }];
    const body = { prefixes, timeout_ms: 1000 };
    await using server = await start();
    for (const headers of [{}, { "x-octavo-replica-key": "a key" }, { "x-octavo-replica-key": "" }]) {
      assert.equal((await fetch(`${server.url}/prefix_cache/hot`, { headers })).status, 404);
      assert.equal((await warm(server.url, body, headers)).status, 404);
    }
    await using closed = await start({ replicaKey: undefined });
    const headers = { "x-octavo-replica-key": "undefined" };
    assert.equal((await fetch(`${closed.url}/prefix_cache/hot`, { headers })).status, 404);
    assert.equal((await warm(closed.url, body, headers)).status, 404);
  });

  it("that are malformed are refused, those that are too long left out", async () => {
    await using server = await start();
    const tokens = Array.from({ length: 32 }, (_, at) => at + 40);
    for (const body of [
      { prefixes: [], timeout_ms: 1000 },
      { prefixes: [{ tokens: [] }], timeout_ms: 1000 },
      { prefixes: [{ tokens: [-1] }], timeout_ms: 1000 },
      { prefixes: [{ tokens: [2 ** 30] }], timeout_ms: 1000 },
      { prefixes: [{ tokens, cache_scope: 4 }], timeout_ms: 1000 },
      { prefixes: [{ tokens }], timeout_ms: 0 },
      { prefixes: [{ tokens }], timeout_ms: 1.5 },
      { prefixes: [{ tokens }] },
    ])
      assert.equal((await warm(server.url, body)).status, 400, JSON.stringify(body));
    const long = { tokens: Array.from({ length: 512 }, () => 40) };
    const answer = await warm(server.url, { prefixes: [long, { tokens }], timeout_ms: 60_000 });
    assert.deepEqual(await answer.json(), { prefixes: 1, tokens: 32 });
  });
});
