import assert from "node:assert/strict";
import { describe, it } from "node:test";
import OpenAI, { AuthenticationError } from "openai";
import { startTestServer } from "../testing/test-server.js";

describe("API keys", () => {
  const apiKeys = ["first-key", "second-key"];

  it("are required on protected paths; any of them works", async () => {
    await using server = await startTestServer({ apiKeys });
    const paths = [
      "/v1/chat/completions",
      "/v1/completions",
      "/v1/embeddings",
      "/tokenize",
      "/detokenize",
      "/v1/unknown",
    ];
    for (const path of paths) {
      for (const headers of [
        {},
        { authorization: "Bearer wrong" },
        { authorization: "Bearer " },
        { authorization: "first-key" },
      ]) {
        const response = await server.post(path, "not even json", headers);
        assert.equal(response.status, 401, path);
        assert.equal(response.headers.get("www-authenticate"), 'Bearer realm="octavo"');
        await response.json();
      }
    }
    for (const apiKey of apiKeys) {
      const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });
      assert.equal((await client.models.list()).data.length, 1);
    }
    const wrong = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "first-kez", maxRetries: 0 });
    await assert.rejects(wrong.models.list(), AuthenticationError);
  });

  it("are not needed for probes and scrapes", async () => {
    await using server = await startTestServer({ apiKeys });
    for (const path of ["/health", "/ping", "/version", "/load", "/metrics"]) {
      const response = await fetch(server.url + path);
      assert.equal(response.status, 200, path);
      await response.text();
    }
  });
});
