import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RawSocket } from "../testing/raw-socket.js";
import { startTestServer } from "../testing/test-server.js";

describe("CORS", () => {
  const origin = "https://app.example";

  it("is silent without origins, and OPTIONS still answers", async () => {
    await using server = await startTestServer();
    const response = await fetch(`${server.url}/v1/models`, { method: "OPTIONS", headers: { origin } });
    assert.equal(response.status, 204);
    assert.equal(response.headers.get("allow"), "GET, HEAD, OPTIONS");
    assert.equal(response.headers.get("access-control-allow-origin"), null);
    assert.equal((await fetch(`${server.url}/nothing`, { method: "OPTIONS" })).status, 404);
    using socket = await RawSocket.open(server.port);
    socket.send("OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert.match(await socket.untilClosed(), /^HTTP\/1\.1 204 /);
  });

  it("answers preflights of allowed origins without a key", async () => {
    await using server = await startTestServer({ corsOrigins: [origin], apiKeys: ["k"] });
    const preflight = {
      method: "OPTIONS",
      headers: { origin, "access-control-request-headers": "authorization, content-type" },
    };
    const response = await fetch(`${server.url}/v1/chat/completions`, preflight);
    assert.equal(response.status, 204);
    assert.equal(response.headers.get("access-control-allow-origin"), origin);
    assert.equal(response.headers.get("access-control-allow-headers"), "authorization, content-type");
    assert.equal(response.headers.get("access-control-allow-methods"), "POST, OPTIONS");
    const other = await fetch(`${server.url}/health`, { headers: { origin: "https://evil.example" } });
    assert.equal(other.headers.get("access-control-allow-origin"), null);
    assert.equal(other.headers.get("vary"), "origin");
  });

  it("answers any origin with a star", async () => {
    await using server = await startTestServer({ corsOrigins: ["*"] });
    const response = await fetch(`${server.url}/health`, { headers: { origin } });
    assert.equal(response.headers.get("access-control-allow-origin"), "*");
  });
});
