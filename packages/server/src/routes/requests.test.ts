import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createSseDecoder, type NeighboursInfo, type OctavoNotes } from "@octavo/protocol";
import { defaultTenantSettings } from "../tenants/tenant-settings.js";
import { startTestServer, type TestServer } from "../testing/test-server.js";

const chat = { messages: [{ role: "user", content: "hi" }] };
const wanted = { octavo: { include_serving_record: true } };

interface Noted {
  readonly choices: readonly unknown[];
  readonly octavo?: OctavoNotes;
}

async function streamed(server: TestServer, path: string, body: object): Promise<readonly Noted[]> {
  const response = await server.post(path, { ...body, stream: true });
  const events = createSseDecoder().push(await response.text());
  return events.slice(0, -1).map(({ data }) => JSON.parse(data) as Noted);
}

describe("serving records", () => {
  it("come with the answer when asked for, and only then", async () => {
    await using server = await startTestServer({}, { reply: () => "four" });
    const asked = (await (await server.post("/v1/chat/completions", { ...chat, ...wanted })).json()) as Noted;
    const record = asked.octavo?.serving_record;
    assert.equal(record?.is_over, true);
    assert.equal(typeof record.kernel_ms, "number");
    assert.deepEqual(record.slow_gaps, []);
    const plain = (await (await server.post("/v1/chat/completions", chat)).json()) as Noted;
    assert(!("octavo" in plain));
  });

  it("come with a digest of the logits behind each token when asked for, of every choice", async () => {
    await using server = await startTestServer({}, { reply: (prompt, index) => `${prompt.at(-1)}${index}` });
    const octavo = { include_logits_digest: true };
    const digestsOf = (text: string): readonly string[] =>
      Array.from(text, (letter) => letter.charCodeAt(0).toString(16).padStart(16, "0"));
    const body = { prompt: ["a", "b"], n: 2, octavo };
    const expected = ["a0", "a1", "b0", "b1"].map(digestsOf);
    const whole = (await (await server.post("/v1/completions", body)).json()) as Noted;
    assert.deepEqual(whole.octavo, { logits_digests: expected });
    const chunks = await streamed(server, "/v1/completions", body);
    assert.deepEqual(chunks.at(-1)?.octavo, { logits_digests: expected });
    const asked = { ...chat, n: 2, octavo: { ...octavo, include_serving_record: true } };
    const answer = (await (await server.post("/v1/chat/completions", asked)).json()) as Noted;
    const last = (await streamed(server, "/v1/chat/completions", asked)).at(-1)!;
    for (const { octavo: notes } of [answer, last]) {
      assert.deepEqual(notes?.logits_digests, ["\n0", "\n1"].map(digestsOf));
      assert.equal(notes.serving_record?.is_over, true);
    }
    const promptOnly = { prompt: "a", echo: true, max_tokens: 0, octavo };
    const nothing = (await (await server.post("/v1/completions", promptOnly)).json()) as Noted;
    assert.deepEqual(nothing.octavo, {});
    const batch = { messages: [chat.messages], octavo };
    assert.equal((await server.post("/v1/chat/completions/batch", batch)).status, 400);
  });

  it("come in the last chunk of a stream, behind usage", async () => {
    await using server = await startTestServer({}, { reply: () => "four" });
    for (const path of ["/v1/chat/completions", "/v1/completions"]) {
      const prompt = path.includes("chat") ? chat : { prompt: "a" };
      const chunks = await streamed(server, path, {
        ...prompt,
        ...wanted,
        stream_options: { include_usage: true },
      });
      const last = chunks.at(-1)!;
      assert.deepEqual(last.choices, []);
      const record = last.octavo?.serving_record ?? last.octavo?.serving_records?.[0];
      assert.equal(record?.is_over, true);
      assert("usage" in chunks.at(-2)! && chunks.filter(({ octavo }) => octavo !== undefined).length === 1);
    }
  });

  it("are found by the id of the exchange, numbered where it had several prompts", async () => {
    await using server = await startTestServer({}, { reply: () => "x" });
    const response = await server.post("/v1/completions", { prompt: ["a", "b", "c"], ...wanted });
    const id = response.headers.get("x-octavo-request-id");
    const answer = (await response.json()) as Noted;
    assert.deepEqual(
      answer.octavo?.serving_records?.map(({ request_id }) => request_id),
      [`${id}-0`, `${id}-1`, `${id}-2`],
    );
    const found: unknown = await (await fetch(`${server.url}/v1/requests/${id}-1`)).json();
    assert.deepEqual(found, answer.octavo?.serving_records?.[1]);
    const single = await server.post("/v1/chat/completions", chat, { "x-request-id": `${id}-1` });
    const own = single.headers.get("x-octavo-request-id");
    assert.notEqual(own, `${id}-1`);
    assert.equal((await fetch(`${server.url}/v1/requests/${own}`)).status, 200);
  });

  it("are returned with neighbours, whose tenants a tenant's key does not see", async () => {
    const recorded = {
      requestId: "x",
      tenant: "acme",
      isOver: true,
      arrivalOffsetMs: 0,
      queueMs: 1.23456,
      timeToFirstTokenMs: undefined,
      e2eMs: 20,
      promptTokens: 8,
      cachedTokens: 4,
      outputTokens: [3, 2],
      tokensMeanwhile: 13,
      kernelMsMeanwhile: 7,
    };
    const beside = { ...recorded, requestId: "y", tenant: "rival", arrivalOffsetMs: -5 };
    const keys = [{ key: "theirs", tenant: "acme" }];
    for (const tenants of [defaultTenantSettings, { ...defaultTenantSettings, keys }]) {
      await using server = await startTestServer({ apiKeys: ["ours"], tenants }, { reply: () => "x" });
      server.model.engine.neighbours = { request: recorded, neighbours: [beside, recorded], numOmitted: 2 };
      const headers = { authorization: "Bearer ours" };
      const made = await server.post("/v1/completions", { prompt: "a" }, headers);
      const path = `${server.url}/v1/requests/${made.headers.get("x-octavo-request-id")}/neighbours`;
      const found = (await (await fetch(path, { headers })).json()) as NeighboursInfo;
      assert.deepEqual(found.request, {
        request_id: "x",
        tenant: "acme",
        is_over: true,
        arrival_offset_ms: 0,
        queue_ms: 1.235,
        e2e_ms: 20,
        prompt_tokens: 8,
        cached_tokens: 4,
        output_tokens: [3, 2],
        tokens_meanwhile: 13,
        kernel_ms_meanwhile: 7,
      });
      const isSecret = tenants !== defaultTenantSettings;
      assert.deepEqual(
        found.neighbours.map(({ tenant }) => tenant),
        [isSecret ? "_other" : "rival", "acme"],
      );
      assert.equal(found.num_omitted, 2);
      const unknown = await fetch(path.replace("/neighbours", "x/neighbours"), { headers });
      assert.equal(unknown.status, 404);
      const stranger = await fetch(path, { headers: { authorization: "Bearer theirs" } });
      assert.equal(stranger.status, isSecret ? 404 : 401);
    }
  });

  it("are returned only to the key that made the request", async () => {
    await using server = await startTestServer({ apiKeys: ["ours", "theirs"] }, { reply: () => "x" });
    const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
    const made = await server.post("/v1/completions", { prompt: ["a", "b"] }, bearer("ours"));
    assert.equal(made.status, 200);
    const id = made.headers.get("x-octavo-request-id") ?? "";
    const ask = async (path: string, headers: Record<string, string>): Promise<number> => {
      const response = await fetch(`${server.url}/v1/requests/${path}`, { headers });
      await response.text();
      return response.status;
    };
    assert.equal(await ask(`${id}-1`, bearer("ours")), 200);
    assert.equal(await ask(`${id}-1`, { "x-api-key": "ours" }), 200);
    assert.equal(await ask(`${id}-1`, bearer("theirs")), 404);
    const other = await server.post("/v1/completions", { prompt: "a" }, bearer("theirs"));
    const mark = (other.headers.get("x-octavo-request-id") ?? "").slice(-12);
    assert.equal(await ask(`${id.slice(0, -12)}${mark}-1`, bearer("theirs")), 404);
    for (const odd of ["x", `${id}-1/../x`, "-".repeat(40), `${id.slice(0, 30)}ü`])
      assert.equal(await ask(encodeURIComponent(odd), bearer("ours")), 404);
  });

  it("need the key, and report unknown ids", async () => {
    await using server = await startTestServer({ apiKeys: ["secret"] });
    assert.equal((await fetch(`${server.url}/v1/requests/x`)).status, 401);
    const unknown = await fetch(`${server.url}/v1/requests/${"x".repeat(500)}`, {
      headers: { authorization: "Bearer secret" },
    });
    assert.equal(unknown.status, 404);
    const { error } = (await unknown.json()) as { error: { message: string } };
    assert.match(error.message, /nothing is known/);
    assert(error.message.length < 400);
  });

  it("refuse what they do not know", async () => {
    await using server = await startTestServer();
    for (const octavo of [{ include_serving_records: true }, true, { include_serving_record: "yes" }]) {
      const response = await server.post("/v1/chat/completions", { ...chat, octavo });
      assert.equal(response.status, 400);
      assert.match(await response.text(), /octavo/);
    }
  });
});
