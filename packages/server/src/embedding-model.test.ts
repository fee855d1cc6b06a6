import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { readEmbeddingFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { LLM } from "@octavo/engine";
import { pino } from "pino";
import { createServer, type OctavoServer } from "./create-server.js";

describe("a server with an embedding model", () => {
  const fixture = readEmbeddingFixtures().find(({ name }) => name === "llama-embedding");
  const text = fixture?.texts[0] ?? "";
  const whole = fixture?.embeddings[0] ?? [];
  let llm: LLM;
  let server: OctavoServer;
  let url: string;

  before(async () => {
    llm = await LLM.load(fixture?.path ?? "", {
      kvCacheDtype: "f32",
      kvCacheMemoryBytes: 1 << 20,
      numThreads: 2,
    });
    const config = { port: 0, servedModelNames: ["tiny"], keepAliveTimeoutMs: 1000 } as const;
    server = createServer({ model: llm, config, logger: pino({ level: "silent" }) });
    ({ url } = await server.listen());
  });
  after(async () => {
    await server.close();
    await llm[Symbol.asyncDispose]();
  });

  const post = async (
    path: string,
    body: object,
  ): Promise<{ status: number; json: Record<string, unknown> }> => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "tiny", ...body }),
    });
    return { status: response.status, json: (await response.json()) as Record<string, unknown> };
  };
  const embed = async (fields: object): Promise<readonly number[]> => {
    const { json } = await post("/v1/embeddings", { input: text, ...fields });
    return (json["data"] as readonly { readonly embedding: readonly number[] }[])[0]?.embedding ?? [];
  };

  it("pools and normalises as its modules say, or as a request asks", async () => {
    assertClose(await embed({}), whole);
    assertClose(
      await embed({ normalize: true }),
      whole.map((value) => value / Math.hypot(...whole)),
    );
  });

  it("cuts embeddings to the lengths that the model was trained for, and to no others", async () => {
    const kept = whole.slice(0, 16);
    assertClose(await embed({ dimensions: 16 }), kept);
    assertClose(
      await embed({ dimensions: 16, normalize: true }),
      kept.map((value) => value / Math.hypot(...kept)),
    );
    assertClose(await embed({ dimensions: 64 }), whole);
    for (const dimensions of [24, 65]) {
      const { status, json } = await post("/v1/embeddings", { input: text, dimensions });
      assert.equal(status, 400);
      assert.match(JSON.stringify(json), /can have 16, 32, 64 dimensions/);
    }
  });

  it("refuses to write", async () => {
    const { status, json } = await post("/v1/completions", { prompt: "x", max_tokens: 1 });
    assert.equal(status, 400);
    assert.match(JSON.stringify(json), /gives no text: use \/v1\/embeddings/);
  });
});

function assertClose(found: readonly number[], expected: readonly number[]): void {
  assert.equal(found.length, expected.length);
  const largest = Math.max(...expected.map(Math.abs));
  for (const [i, value] of expected.entries())
    assert.ok(Math.abs((found[i] ?? Infinity) - value) <= 2e-5 * largest);
}
