import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type { FinishReason, GenerationEvent } from "../api.js";
import { plainServingRecord } from "../testing/fakes/serving-record.js";
import { Generation } from "./generation.js";

function delta(index: number, text: string, token: number, finishReason?: FinishReason): GenerationEvent {
  return {
    kind: "delta",
    deltas: [
      { index, text, tokens: [token], logprobs: undefined, finishReason, stopReason: finishReason && token },
    ],
  };
}

const done: GenerationEvent = {
  kind: "done",
  usage: { promptTokens: 2, completionTokens: 4, cachedTokens: 0 },
  record: plainServingRecord,
};

function generationOf(events: readonly (GenerationEvent | Error)[]): {
  generation: Generation;
  state: { starts: number; left: boolean };
} {
  const state = { starts: 0, left: false };
  const stream = async function* (): AsyncGenerator<GenerationEvent> {
    let complete = false;
    try {
      for (const event of events) {
        if (event instanceof Error) throw event;
        yield await Promise.resolve(event);
      }
      complete = true;
    } finally {
      state.left = !complete;
    }
  };
  const generation = new Generation(() => {
    state.starts++;
    return Promise.resolve({ requestId: "r", promptTokens: Int32Array.of(1, 2), events: stream() });
  });
  return { generation, state };
}

const twoSequences = [
  delta(1, "x", 7),
  delta(0, "a", 5),
  delta(0, "b", 6, "stop"),
  delta(1, "y", 8, "length"),
  done,
];

describe("Generation", () => {
  test("awaited, gives the sequences in order", async () => {
    const { generation, state } = generationOf(twoSequences);
    assert.equal(state.starts, 0);
    const result = await generation;
    assert.equal(result.text, "ab");
    assert.deepEqual(
      result.sequences.map(({ index, text, tokens, finishReason, stopReason }) => [
        index,
        text,
        tokens,
        finishReason,
        stopReason,
      ]),
      [
        [0, "ab", [5, 6], "stop", 6],
        [1, "xy", [7, 8], "length", 8],
      ],
    );
    assert.deepEqual(result.usage, { promptTokens: 2, completionTokens: 4, cachedTokens: 0 });
    assert.equal(await generation.result(), result);
    assert.equal(state.starts, 1);
  });

  test("iterated, gives each delta, and the whole afterwards", async () => {
    const { generation, state } = generationOf(twoSequences);
    const texts: string[] = [];
    for await (const { index, text } of generation) texts.push(`${index}${text}`);
    assert.deepEqual(texts, ["1x", "0a", "0b", "1y"]);
    assert.equal((await generation).text, "ab");
    assert.equal(state.starts, 1);
    assert.throws(() => generation[Symbol.asyncIterator](), OctavoError);
  });

  test("can be awaited while it is iterated", async () => {
    const { generation } = generationOf(twoSequences);
    const stream = generation[Symbol.asyncIterator]();
    const result = generation.result();
    while ((await stream.next()).done !== true);
    assert.equal((await result).text, "ab");
  });

  test("left early, closes the engine's stream and rejects the result", async () => {
    const { generation, state } = generationOf(twoSequences);
    for await (const { text } of generation) if (text === "a") break;
    assert.equal(state.left, true);
    await assert.rejects(generation.result(), { code: "request_cancelled" });
  });

  test("left before its first step, rejects the result too", async () => {
    const generation = new Generation(() => assert.fail("it was not to begin"));
    const stream = generation[Symbol.asyncIterator]();
    await stream.return();
    await assert.rejects(generation.result(), { code: "request_cancelled" });
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
  });

  test("passes a failure to the reader and to the awaiting caller", async () => {
    const failure = new OctavoError("engine_failed", "gone");
    const { generation } = generationOf([delta(0, "a", 5), failure]);
    await assert.rejects(async () => {
      for await (const piece of generation) assert.equal(piece.text, "a");
    }, failure);
    await assert.rejects(generation.result(), failure);
  });

  test("a stream without an end is a failure", async () => {
    const { generation } = generationOf([delta(0, "a", 5)]);
    await assert.rejects(generation.result(), { code: "engine_failed" });
  });
});
