import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fixtureCheckpoint } from "@octavo/artifacts/testing/model-fixtures";
import { LLM } from "./llm.js";

const random = (at: number): number => (at * 7 + Math.floor(at / 5) * 3) % 256;
const prompt = Int32Array.from({ length: 150 }, (_, at) => random(at));
/** Goes on in another way within a block. */
const branched = prompt.map((token, at) => (at < 125 ? token : (token + 1) % 256));

describe("a prompt found in the prefix cache gives the same bits, in chunks or whole", () => {
  for (const [name, dtype] of [
    ["gemma4", "bf16"],
    ["gemma4-small", "int8"],
    ["gemma4-moe", "f16"],
    ["llama4", "bf16"],
  ] as const) {
    test(name, async () => {
      const seen: Float32Array[] = [];
      const hooks = {
        onLogits: (_: string, __: number, ___: number, row: Float32Array) => void seen.push(row.slice()),
      };
      const options = {
        hooks,
        kvCacheDtype: dtype,
        weightCache: "off",
        kvCacheMemoryBytes: 1 << 22,
        numThreads: 1,
      } as const;
      await using whole = await LLM.load(fixtureCheckpoint(name), { ...options, enablePrefixCaching: false });
      await using chunked = await LLM.load(fixtureCheckpoint(name), {
        ...options,
        maxNumBatchedTokens: 37,
        maxNumSeqs: 2,
      });
      const logitsOf = async (
        llm: LLM,
        tokens: Int32Array,
        cachedTokens: number,
      ): Promise<Float32Array[]> => {
        seen.length = 0;
        const { usage } = await llm.generate(tokens, { temperature: 0, maxTokens: 12, ignoreEos: true });
        assert.equal(usage.cachedTokens, cachedTokens);
        assert.equal(seen.length, 12);
        return [...seen];
      };
      const [expected, expectedBranched] = [
        await logitsOf(whole, prompt, 0),
        await logitsOf(whole, branched, 0),
      ];
      assert.deepEqual(await logitsOf(chunked, prompt, 0), expected);
      assert.deepEqual(await logitsOf(chunked, prompt, 144), expected);
      assert.deepEqual(await logitsOf(chunked, branched, 112), expectedBranched);
      assert.notDeepEqual(expected[0], expectedBranched[0]);
    });
  }
});
