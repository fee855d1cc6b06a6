import assert from "node:assert/strict";
import { test } from "node:test";
import { type FixEvidence, proposeFix, type ServeSettings } from "./propose-fix.js";

const setOf = (evidence: Partial<FixEvidence> & { cause: string }, settings: ServeSettings = {}) =>
  proposeFix({ kind: "serving", ...evidence }, settings)?.set;

test("what ran at once decides between more sequences and more cache", () => {
  assert.deepEqual(setOf({ cause: "queue", largest_batch: 4 }, { "max-num-seqs": 4 }), {
    "max-num-seqs": 16,
  });
  assert.deepEqual(
    setOf({ cause: "queue", largest_batch: 3 }, { "max-num-seqs": 64, "kv-cache-memory": 2 ** 20 }),
    { "kv-cache-memory": 2 ** 22 },
  );
});

test("a queue that one tenant fills is shared fairly, if it is not already", () => {
  const queue = { cause: "queue", largest_batch: 4, by_tenant: { large: 50, small: 9 } };
  assert.deepEqual(setOf(queue, { "max-num-seqs": 4 }), { "scheduling-policy": "fair" });
  assert.deepEqual(setOf(queue, { "max-num-seqs": 4, "scheduling-policy": "fair" }), { "max-num-seqs": 16 });
  assert.deepEqual(setOf({ ...queue, by_tenant: { a: 5, b: 5 } }, { "max-num-seqs": 4 }), {
    "max-num-seqs": 16,
  });
});

test("settings that change answers are taken back, those of tools first where tools fail", () => {
  const odd = { "chat-template": "{{ x }}", "tool-call-parser": "none" };
  assert.deepEqual(setOf({ kind: "answer", cause: "valid_tool_calls" }, odd), { "tool-call-parser": null });
  assert.deepEqual(setOf({ kind: "answer", cause: "is_json" }, odd), { "chat-template": null });
  assert.equal(setOf({ kind: "answer", cause: "is_json" }, { "tool-call-parser": "auto" }), undefined);
});

test("only what was set wrongly is set: caching that is on, and time limits that are off, are left alone", () => {
  assert.equal(setOf({ cause: "prefill" }, { "enable-prefix-caching": true }), undefined);
  assert.deepEqual(setOf({ cause: "prefill" }, { "enable-prefix-caching": false }), {
    "enable-prefix-caching": true,
  });
  assert.equal(setOf({ kind: "request", cause: "deadline_exceeded" }, { "request-timeout": 0 }), undefined);
  assert.deepEqual(
    setOf({ kind: "request", cause: "deadline_exceeded" }, { "request-timeout": 500, "ttft-timeout": 200 }),
    { "ttft-timeout": 0.8 },
  );
});
