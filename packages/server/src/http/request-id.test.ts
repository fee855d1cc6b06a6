import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startTestServer } from "../testing/test-server.js";

describe("request ids", () => {
  it("are echoed if valid, otherwise generated, and never used inside the engine", async () => {
    await using server = await startTestServer();
    const first = await server.post("/v1/completions", { prompt: "a" }, { "x-request-id": "abc-1" });
    const second = await server.post("/v1/completions", { prompt: "a" }, { "x-request-id": "abc-1" });
    assert.equal(first.headers.get("x-request-id"), "abc-1");
    assert.equal(second.headers.get("x-request-id"), "abc-1");
    const ids = server.model.engine.requests.map((request) => request.requestId);
    assert.equal(new Set([...ids, "abc-1"]).size, 3);
    for (const strange of ["x".repeat(129), "a b", "a\u00e9"]) {
      const response = await server.post("/v1/completions", { prompt: "a" }, { "x-request-id": strange });
      assert.match(response.headers.get("x-request-id") ?? "", /^[0-9a-f-]{36}$/);
    }
    const named = (await (
      await server.post("/v1/completions", { prompt: "a", request_id: "mine" })
    ).json()) as { id: string };
    assert.equal(named.id, "cmpl-mine");
  });
});
