import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ErrorAnswer } from "../testing/error-answer.js";
import { bodyOf, RawSocket } from "../testing/raw-socket.js";
import { startTestServer } from "../testing/test-server.js";

describe("bad requests", () => {
  it("says where JSON is broken", async () => {
    await using server = await startTestServer();
    const cases = [
      ['{"messages": [,]}', /line 1, column 15 \(offset 14\): expected a value or ']', found ","/],
      ['{\n  "a": NaN\n}', /line 2, column 8 \(offset 9\): expected a value, found "N"/],
      ['{"a": 1', /line 1, column 8 .*expected ',' or the end/],
      ["", /body is empty/],
      ["{}{}", /expected nothing after the value/],
    ] as const;
    for (const [body, message] of cases) {
      const response = await server.post("/v1/chat/completions", body);
      assert.equal(response.status, 400);
      assert.equal(response.headers.get("x-octavo-error-code"), "invalid_json");
      assert.match(((await response.json()) as ErrorAnswer).error.message, message);
    }
  });

  it("refuses deep nesting before it parses", async () => {
    await using server = await startTestServer();
    const response = await server.post("/v1/chat/completions", `{"messages":${"[".repeat(100_000)}`);
    assert.equal(response.status, 400);
    assert.match(await response.text(), /nests deeper than 128 levels/);
  });

  it("takes a body of many megabytes", async () => {
    await using server = await startTestServer({}, { maxModelLen: 10_000_000 });
    const prompt = "é".repeat(2_000_000);
    const response = await server.post("/v1/completions", { prompt });
    assert.equal(response.status, 200);
    assert.equal(server.model.engine.requests[0]?.promptTokens.length, 4_000_001);
  });

  it("answers wrong paths, methods and content types", async () => {
    await using server = await startTestServer();
    const missing = await fetch(`${server.url}/v2/nothing`);
    assert.equal(missing.status, 404);
    assert.equal(((await missing.json()) as ErrorAnswer).error.type, "NotFoundError");
    const method = await fetch(`${server.url}/v1/chat/completions`);
    assert.equal(method.status, 405);
    assert.equal(method.headers.get("allow"), "POST, OPTIONS");
    const type = await server.post("/v1/chat/completions", "{}", { "content-type": "text/plain" });
    assert.equal(type.status, 415);
    const charset = await server.post("/v1/chat/completions", "{}", {
      "content-type": "application/json; charset=latin1",
    });
    assert.equal(charset.status, 415);
    const gzip = await server.post("/v1/chat/completions", "{}", { "content-encoding": "gzip" });
    assert.equal(gzip.status, 415);
    const slash = await fetch(`${server.url}/v1/models/`);
    assert.equal(slash.status, 200, "a trailing slash is forgiven");
    const head = await fetch(`${server.url}/v1/models`, { method: "HEAD" });
    assert.equal(head.status, 200);
  });

  it("keeps a connection after an error that came with a small body", async () => {
    await using server = await startTestServer();
    using socket = await RawSocket.open(server.port);
    socket.send("POST /nothing HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nabcde");
    await socket.until((received) => received.includes("404 Not Found"));
    socket.send("GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert.match(await socket.untilClosed(), /HTTP\/1\.1 200 OK/);
  });
});

describe("errors by hand", () => {
  it("have the same shape as the others", async () => {
    await using server = await startTestServer();
    using socket = await RawSocket.open(server.port);
    socket.send("nonsense\r\n\r\n");
    const answer = await socket.untilClosed();
    assert.deepEqual(bodyOf(answer), {
      error: {
        message: "the request is not valid HTTP/1.1",
        type: "BadRequestError",
        param: null,
        code: 400,
      },
    });
  });
});
