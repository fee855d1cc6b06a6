import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FaultInfo, FaultList } from "@octavo/protocol";
import { pino } from "pino";
import { createServer } from "../create-server.js";
import { FakeLanguageModel } from "../testing/fake-language-model.js";
import { defaultTenantSettings } from "../tenants/tenant-settings.js";
import { startTestServer, type TestServer } from "../testing/test-server.js";

const messages = [{ role: "user", content: "hi" }];
const faults = { preempt_at_token: 3, evict_at_token: [0, 5] };

const startFaulty = (config: Parameters<typeof startTestServer>[0] = {}): Promise<TestServer> =>
  startTestServer({ enableFaultInjection: true, ...config }, { takesFaults: true, reply: () => "four" });

async function errorOf(response: Response): Promise<readonly [number, string | null, string | null]> {
  const { error } = (await response.json()) as { error: { param: string | null } };
  return [response.status, response.headers.get("x-octavo-error-code"), error.param];
}

describe("fault injection that was not enabled", () => {
  it("does not exist: no route, no field, no metric", async () => {
    await using server = await startTestServer({ apiKeys: ["key"] }, { takesFaults: true });
    const headers = { authorization: "Bearer key" };
    for (const method of ["GET", "POST", "DELETE", "OPTIONS"]) {
      for (const path of ["/fault_injection", "/fault_injection/1"]) {
        const response = await fetch(server.url + path, { method, headers });
        await response.text();
        assert.equal(response.status, 404, `${method} ${path}`);
      }
    }
    const requests = [
      ["/v1/chat/completions", { messages }],
      ["/v1/chat/completions", { messages, stream: true }],
      ["/v1/completions", { prompt: "a" }],
      ["/v1/responses", { input: "a" }],
      ["/v1/messages", { messages, max_tokens: 4 }],
    ] as const;
    for (const [path, body] of requests) {
      for (const wanted of [faults, {}]) {
        const response = await server.post(path, { ...body, octavo: { faults: wanted } }, headers);
        const [status, code, param] = await errorOf(response);
        // Anthropic's errors name no field
        const field = path === "/v1/messages" ? undefined : "octavo.faults";
        assert.deepEqual([status, code, param], [400, "unsupported_parameter", field], path);
      }
    }
    assert.deepEqual(server.model.engine.requests, []);
    assert.deepEqual(server.model.engine.faults?.active, []);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    assert(!metrics.includes("faults_injected"));
    const document = await (await fetch(`${server.url}/openapi.json`)).text();
    assert(!document.includes("fault_injection"));
  });

  it("cannot be enabled for a model that was not loaded for it", () => {
    const logger = pino({ level: "silent" });
    assert.throws(
      () => createServer({ model: new FakeLanguageModel(), config: { enableFaultInjection: true }, logger }),
      { code: "invalid_option", param: "enableFaultInjection" },
    );
  });
});

describe("fault injection", () => {
  it("is warned of when the server is made", async () => {
    const lines: string[] = [];
    const logger = pino({ level: "warn" }, { write: (line) => void lines.push(line) });
    await using server = createServer({
      model: new FakeLanguageModel({ takesFaults: true }),
      config: { enableFaultInjection: true },
      logger,
    });
    assert(server.config.enableFaultInjection);
    assert.match(lines.join(""), /fault injection is enabled/);
  });

  it("adds, lists and removes faults", async () => {
    await using server = await startFaulty();
    const asked = [
      { kind: "delay", delay_ms: 5, probability: 0.0001, seed: 3, duration_ms: 1000 },
      { kind: "throttle", factor: 2.5 },
      { kind: "evict", prompt_tokens: [1, 2, 3], cache_salt: "s" },
      { kind: "preempt", tenant: "acme", request_id: null },
    ];
    const added: FaultInfo[] = [];
    for (const body of asked) {
      const response = await server.post("/fault_injection", body);
      assert.equal(response.status, 200, JSON.stringify(body));
      added.push((await response.json()) as FaultInfo);
    }
    assert.deepEqual(added, [
      {
        id: 1,
        kind: "delay",
        delay_ms: 5,
        probability: 0.0001,
        seed: 3,
        duration_ms: 1000,
        remaining_ms: 1000,
        num_injected: 0,
      },
      { id: 2, kind: "throttle", factor: 2.5, num_injected: 0 },
      { id: 3, kind: "evict", num_prompt_tokens: 3, cache_salt: "s", num_injected: 0 },
      { id: 4, kind: "preempt", tenant: "acme", num_injected: 0 },
    ]);
    const list = async (): Promise<readonly FaultInfo[]> =>
      ((await (await fetch(`${server.url}/fault_injection`)).json()) as FaultList).faults;
    assert.deepEqual(await list(), added);
    const remove = (path: string): Promise<Response> => fetch(server.url + path, { method: "DELETE" });
    assert.deepEqual(await (await remove("/fault_injection/2")).json(), { num_cleared: 1 });
    for (const id of ["2", "99", "x", "-1"])
      assert.equal((await errorOf(await remove(`/fault_injection/${id}`)))[1], "not_found");
    assert.deepEqual(await (await remove("/fault_injection")).json(), { num_cleared: 3 });
    assert.deepEqual(await list(), []);
  });

  it("refuses what makes no sense, naming the field", async () => {
    await using server = await startFaulty();
    const cases: readonly (readonly [object, string | null])[] = [
      [{}, "kind"],
      [{ kind: "crash" }, "kind"],
      [{ kind: "delay" }, "delay_ms"],
      [{ kind: "delay", delay_ms: "5" }, "delay_ms"],
      [{ kind: "delay", delay_ms: 5, factor: 2 }, "factor"],
      [{ kind: "throttle" }, "factor"],
      [{ kind: "throttle", factor: 2, probability: 0.5 }, "probability"],
      [{ kind: "preempt", prompt_tokens: [1] }, "prompt_tokens"],
      [{ kind: "preempt", probability: 0 }, "probability"],
      [{ kind: "evict", prompt_tokens: [] }, "prompt_tokens"],
      [{ kind: "evict", prompt_tokens: [-1] }, "prompt_tokens[0]"],
    ];
    for (const [body, param] of cases) {
      const answer = await errorOf(await server.post("/fault_injection", body));
      assert.deepEqual(answer, [400, "invalid_request", param], JSON.stringify(body));
    }
    const unknown = await server.post("/fault_injection", { kind: "evict", everything: true });
    assert.match(await unknown.text(), /everything/);
    assert.deepEqual(server.model.engine.faults?.active, []);
  });

  it("comes with requests, and not with batches", async () => {
    await using server = await startFaulty();
    const octavo = { faults };
    for (const [path, body] of [
      ["/v1/chat/completions", { messages }],
      ["/v1/completions", { prompt: ["a", "b"] }],
      ["/v1/responses", { input: "a" }],
      ["/v1/messages", { messages, max_tokens: 4 }],
    ] as const)
      assert.equal((await server.post(path, { ...body, octavo })).status, 200, path);
    const { requests } = server.model.engine;
    assert.equal(requests.length, 5);
    for (const request of requests)
      assert.deepEqual(request.faults, { preemptAtTokens: [3], evictAtTokens: [0, 5] });
    const batch = { messages: [messages, messages], octavo };
    const whole = await server.post("/v1/chat/completions/batch", batch);
    assert.deepEqual(await errorOf(whole), [400, "unsupported_parameter", "octavo"]);
    for (const field of ["include_serving_record", "include_logits_digest"]) {
      const noted = await server.post("/v1/responses", { input: "a", octavo: { [field]: true } });
      assert.deepEqual(await errorOf(noted), [400, "unsupported_parameter", `octavo.${field}`]);
    }
    const unknown = { faults: { crash_at_token: 3 } };
    const refused = await server.post("/v1/chat/completions", { messages, octavo: unknown });
    assert.deepEqual((await errorOf(refused)).slice(0, 2), [400, "invalid_request"]);
  });

  it("needs the operator's key, not a tenant's", async () => {
    const tenants = { keys: [{ key: "acmes", tenant: "acme" }] };
    await using server = await startFaulty({
      apiKeys: ["operators"],
      tenants: { ...defaultTenantSettings, ...tenants },
    });
    const ask = async (method: string, key?: string): Promise<number> => {
      const response = await fetch(`${server.url}/fault_injection`, {
        method,
        headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
      });
      await response.text();
      return response.status;
    };
    for (const method of ["GET", "DELETE"]) {
      assert.equal(await ask(method), 401);
      assert.equal(await ask(method, "acmes"), 401);
      assert.equal(await ask(method, "operators"), 200);
    }
  });
});
