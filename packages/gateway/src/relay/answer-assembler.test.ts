import assert from "node:assert/strict";
import test from "node:test";
import { asObjects, asRecord, type JsonFields } from "@octavo/protocol";
import { AnswerAssembler, answerChunks } from "./answer-assembler.js";
import { Continuation } from "./continuation.js";

const calls = [
  { id: "a", type: "function", function: { name: "f", arguments: '{"q": 1}' } },
  { id: "b", type: "custom", custom: { name: "python", input: "print(1)\n" } },
];

/** Each call as a first piece with its name, and pieces of its text. */
const deltas: readonly JsonFields[] = [
  { content: "Hm." },
  { tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "f", arguments: "" } }] },
  { tool_calls: [{ index: 0, function: { arguments: '{"q"' } }] },
  { tool_calls: [{ index: 0, function: { arguments: ": 1}" } }] },
  { tool_calls: [{ index: 1, id: "b", type: "custom", custom: { name: "python", input: "" } }] },
  { tool_calls: [{ index: 1, custom: { input: "print(" } }] },
  { tool_calls: [{ index: 1, custom: { input: "1)\n" } }] },
];
const chunkOf = (delta: JsonFields): JsonFields => ({
  id: "x",
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason: null }],
});

function messageOf(chunks: readonly JsonFields[]): JsonFields {
  const assembler = new AnswerAssembler();
  for (const chunk of chunks) assembler.add(chunk);
  return asRecord(asObjects(assembler.finish()["choices"])[0]?.["message"]);
}

test("a stream's calls, of functions and of custom tools, are those of the answer", () => {
  const message = messageOf(deltas.map(chunkOf));
  assert.deepEqual([message["content"], message["tool_calls"]], ["Hm.", calls]);
  const again = answerChunks({ object: "chat.completion", choices: [{ index: 0, message }] });
  assert.deepEqual(messageOf(again)["tool_calls"], calls);
});

test("a stream that another target continues has every call once, wherever the first one failed", () => {
  for (let failed = 1; failed <= deltas.length; failed++) {
    const continuation = new Continuation(1);
    const sent: JsonFields[] = [];
    const push = (delta: JsonFields): void => {
      const part = continuation.take({ raw: undefined, json: chunkOf(delta) });
      if (part?.json !== undefined) sent.push(part.json);
    };
    for (const delta of deltas.slice(0, failed)) push(delta);
    continuation.restart();
    for (const delta of deltas) push(delta);
    assert.deepEqual(messageOf(sent)["tool_calls"], calls, `failed after ${failed}`);
  }
});
