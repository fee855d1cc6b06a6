import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { fixtureCheckpoint, readQuantizedFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { LLM } from "../llm/llm.js";
import { relativeDifference } from "../testing/oracles/model-oracle-suite.js";
import { ModelRunner } from "../testing/oracles/model-runner.js";
import { ReferenceBackend } from "../testing/reference/reference-backend.js";

const fixtures = readQuantizedFixtures();

describe("FP8 activations that a checkpoint declares", () => {
  for (const name of ["fp8-tensor", "fp8-block"]) {
    test(`of ${name} are rounded as torch rounds them, when asked for`, async () => {
      const fixture = fixtures.find((one) => one.name === name);
      assert.ok(fixture !== undefined);
      const bytes = readFileSync(`${fixture.path}.declared`);
      const declared = new Float32Array(new Uint8Array(bytes).buffer);
      using backend = new ReferenceBackend();
      const checkpoint = await openCheckpoint(fixture.path);
      const logitsOf = async (activations: "exact" | "declared"): Promise<Float32Array> => {
        const { length } = fixture.prompt;
        using runner = await ModelRunner.load(backend, checkpoint, length, "f32", { activations });
        return Float32Array.from((await runner.logits(fixture.prompt)).flatMap((row) => [...row]));
      };
      const followed = rootMeanSquare(await logitsOf("declared"), declared);
      const ignored = rootMeanSquare(await logitsOf("exact"), declared);
      // A value on the edge between two codes may fall to either side; little else differs.
      assert.ok(followed < ignored / 10, `${followed} against ${ignored}`);
      assert.ok(relativeDifference(await logitsOf("exact"), fixture.logits) < 2e-5);
    });
  }

  test("are named when the model is loaded, unless they are followed", async () => {
    const path = fixtures.find(({ name }) => name === "fp8-tensor")?.path ?? "";
    const warningsOf = async (activations: "exact" | "declared"): Promise<string[]> => {
      const warnings: string[] = [];
      const onWarning = (message: string): void => void warnings.push(message);
      await using _ = await LLM.load(path, {
        onWarning,
        activations,
        weightCache: "off",
        kvCacheMemoryBytes: 1 << 20,
      });
      return warnings.filter((message) =>
        message.includes("declares FP8 activations with a scale per token"),
      );
    };
    assert.equal((await warningsOf("exact")).length, 1);
    assert.equal((await warningsOf("declared")).length, 0);
  });

  test("cannot be followed where none are declared", async () => {
    const options = { activations: "declared", weightCache: "off", kvCacheMemoryBytes: 1 << 20 } as const;
    await assert.rejects(LLM.load(fixtureCheckpoint("llama3"), options), {
      code: "artifact_unsupported",
      message: /declares no FP8 activations/,
    });
  });
});

function rootMeanSquare(found: Float32Array, expected: Float32Array): number {
  assert.equal(found.length, expected.length);
  return Math.sqrt(
    found.reduce((sum, value, i) => sum + (value - (expected[i] ?? 0)) ** 2, 0) / found.length,
  );
}
