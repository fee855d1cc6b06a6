import assert from "node:assert/strict";
import type { ModelRunner } from "./model-runner.js";

/** Logits of a prompt, of the token after several that were decoded, hidden states and the tokens: equal bits. */
export async function assertSameAnswers(
  actual: ModelRunner,
  expected: ModelRunner,
  prompt: readonly number[],
): Promise<void> {
  const [ours, theirs] = [await answersOf(actual, prompt), await answersOf(expected, prompt)];
  assert.deepEqual(ours.tokens, theirs.tokens);
  assert.equal(ours.rows.length, theirs.rows.length);
  for (const [index, row] of ours.rows.entries()) {
    const { buffer = new ArrayBuffer(0) } = theirs.rows[index] ?? {};
    assert.ok(Buffer.from(row.buffer).equals(Buffer.from(buffer)), `row ${index} differs`);
  }
}

async function answersOf(
  runner: ModelRunner,
  prompt: readonly number[],
): Promise<{ readonly tokens: readonly number[]; readonly rows: readonly Float32Array[] }> {
  runner.reset();
  const logits = await runner.logits(prompt);
  runner.reset();
  const tokens = await runner.greedy(prompt, 6);
  const next = await runner.logits(tokens.slice(-1));
  runner.reset();
  const hidden = await runner.hidden(prompt.slice(0, 3));
  return { tokens, rows: [...logits, ...next, ...hidden] };
}
