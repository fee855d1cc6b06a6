import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LlmSpan } from "../span/llm-span.js";
import { bareSpan, fullSpan } from "../testing/example-spans.js";
import { contentCharacters, WaitingSpans } from "./waiting-spans.js";

function spanOf(characters: number): LlmSpan {
  const prompts = ["x".repeat(characters)];
  const content = {
    systemInstructions: [],
    inputMessages: [],
    outputMessages: [],
    toolDefinitions: [],
    prompts,
  };
  return { ...bareSpan, content };
}

describe("spans that wait", () => {
  it("are bounded in number and in characters, those under way included", () => {
    const waiting = new WaitingSpans({ maxSpans: 4, maxCharacters: 100 });
    assert.ok(waiting.add(spanOf(1000)), "one is taken whatever its size");
    assert.ok(!waiting.add(spanOf(1)));
    assert.equal(waiting.take(10).length, 1);
    assert.ok(!waiting.add(spanOf(1)), "what is under way is in memory too");
    waiting.settle();
    assert.ok(waiting.add(spanOf(60)) && waiting.add(spanOf(40)));
    assert.ok(!waiting.add(spanOf(1)));
    assert.ok(waiting.add(bareSpan) && waiting.add(bareSpan) && !waiting.add(bareSpan));
    assert.equal(waiting.size, 4);
    assert.equal(waiting.take(1).length, 1);
    assert.deepEqual([waiting.size, waiting.numWaiting], [4, 3]);
    assert.equal(waiting.clear(), 3);
    waiting.settle();
    assert.equal(waiting.size, 0);
    assert.ok(waiting.add(spanOf(100)), "nothing is left of what was dropped");
  });

  it("count every part of what was captured", () => {
    assert.equal(contentCharacters(bareSpan), 0);
    const { content } = fullSpan;
    assert.ok(content !== undefined);
    const texts = JSON.stringify(content).length;
    const counted = contentCharacters(fullSpan);
    assert.ok(counted > 0 && counted < texts, `${counted} of ${texts}`);
  });
});
