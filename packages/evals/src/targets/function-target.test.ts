import assert from "node:assert/strict";
import { it } from "node:test";
import { sampleOf } from "../evaluators/testing/sample.js";
import { functionTarget } from "./function-target.js";

const { signal } = new AbortController();

const evalCase = sampleOf({ case: { id: "7" } }).case;

it("a function answers with text or fields, and fails with what is thrown", async () => {
  const plain = await functionTarget("f", ({ id }) => `for ${id}`).answer(evalCase, {
    signal,
  });
  assert.equal(plain.text, "for 7");
  assert.equal(plain.failure, undefined);
  const full = await functionTarget("f", () => ({ text: "", finishReason: "length" })).answer(evalCase, {
    signal,
  });
  assert.equal(full.finishReason, "length");
  const thrown = await functionTarget("f", () => {
    throw new TypeError("oh");
  }).answer(evalCase, { signal });
  assert.deepEqual(thrown.failure, { code: "internal_error", httpStatus: undefined, message: "oh" });
});
