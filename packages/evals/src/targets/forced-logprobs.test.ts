import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { asRecord } from "@octavo/protocol";
import {
  chatCompletion,
  type FakeHandler,
  replyJson,
  startFakeOpenAi,
} from "../testing/fake-openai-server.js";
import { alignPieces } from "./align-pieces.js";
import { forcedLogprobs } from "./forced-logprobs.js";
import { openAiTarget } from "./openai-target.js";

const { signal } = new AbortController();
const question = { messages: [{ role: "user", content: "Hi" }], answer: { text: "aé!" } } as const;

/** Byte 0xC3 is token 7, 0xA9 token 8. */
const texts: Readonly<Record<number, string>> = {
  1: "<u>",
  2: "Hi",
  3: "<a>",
  5: "a",
  7: "bytes:\\xc3",
  8: "\ufffd",
  9: "!",
  10: "\n",
};
const promptIds = [1, 2, 3];
const answerIds = [5, 7, 8, 9];

/** Token 8 is not the first choice at its place; the others are. */
function logprobsOf(ids: readonly number[]): unknown[] {
  return ids.map((id, index) => {
    if (index === 0) return null;
    const own = {
      [id]: { logprob: id === 8 ? -3 : -0.25, rank: id === 8 ? 4 : 1, decoded_token: texts[id] },
    };
    return id === 8 ? { 2: { logprob: -0.5, rank: 1, decoded_token: "Hi" }, ...own } : own;
  });
}

const tokenize: FakeHandler = ({ body }, response) =>
  replyJson(response, 200, {
    tokens: body["continue_final_message"] === true ? [...promptIds, ...answerIds] : promptIds,
  });
const detokenize: FakeHandler = (_, response) => replyJson(response, 200, { prompt: "aé!" });

describe("logprobs of a given answer", () => {
  it("are those of its tokens in one scored prompt", async () => {
    await using server = await startFakeOpenAi({
      "/tokenize": tokenize,
      "/detokenize": detokenize,
      "/v1/completions": ({ body }, response) =>
        replyJson(response, 200, { choices: [{ prompt_logprobs: logprobsOf(body["prompt"] as number[]) }] }),
    });
    const target = openAiTarget({ name: "t", baseUrl: server.baseUrl, model: "m" });
    const scored = await forcedLogprobs(target, question, { signal });
    assert.equal(scored.text, "aé!");
    assert.equal(scored.promptTokens, 3);
    assert.deepEqual(
      scored.tokens.map(({ id, offset, logprob, rank, topToken }) => [id, offset, logprob, rank, topToken]),
      [
        [5, 0, -0.25, 1, "a"],
        [7, 1, -0.25, 1, "\ufffd"],
        [8, 1, -3, 4, "Hi"],
        [9, 2, -0.25, 1, "!"],
      ],
    );
    const [plain, forced] = server.requests.filter(({ path }) => path === "/tokenize");
    assert.equal(plain!.body["add_generation_prompt"], true);
    assert.equal(forced!.body["add_generation_prompt"], false);
    assert.equal(forced!.body["model"], "m");
  });

  it("are those of a continued message where the server does not tokenize", async () => {
    await using server = await startFakeOpenAi({
      "/v1/chat/completions": ({ body }, response) => {
        const isWhole = body["continue_final_message"] === true;
        const usage = { prompt_tokens: 3 };
        replyJson(response, 200, {
          ...asRecord(chatCompletion("x")),
          usage,
          ...(isWhole ? { prompt_logprobs: logprobsOf([...promptIds, ...answerIds]) } : {}),
        });
      },
    });
    const target = openAiTarget({ name: "t", baseUrl: server.baseUrl, model: "m" });
    const scored = await forcedLogprobs(target, question, { signal });
    assert.deepEqual(
      scored.tokens.map(({ id, rank }) => [id, rank]),
      [
        [5, 1],
        [7, 1],
        [8, 4],
        [9, 1],
      ],
    );
  });

  it("renders tool calls as a closed message", async () => {
    await using server = await startFakeOpenAi({
      "/tokenize": ({ body }, response) =>
        replyJson(response, 200, {
          tokens: body["add_generation_prompt"] === false ? [...promptIds, 5, 9, 10] : promptIds,
        }),
      "/v1/completions": ({ body }, response) =>
        replyJson(response, 200, { choices: [{ prompt_logprobs: logprobsOf(body["prompt"] as number[]) }] }),
    });
    const target = openAiTarget({ name: "t", baseUrl: server.baseUrl, model: "m" });
    const toolCalls = [{ id: "", name: "f", arguments: "{}" }];
    const scored = await forcedLogprobs(target, { ...question, answer: { text: "", toolCalls } }, { signal });
    assert.equal(scored.text, "a!");
    const asked = server.requests.filter(({ path }) => path === "/tokenize");
    const { messages, continue_final_message: isOpen } = asked[1]!.body;
    assert.equal(isOpen, false);
    assert.deepEqual((messages as unknown[]).at(-1), {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_0", type: "function", function: { name: "f", arguments: "{}" } }],
    });
  });

  it("are refused by name where the server has none", async () => {
    await using server = await startFakeOpenAi({
      "/tokenize": tokenize,
      "/v1/completions": (_, response) => replyJson(response, 200, { choices: [{ text: "" }] }),
    });
    const target = openAiTarget({ name: "t", baseUrl: server.baseUrl, model: "m" });
    await assert.rejects(forcedLogprobs(target, question, { signal }), { code: "unsupported_parameter" });
    await using broken = await startFakeOpenAi({
      "/tokenize": (_, response) => replyJson(response, 500, { error: { message: "oops" } }),
    });
    const other = openAiTarget({ name: "t", baseUrl: broken.baseUrl, model: "m" });
    await assert.rejects(forcedLogprobs(other, question, { signal }), {
      code: "target_unreachable",
      message: /http_500: oops/,
    });
  });
});

it("tokens are found again after parts of characters", () => {
  assert.deepEqual(
    alignPieces("naïve 👍 ok", ["na", "\ufffd", "\ufffd", "ve", " \ufffd", "\ufffd", "\ufffd", " ok"]),
    [0, 2, 2, 3, 5, 5, 5, 8],
  );
  assert.deepEqual(alignPieces("abc", ["ab", "x", "c"]), [0, 2, 3]);
  assert.deepEqual(alignPieces("a\ufffdb", ["a", "\ufffd", "b"]), [0, 1, 2]);
});
