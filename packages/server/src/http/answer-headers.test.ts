import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import type { SpanSink } from "@octavo/tracing";
import { pino } from "pino";
import { resolveServerConfig } from "../resolve-config.js";
import { createServer } from "../create-server.js";
import { FakeLanguageModel } from "../testing/fake-language-model.js";
import { startTestServer } from "../testing/test-server.js";

/** Turns tracing on, and forgets. */
const blindSink: SpanSink = {
  counts: { delivered: 0, droppedFull: 0, droppedFailed: 0, waiting: 0 },
  add: () => undefined,
  flush: () => Promise.resolve(),
  close: () => Promise.resolve(),
};
const chat = { messages: [{ role: "user", content: "hi" }] };

describe("headers of every answer", () => {
  it("name the replica, on errors and probes too, if it has a name", async () => {
    await using server = await startTestServer({ replicaId: "eu-1/replica:2" });
    for (const path of ["/v1/models", "/v1/nowhere", "/health", "/metrics"]) {
      const response = await fetch(server.url + path);
      await response.text();
      assert.equal(response.headers.get("x-octavo-replica"), "eu-1/replica:2", path);
    }
    await using plain = await startTestServer();
    const response = await plain.post("/v1/chat/completions", chat);
    assert.equal(response.headers.get("x-octavo-replica"), null);
  });

  it("carry the queue depth at arrival: in answers, streams and refusals", async () => {
    await using server = await startTestServer({ apiKeys: ["key"] });
    const authorization = "Bearer key";
    server.model.engine.queueDepth = 7;
    for (const stream of [false, true]) {
      const response = await server.post("/v1/chat/completions", { ...chat, stream }, { authorization });
      await response.text();
      assert.equal(response.headers.get("x-octavo-queue-depth"), "7");
    }
    server.model.engine.behaviour.refuseWith = new OctavoError("queue_full", "full");
    const refused = await server.post("/v1/chat/completions", chat, { authorization });
    assert.equal(refused.status, 429);
    assert.equal(refused.headers.get("x-octavo-queue-depth"), "7");
    const stranger = await server.post("/v1/chat/completions", chat);
    assert.equal(stranger.status, 401);
    assert.equal(stranger.headers.get("x-octavo-queue-depth"), null);
  });

  it("are exposed to allowed browser origins", async () => {
    const model = new FakeLanguageModel();
    const server = createServer({
      model,
      config: { port: 0, corsOrigins: ["https://a.example"], replicaId: "r" },
      logger: pino({ level: "silent" }),
      spanSinks: [blindSink],
    });
    const { url } = await server.listen();
    model.engine.behaviour.refuseWith = new OctavoError("queue_full", "full");
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: "https://a.example" },
      body: JSON.stringify({ ...chat, colour: "red" }),
    });
    await response.text();
    await server.close();
    assert.equal(response.status, 429);
    const exposed = (response.headers.get("access-control-expose-headers") ?? "").split(", ");
    const own = [...response.headers.keys()].filter((name) => /^x-|^traceresponse$|^retry-after$/.test(name));
    assert.deepEqual(own.toSorted(), [...exposed].toSorted());
  });

  it("reject replica names that are no valid header or label", () => {
    for (const replicaId of ["two words", "a\r\nx: y", "ü", "x".repeat(129)])
      assert.throws(() => resolveServerConfig({ replicaId }), { code: "invalid_option", param: "replicaId" });
  });
});
