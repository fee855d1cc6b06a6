import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ThinkingBudget } from "../api.js";
import {
  collect,
  createFakeEngine,
  generationRequest,
  letterTokenizer,
} from "../testing/fakes/engine-fixture.js";

const tokensOf = (text: string): Int32Array => letterTokenizer.encode(text, { addSpecialTokens: false });

/** Reasoning stands between "B" and "XYZ". */
function budget(maxTokens: number, isOpen = false): ThinkingBudget {
  return { maxTokens, startTags: ["B"], endTags: ["XYZ"], endTokens: tokensOf("XYZ"), isOpen };
}

/** What the engine gives when the model would write `text` after the prompt "pq", wherever it stands. */
async function run(text: string, thinking: ThinkingBudget, params: object = {}): Promise<string> {
  const { engine } = createFakeEngine({
    backend: { script: (context) => tokensOf(text)[context.length - 2] },
  });
  const prompt = [...tokensOf("pq")];
  const { sequences } = await collect(
    engine.generate(generationRequest(prompt, { maxTokens: text.length, ...params }, { thinking })),
  );
  await engine[Symbol.asyncDispose]();
  return sequences[0]?.text ?? "";
}

describe("a thinking budget", () => {
  test("reasoning within it is left alone, also where it ends with the last token", async () => {
    assert.equal(await run("BabcXYZdefg", budget(6)), "BabcXYZdefg");
    assert.equal(await run("BabcXYZdefg", budget(4)), "BabcXYZdefg");
    assert.equal(await run("abcdefg", budget(0)), "abcdefg");
  });

  test("reasoning beyond it is ended, and the answer goes on from there", async () => {
    assert.equal(await run("Babcdefghijk", budget(3)), "BabcXYZghijk");
    assert.equal(await run("abcdefghijk", budget(4, true)), "abcdXYZhijk");
    assert.equal(await run("Babcdefg", budget(0)), "BXYZdefg");
    assert.equal(await run("abcdefg", budget(0, true)), "XYZdefg");
  });

  test("each reasoning has its own", async () => {
    assert.equal(await run("BabXYZBabcdefgh", budget(5)), "BabXYZBabcdeXYZ".slice(0, 15));
  });

  test("with logprobs, sampling states and several sequences alike", async () => {
    const params = { logprobs: 1, presencePenalty: 0.1, n: 2 };
    assert.equal(await run("Babcdefghijk", budget(3), params), "BabcXYZghijk");
    assert.equal(await run("Babcdefghijk", budget(3), { minTokens: 12 }), "BabcXYZghijk");
  });

  test("what makes no sense is refused", () => {
    const { engine } = createFakeEngine();
    for (const thinking of [budget(-1), budget(0.5), { ...budget(1), endTokens: new Int32Array() }])
      assert.throws(() => engine.generate(generationRequest([1], {}, { thinking })), {
        code: "invalid_request",
      });
  });
});
