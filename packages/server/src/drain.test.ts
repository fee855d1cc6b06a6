import assert from "node:assert/strict";
import { describe, it } from "node:test";
import OpenAI from "openai";
import { RawSocket } from "./testing/raw-socket.js";
import { startTestServer, type TestServer } from "./testing/test-server.js";

const messages = [{ role: "user" as const, content: "hi" }];
const slow = { stepDelayMs: 3, reply: (): string => "x".repeat(30) };
const endless = { stepDelayMs: 3, reply: (): string => "x".repeat(3000) };

async function running(server: TestServer, count: number): Promise<void> {
  while (server.model.engine.requests.length < count) await new Promise((resolve) => setTimeout(resolve, 1));
}

describe("drain", () => {
  it("lets running requests end, refuses new ones, fails health, and closes", async () => {
    await using server = await startTestServer({}, slow);
    const whole = server.client.chat.completions.create({ model: "fake/model", messages });
    const stream = server.post("/v1/chat/completions", { messages, stream: true });
    await running(server, 2);
    using probe = await RawSocket.open(server.port);
    const drained = server.server.drain(10_000);
    const health = await fetch(`${server.url}/health`);
    assert.equal(health.status, 503);
    assert.equal(health.headers.get("connection"), "close");
    const refused = await server.post("/v1/chat/completions", { messages });
    assert.equal(refused.status, 503);
    assert.equal(refused.headers.get("retry-after"), "1");
    assert.equal(refused.headers.get("x-octavo-error-code"), "shutting_down");
    assert.equal((await whole).choices[0]?.message.content, "x".repeat(30));
    assert.match(await (await stream).text(), /data: \[DONE\]\n\n$/);
    await drained;
    assert.equal(server.model.engine.aborted.length, 0);
    await assert.rejects(fetch(`${server.url}/health`));
    assert.equal(await probe.untilClosed(), "");
  });

  it("ends what still runs at the deadline with a typed error", async () => {
    await using server = await startTestServer({}, endless);
    const whole = server.post("/v1/chat/completions", { messages });
    const stream = server.post("/v1/chat/completions", { messages, stream: true });
    await running(server, 2);
    await server.server.drain(30);
    const refused = await whole;
    assert.equal(refused.status, 503);
    const text = await (await stream).text();
    assert.doesNotMatch(text, /\[DONE\]/);
    assert.match(text, /"type":"ServiceUnavailableError"[^\n]*\n\n$/);
  });

  it("is cut short by close, as a second signal does", async () => {
    await using server = await startTestServer({}, endless);
    const stream = server.post("/v1/chat/completions", { messages, stream: true });
    await running(server, 1);
    const drained = server.server.drain(60_000);
    await server.server.close();
    assert.match(await (await stream).text(), /shutting down/);
    assert.equal(server.model.engine.aborted.length, 1);
    await drained;
  });

  it("returns at once when nothing runs, and close may be called again", async () => {
    const server = await startTestServer();
    await server.server.drain(60_000);
    await server.server.close();
    await server.server.close();
  });
});

describe("listen", () => {
  it("says that a port is taken", async () => {
    await using first = await startTestServer();
    await assert.rejects(startTestServer({ port: first.port }), /cannot listen on .*: it is in use/);
  });

  it("serves over IPv6 with a usable URL", async (t) => {
    let server;
    try {
      server = await startTestServer({ host: "::1" });
    } catch {
      t.skip("this machine has no IPv6 loopback");
      return;
    }
    await using owned = server;
    const client = new OpenAI({ baseURL: `${owned.url}/v1`, apiKey: "x", maxRetries: 0 });
    assert.match(owned.url, /^http:\/\/\[::1\]:\d+$/);
    assert.equal((await client.models.list()).data.length, 1);
  });
});
