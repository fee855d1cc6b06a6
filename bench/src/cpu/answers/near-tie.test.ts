import assert from "node:assert/strict";
import { test } from "node:test";
import { alignSteps } from "./llama-server-answer.js";
import { checkAnswer, checkUnscoredAnswer, type PeerAnswer } from "./near-tie.js";

const answer: PeerAnswer = {
  prompt: [1],
  greedy: [5, 6, 7],
  top: [
    [
      [5, -0.1],
      [9, -2.4],
    ],
    [
      [6, -0.8],
      [8, -1.2],
    ],
    [
      [7, -0.1],
      [2, -3],
    ],
  ],
};

test("the same tokens pass", () => checkAnswer(answer, [5, 6, 7], [5, 6, 7]));

test("parting at a near tie passes, whatever follows", () => checkAnswer(answer, [5, 8, 99], [5, 8, 7]));

test("parting elsewhere does not", () => {
  assert.throws(() => checkAnswer(answer, [9, 6, 7], [5, 6, 7]), {
    code: "engine_failed",
    message: /step 0.*2\.30 nats/,
  });
  assert.throws(() => checkAnswer(answer, [5, 99, 7], [5, 6, 7]), { code: "engine_failed" });
});

test("a wrong choice on the peer's prefix does not, even after a near tie", () => {
  assert.throws(() => checkAnswer(answer, [5, 8, 99], [5, 8, 2]), {
    code: "engine_failed",
    message: /step 2/,
  });
});

test("steps of which the peer tells nothing are not judged", () => {
  const silent = { ...answer, top: [answer.top[0] ?? [], [], answer.top[2] ?? []] };
  checkAnswer(silent, [5, 99, 7], [5, 99, 7]);
  assert.throws(() => checkAnswer(silent, [5, 99, 7], [5, 99, 2]), { code: "engine_failed" });
});

test("llama-server's probabilities find their steps where some are left out", () => {
  const step = (id: number) => ({ id, top_logprobs: [{ id, logprob: -0.5 }] });
  assert.deepEqual(alignSteps([4, 9, 4, 7], [step(4), step(4), step(7)]), [
    [[4, -0.5]],
    [],
    [[4, -0.5]],
    [[7, -0.5]],
  ]);
});

test("a peer that tells no probabilities is held to Octavo's", () => {
  assert.doesNotThrow(() => checkUnscoredAnswer([5, 6], [0, 0.4]));
  assert.throws(() => checkUnscoredAnswer([5, 6], [0, 0.6]), {
    code: "engine_failed",
    message: /step 1.*0\.60/,
  });
  assert.throws(() => checkUnscoredAnswer([5], [Number.POSITIVE_INFINITY]), { code: "engine_failed" });
  assert.throws(() => checkUnscoredAnswer([], []), { code: "engine_failed" });
});
