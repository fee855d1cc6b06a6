import assert from "node:assert/strict";
import { test } from "node:test";
import type { SamplingParams } from "../sampling/sampling-params.js";
import { plainParams } from "../testing/fakes/engine-fixture.js";
import { FakeTokenizer } from "@octavo/text/testing/fake-tokenizer";
import { SequenceOutput } from "./sequence-output.js";
import { StopAutomaton } from "./stop-matcher.js";

const smile = Buffer.from("😀");
const tokenizer = new FakeTokenizer({
  pieces: ["Hello", " wor", "ld", "ST", "OP", "</s>", smile.subarray(0, 2), smile.subarray(2)],
  specialTokenIds: [5],
});
const [hello, wor, ld, st, op, eos, smileHead, smileTail] = [0, 1, 2, 3, 4, 5, 6, 7] as const;

function outputOf(params: Partial<SamplingParams> = {}): SequenceOutput {
  const all = { ...plainParams, ...params };
  return new SequenceOutput(
    0,
    all,
    tokenizer,
    new Int32Array(),
    all.stop.length > 0 ? new StopAutomaton(all.stop) : undefined,
  );
}

const atEos = { finishReason: "stop", stopReason: undefined, hidesToken: true } as const;
const atLength = { finishReason: "length", stopReason: undefined, hidesToken: false } as const;

test("gives increments of tokens and text, and nothing twice", () => {
  const output = outputOf();
  assert.equal(output.take(), undefined);
  output.accept(hello, undefined, undefined);
  output.accept(wor, undefined, undefined);
  assert.deepEqual(output.take(), {
    index: 0,
    text: "Hello wor",
    tokens: [hello, wor],
    logprobs: undefined,
    finishReason: undefined,
    stopReason: undefined,
  });
  output.accept(ld, undefined, atLength);
  assert.equal(output.take()?.finishReason, "length");
  assert.equal(output.take(), undefined);
});

test("never delivers half a character; an incomplete one at the end becomes U+FFFD", () => {
  const output = outputOf();
  output.accept(smileHead, undefined, undefined);
  assert.deepEqual(
    [output.take()].map((delta) => [delta?.text, delta?.tokens]),
    [["", [smileHead]]],
  );
  output.accept(smileTail, undefined, undefined);
  assert.equal(output.take()?.text, "😀");
  output.accept(smileHead, undefined, atLength);
  assert.equal(output.take()?.text, "\ufffd");
});

test("a stop string across token borders ends the sequence before any of it is seen", () => {
  for (const stop of ["STOP", "dST", "worldST"]) {
    const output = outputOf({ stop: [stop] });
    let text = "";
    for (const token of [hello, wor, ld, st]) {
      const ending = output.accept(token, undefined, undefined);
      text += output.take()?.text ?? "";
      if (ending !== undefined) break;
    }
    if (stop === "STOP") {
      assert.equal(text, "Hello world");
      assert.deepEqual(output.accept(op, undefined, undefined), {
        finishReason: "stop",
        stopReason: "STOP",
        hidesToken: false,
      });
      const delta = output.take();
      assert.deepEqual([delta?.text, delta?.tokens, delta?.stopReason], ["", [op], "STOP"]);
    } else assert.equal(text, stop === "dST" ? "Hello worl" : "Hello ");
  }
});

test("a stop string that begins within the first min_tokens and ends after them counts; one within passes", () => {
  const across = outputOf({ stop: ["STOP"], minTokens: 2 });
  assert.equal(across.accept(hello, undefined, undefined), undefined);
  assert.equal(across.accept(st, undefined, undefined), undefined);
  assert.equal(across.accept(op, undefined, undefined)?.stopReason, "STOP");
  assert.equal(across.take()?.text, "Hello");
  const within = outputOf({ stop: ["STOP"], minTokens: 2 });
  for (const token of [st, op, ld]) assert.equal(within.accept(token, undefined, undefined), undefined);
  within.accept(hello, undefined, atLength);
  assert.equal(within.take()?.text, "STOPldHello");
});

test("text after a stop string in the same token is dropped, the stop string kept on request", () => {
  const cut = outputOf({ stop: ["ell"] });
  cut.accept(hello, undefined, undefined);
  assert.equal(cut.take()?.text, "H");
  const kept = outputOf({ stop: ["ell"], includeStopStrInOutput: true });
  kept.accept(hello, undefined, undefined);
  assert.equal(kept.take()?.text, "Hell");
});

test("a stop string counts before the length does", () => {
  const output = outputOf({ stop: ["lo"] });
  assert.equal(output.accept(hello, undefined, atLength)?.stopReason, "lo");
});

test("held-back text is delivered when the sequence ends otherwise", () => {
  for (const ending of [atEos, atLength]) {
    const output = outputOf({ stop: ["STOP!"] });
    output.accept(st, undefined, undefined);
    assert.equal(output.take()?.text, "");
    output.accept(ending === atEos ? eos : op, undefined, ending);
    assert.equal(output.take()?.text, ending === atEos ? "ST" : "STOP");
  }
});

test("the first min_tokens tokens cannot stop the sequence by their text", () => {
  const output = outputOf({ stop: ["lo", "ld"], minTokens: 3 });
  for (const token of [hello, wor, ld]) assert.equal(output.accept(token, undefined, undefined), undefined);
  assert.equal(output.accept(ld, undefined, undefined)?.stopReason, "ld");
  assert.equal(output.take()?.text, "Hello world");
});

test("the token that ends a sequence is not in the text unless requested", () => {
  const hidden = outputOf();
  hidden.accept(ld, undefined, atEos);
  assert.deepEqual(
    [hidden.take()].map((delta) => [delta?.text, delta?.tokens]),
    [["", [ld]]],
  );
  const shown = outputOf({ skipSpecialTokens: false });
  shown.accept(eos, undefined, { ...atEos, hidesToken: false });
  assert.equal(shown.take()?.text, "</s>");
});

test("an aborted sequence ends with what it had", () => {
  const output = outputOf({ stop: ["STOP"] });
  output.accept(hello, undefined, undefined);
  output.accept(st, undefined, undefined);
  output.end("abort");
  const delta = output.take();
  assert.deepEqual([delta?.text, delta?.finishReason], ["HelloST", "abort"]);
});
