import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { functionTarget } from "../../targets/function-target.js";
import { checkNamed } from "../table.js";
import { bedOf, testCases, rightFor, type Sent, watched } from "../testing/test-bed.js";
import { agreementWith } from "./agreement.js";
import { splitAnswer, tokenOffsets } from "./split-answer.js";

describe("collecting for the tail", () => {
  test("a server that gives no logprobs is asked without", async () => {
    const sent: Sent[] = [];
    const candidate = watched("candidate", sent, (one, body) =>
      body["logprobs"] === true
        ? { failure: { code: "http_400", httpStatus: 400, message: "logprobs are not supported" } }
        : rightFor(one),
    );
    const { observations } = await checkNamed("tail").run(bedOf(candidate), { concurrency: 1 });
    assert(observations.every(({ failureCode }) => failureCode === undefined));
    assert.equal(sent.filter(({ body }) => body["logprobs"] === true).length, 1);
  });

  const text = "one two three four five six seven eight";
  const tokens = text.split(/(?= )/).map((word) => ({ text: word, logprob: -1 }));

  test("answers are scored by place, in tokens", async () => {
    const candidate = functionTarget("c", () => ({
      text: text.replace("seven", "oops"),
      tokens: tokens.map((token) => (token.text === " seven" ? { ...token, text: " oops" } : token)),
      usage: { promptTokens: 900, completionTokens: 8, cachedTokens: 0 },
    }));
    const cases = testCases(1).map((one) => ({ ...one, expected: { outputs: [text] } }));
    const { observations } = await checkNamed("tail").run(bedOf(candidate, { cases }), {
      part_tokens: 4,
      output_edges: [6],
      part_evaluators: ["exact"],
    });
    const parts = observations[0]!.parts!;
    assert.deepEqual(
      parts.filter(({ evaluator }) => evaluator === "reference_agreement"),
      [
        { evaluator: "reference_agreement", fromToken: 0, toToken: 4, value: 1 },
        { evaluator: "reference_agreement", fromToken: 4, toToken: 6, value: 2 / 3 },
        { evaluator: "reference_agreement", fromToken: 6, toToken: 8, value: 1 },
      ],
    );
    assert.equal(parts.filter(({ evaluator }) => evaluator === "exact").length, 3);
    const slices = observations[0]!.slices!.filter(({ evaluator }) => evaluator === "reference_agreement");
    assert.deepEqual(
      slices.map(({ fromToken, toToken }) => [fromToken, toToken]),
      [
        [0, 6],
        [6, 8],
      ],
    );
    await assert.rejects(
      checkNamed("tail").run(bedOf(candidate, { cases }), { part_evaluators: ["nope"] }),
      /nope/,
    );
  });

  test("parts end at edges and cover the text, whether tokens are known or not", () => {
    for (const offsets of [tokenOffsets(text, tokens, 8), tokenOffsets(text, undefined, 8)]) {
      const parts = splitAnswer(text, offsets, 3, [4]);
      assert.equal(parts.map((part) => part.text).join(""), text);
      assert.deepEqual(
        parts.map(({ fromToken, toToken }) => [fromToken, toToken]),
        [
          [0, 3],
          [3, 4],
          [4, 7],
          [7, 8],
        ],
      );
    }
    assert.equal(tokenOffsets(text, tokens, 8).isExact, true);
    assert.equal(tokenOffsets(text, [...tokens, { text: "<|im_end|>", logprob: 0 }], 9).isExact, true);
    assert.equal(tokenOffsets(text, tokens.slice(1), 7).isExact, false);
    assert.deepEqual(splitAnswer("", tokenOffsets("", undefined, 0), 3, []), []);
  });

  test("a word that is missing stands where it should have been", () => {
    const offsets = tokenOffsets(text, tokens, 8);
    const words = agreementWith("one two 2½ three four five six seven eight nine", text, offsets)!;
    assert.deepEqual(
      words.filter(({ isThere }) => !isThere).map(({ token }) => token),
      [1, 7],
    );
    assert.deepEqual(agreementWith("", "", tokenOffsets("", undefined, 0)), []);
    assert.equal(agreementWith("a ".repeat(7_000), "a", offsets), undefined);
  });
});
