import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readConfigJson } from "@octavo/artifacts/config/config-json";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { readContainerFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { createCpuBackend } from "@octavo/kernels";
import { LLM } from "../llm/llm.js";
import { compareGreedy, compareLogits } from "../testing/oracles/model-oracle-suite.js";
import { ModelRunner } from "../testing/oracles/model-runner.js";

describe("models that take images, served as text, against transformers", () => {
  for (const fixture of readContainerFixtures()) {
    test(fixture.name, async () => {
      const checkpoint = await openCheckpoint(fixture.path);
      assert.ok((checkpoint.container?.skippedTensors ?? 0) > 4);
      using backend = createCpuBackend({ numThreads: 2 });
      const maxTokens = fixture.prompt.length + fixture.greedy.length;
      using runner = await ModelRunner.load(backend, checkpoint, maxTokens, "f32");
      await compareLogits(runner, fixture, checkpoint.config.vocabSize, 2e-5);
      await compareGreedy(runner, fixture);
    });
  }

  test("that their images are not taken is said once", async () => {
    const [fixture] = readContainerFixtures();
    const warnings: string[] = [];
    await using _ = await LLM.load(fixture?.path ?? "", {
      onWarning: (message) => void warnings.push(message),
      weightCache: "off",
      kvCacheMemoryBytes: 1 << 20,
    });
    const said = warnings.filter((message) => message.includes("served as text"));
    assert.equal(said.length, 1);
    assert.match(
      said[0] ?? "",
      /^Gemma3ForConditionalGeneration is served as text, and \d+ tensors are not loaded: .*gemma3 has no preprocessor_config\.json/,
    );
    assert.ok(!warnings.some((message) => message.includes("are not used")));
  });

  test("a container whose text is of no known family is refused by that family", () => {
    const of = (json: object): void => void readConfigJson("config.json", json, "bf16");
    const architectures = ["LlavaForConditionalGeneration"];
    assert.throws(() => of({ architectures, text_config: { model_type: "opt" } }), {
      code: "artifact_unsupported",
      message: /model_type "opt"/,
    });
    assert.throws(() => of({ architectures, text_config: {} }), { code: "artifact_invalid" });
    assert.throws(
      () => of({ architectures: ["Kosmos2ForConditionalGeneration"], text_config: { model_type: "llama" } }),
      {
        code: "artifact_unsupported",
        message: /"Kosmos2ForConditionalGeneration"/,
      },
    );
  });
});
