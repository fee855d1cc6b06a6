import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import type { SpeculativeConfig } from "../speculation/speculative-config.js";
import { writeTinyFolder } from "@octavo/artifacts/testing/tiny-checkpoint";
import { LLM } from "./llm.js";
import type { LoadOptions } from "./load-options.js";

const folder = mkdtempSync(join(tmpdir(), "octavo-speculation-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const model = join(folder, "model");
const small = join(folder, "small");
const other = join(folder, "other");
writeTinyFolder(model);
writeTinyFolder(small, { numLayers: 1, hiddenSize: 32, numHeads: 2, numKvHeads: 1, seed: 2 });
writeTinyFolder(other, { seed: 3 });
{
  const path = join(other, "tokenizer.json");
  const tokenizer = JSON.parse(readFileSync(path, "utf8")) as { model: { vocab: Record<string, number> } };
  const { vocab } = tokenizer.model;
  const [[first, firstId], [second, secondId]] = Object.entries(vocab).slice(65, 67) as [
    [string, number],
    [string, number],
  ];
  vocab[first] = secondId;
  vocab[second] = firstId;
  writeFileSync(path, JSON.stringify(tokenizer));
}

const base: LoadOptions = { maxModelLen: 256, maxNumSeqs: 4, kvCacheMemoryBytes: 4 * 2 ** 20, numThreads: 1 };

interface Answers {
  readonly texts: string[];
  readonly draftTokens: number;
  readonly acceptedTokens: number;
}

async function answers(speculativeConfig: SpeculativeConfig | undefined): Promise<Answers> {
  await using llm = await LLM.load(model, { ...base, speculativeConfig });
  let draftTokens = 0;
  let acceptedTokens = 0;
  llm.engine.observe({
    onDraft: (drafted, accepted) => {
      draftTokens += drafted;
      acceptedTokens += accepted;
    },
  });
  const texts: string[] = [];
  for (const temperature of [0, 0.9])
    for (const prompt of ["one two one two one", "The same again. The same ag"]) {
      const result = await llm
        .generate(prompt, { temperature, maxTokens: 40, ignoreEos: true, seed: 7 })
        .result();
      texts.push(result.text);
    }
  return { texts, draftTokens, acceptedTokens };
}

describe("speculation of a loaded model", () => {
  test("changes no answer, with any drafter", async () => {
    const plain = await answers(undefined);
    assert.equal(plain.draftTokens, 0);
    for (const config of [
      { method: "ngram", numSpeculativeTokens: 3, promptLookupMin: 1, promptLookupMax: 3 },
      { method: "suffix", suffixDecodingMaxTreeDepth: 8 },
      { method: "draft_model", model: small, numSpeculativeTokens: 2 },
      { method: "draft_model", model, numSpeculativeTokens: 3 },
    ] satisfies SpeculativeConfig[]) {
      const { texts, draftTokens, acceptedTokens } = await answers(config);
      assert.deepEqual(texts, plain.texts, config.method);
      // The model itself is never wrong.
      if (config.method === "draft_model" && config.model === model)
        assert.equal(acceptedTokens, draftTokens);
    }
  });

  test("reports the maximum draft length", async () => {
    await using llm = await LLM.load(model, { ...base, speculativeConfig: { method: "ngram" } });
    assert.equal(llm.engine.stats.numSpeculativeTokens, 5);
    await using plain = await LLM.load(model, base);
    assert.equal(plain.engine.stats.numSpeculativeTokens, undefined);
  });

  test("refuses a draft model with another vocabulary by name", async () => {
    await assert.rejects(
      LLM.load(model, { ...base, speculativeConfig: { method: "draft_model", model: other } }),
      {
        code: "invalid_option",
        param: "speculative_config",
        message:
          /The draft model .*other has another vocabulary than .*model: token \d+ is ".+" there and ".+" here/,
      },
    );
  });

  test("refuses what cannot be before it loads anything", async () => {
    await assert.rejects(
      LLM.load(join(folder, "nothing"), {
        ...base,
        speculativeConfig: { method: "ngram", numSpeculativeTokens: 0 },
      }),
      { code: "invalid_option", param: "speculative_config", message: /num_speculative_tokens/ },
    );
    await assert.rejects(
      LLM.load(model, {
        ...base,
        speculativeConfig: { method: "draft_model", model: join(folder, "nothing") },
      }),
      { code: "artifact_not_found" },
    );
  });
});
