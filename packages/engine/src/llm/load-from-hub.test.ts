import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { MockHub } from "@octavo/artifacts/testing/mock-hub";
import { fixtureCheckpoint, fixtureGguf, readModelFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { LLM } from "./llm.js";

const sizes = { maxModelLen: 128, maxNumSeqs: 2, maxNumBatchedTokens: 64, numThreads: 1 };

describe("LLM.load from a hub", () => {
  const cacheDir = mkdtempSync(join(tmpdir(), "octavo-llm-hub-"));
  const endpoint = process.env["HF_ENDPOINT"];
  let hub: MockHub;

  before(async () => {
    hub = await MockHub.start();
    process.env["HF_ENDPOINT"] = hub.url;
    const folder = fixtureCheckpoint("qwen2");
    const files = Object.fromEntries(
      readdirSync(folder).map((name) => [
        name,
        { content: readFileSync(join(folder, name)), isLarge: name.endsWith(".safetensors") },
      ]),
    );
    hub.repositories.set("acme/sharded", { commit: "a".repeat(40), files, refs: ["v2"] });
    const gguf = { "tiny-Q4_0.gguf": { content: readFileSync(fixtureGguf("llama3-q4_0")), isLarge: true } };
    hub.repositories.set("acme/quantized", { commit: "b".repeat(40), files: gguf });
  });
  after(async () => {
    if (endpoint === undefined) delete process.env["HF_ENDPOINT"];
    else process.env["HF_ENDPOINT"] = endpoint;
    await hub[Symbol.asyncDispose]();
    rmSync(cacheDir, { recursive: true, force: true });
  });

  test("downloads a revision into the given cache and serves it", async () => {
    const phases = new Set<string>();
    await using llm = await LLM.load("acme/sharded", {
      ...sizes,
      revision: "v2",
      downloadDir: cacheDir,
      onProgress: ({ phase }) => phases.add(phase),
    });
    assert.deepEqual([...phases], ["downloading", "loading weights"]);
    assert.equal(llm.name, "acme/sharded");
    assert.ok(readdirSync(cacheDir).includes("models--acme--sharded"));
    const fixture = readModelFixtures().find(({ name }) => name === "qwen2");
    assert.ok(fixture !== undefined);
    const options = { temperature: 0, maxTokens: 64, ignoreEos: true };
    const result = await llm.generate(Int32Array.from(fixture.prompt), options);
    assert.deepEqual(result.sequences[0]?.tokens, fixture.greedy);
  });

  test("takes the quantisation that is asked for", async () => {
    await using llm = await LLM.load("acme/quantized:Q4_0", { ...sizes, downloadDir: cacheDir });
    assert.equal(llm.config.dtype, "quantized");
    assert.ok(
      (await llm.generate("the cat", { maxTokens: 3, ignoreEos: true })).usage.completionTokens === 3,
    );
  });

  test("a second revision is refused, and a local path has none", async () => {
    await assert.rejects(LLM.load("acme/sharded@v1", { ...sizes, revision: "v2" }), {
      code: "invalid_option",
      param: "revision",
    });
    await assert.rejects(LLM.load("acme/nothing", { ...sizes, downloadDir: cacheDir }), {
      code: "artifact_not_found",
    });
    await using local = await LLM.load(fixtureCheckpoint("qwen2"), { ...sizes, revision: "v2" });
    assert.equal(local.config.architecture, "Qwen2ForCausalLM");
  });
});
