import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { readEmbeddingFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { relativeDifference } from "../testing/oracles/model-oracle-suite.js";
import { LLM } from "./llm.js";

const fixtures = readEmbeddingFixtures();
const scratch = mkdtempSync(join(tmpdir(), "octavo-embeddings-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
const load = (path: string): Promise<LLM> =>
  LLM.load(path, { weightCache: "off", kvCacheMemoryBytes: 1 << 20, kvCacheDtype: "f32", numThreads: 2 });

function pathOf(name: string): string {
  return fixtures.find((fixture) => fixture.name === name)?.path ?? "";
}

/** A copy of an embedding model with another file in it. */
function withFile(name: string, file: string, content: unknown): string {
  const folder = join(scratch, `${name}-${file.replaceAll(/\W/g, "-")}-${JSON.stringify(content).length}`);
  cpSync(pathOf(name), folder, { recursive: true });
  writeFileSync(join(folder, file), JSON.stringify(content));
  return folder;
}

describe("embeddings as sentence-transformers makes them", () => {
  for (const { name, path, texts, embeddings } of fixtures) {
    test(`${name}: pooled and normalised as its modules say`, async () => {
      await using llm = await load(path);
      const together = await llm.embed(texts);
      for (const [index, embedding] of together.entries()) {
        assert.ok(relativeDifference(embedding, embeddings[index] ?? []) <= 2e-5, `text ${index}`);
        const [alone] = await llm.embed([texts[index] ?? ""]);
        assert.deepEqual(alone, embedding, "the same bits alone");
      }
    });
  }

  test("a model without a head gives no text", async () => {
    await using llm = await load(pathOf("llama-embedding"));
    await assert.rejects(async () => void (await llm.generate("x", { maxTokens: 1 })), {
      code: "invalid_request",
      message: /no output head/,
    });
    // Qwen3-Embedding's head is its embedding.
    await using tied = await load(pathOf("qwen3-embedding"));
    assert.equal((await tied.generate("x", { maxTokens: 1 })).usage.completionTokens, 1);
  });

  test("which lengths an embedding can be cut to stands in config.json", async () => {
    const { config } = await openCheckpoint(pathOf("llama-embedding"));
    assert.deepEqual(config.embedding, { pooling: "mean", normalize: false, dimensions: [16, 32] });
  });

  const refusals: readonly (readonly [file: string, content: unknown, code: string, message: RegExp])[] = [
    [
      "1_Pooling/config.json",
      { pooling_mode_cls_token: true, pooling_mode_max_tokens: true },
      "artifact_unsupported",
      /pools by cls_token and max_tokens/,
    ],
    ["1_Pooling/config.json", { pooling_mode: "weightedmean" }, "artifact_unsupported", /weightedmean/],
    [
      "modules.json",
      [{ type: "sentence_transformers.models.Dense", path: "" }],
      "artifact_unsupported",
      /Dense/,
    ],
    ["modules.json", [{ type: 7 }], "artifact_invalid", /modules\.json/],
    [
      "config.json",
      { architectures: ["Gemma2Model"], use_bidirectional_attention: true },
      "artifact_unsupported",
      /both directions/,
    ],
    ["config.json", { architectures: ["T5EncoderModel"] }, "artifact_unsupported", /"T5EncoderModel"/],
  ];
  for (const [file, content, code, message] of refusals) {
    test(`${file} with ${JSON.stringify(content)} is refused`, async () => {
      await assert.rejects(openCheckpoint(withFile("llama-embedding", file, content)), { code, message });
    });
  }
});
