import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { IntList } from "../kv-cache/int-list.js";
import { TokenIndex } from "./token-index.js";

/** Occurrences of the last tokens of `text`, found by exhaustive search, newest first. */
function occurrencesBySearch(
  tokens: readonly (number | undefined)[],
  start: number,
  text: readonly number[],
  contextLength: number,
): number[] {
  const occurrences: number[] = [];
  for (let occurrence = tokens.length - 1; occurrence >= start + contextLength; occurrence -= 1) {
    if (tokens[occurrence] === undefined) continue;
    const isSame = Array.from({ length: contextLength }, (_, back) => back + 1).every(
      (back) => tokens[occurrence - back] === text[text.length - back],
    );
    if (isSame) occurrences.push(occurrence);
  }
  return occurrences;
}

/** Occurrences on the chain that match; the chain also has entries whose hash collides. */
function occurrencesOf(index: TokenIndex, text: IntList, contextLength: number): number[] {
  const occurrences: number[] = [];
  for (
    let occurrence = index.newestAfter(text);
    occurrence !== undefined;
    occurrence = index.olderThan(occurrence)
  )
    if (
      index.at(occurrence) !== undefined &&
      index.matchLength(occurrence, text, contextLength) === contextLength
    )
      occurrences.push(occurrence);
  return occurrences;
}

test("finds every occurrence of a context that is kept", () => {
  const token = fc.integer({ min: 0, max: 3 });
  const action = fc.oneof(
    { weight: 20, arbitrary: token },
    { weight: 1, arbitrary: fc.constant("border" as const) },
    { weight: 1, arbitrary: fc.record({ keep: fc.nat(80) }) },
  );
  fc.assert(
    fc.property(
      fc.array(action, { maxLength: 300 }),
      fc.array(token, { minLength: 3, maxLength: 8 }),
      fc.integer({ min: 1, max: 3 }),
      (actions, text, contextLength) => {
        const capacity = 64;
        const index = new TokenIndex(contextLength, capacity);
        const tokens: (number | undefined)[] = [];
        let start = 0;
        for (const next of actions) {
          if (typeof next === "object") {
            index.forgetBefore(tokens.length - next.keep);
            start = Math.max(start, Math.min(tokens.length, tokens.length - next.keep));
            continue;
          }
          if (next === "border") index.addBorder();
          else index.add(next);
          tokens.push(next === "border" ? undefined : next);
          start = Math.max(start, tokens.length - capacity);
        }
        assert.equal(index.end, tokens.length);
        assert.equal(index.start, start);
        for (let at = start; at < tokens.length; at += 1) assert.equal(index.at(at), tokens[at]);
        assert.equal(index.at(tokens.length), undefined);
        const list = IntList.from(text);
        assert.deepEqual(
          occurrencesOf(index, list, contextLength),
          occurrencesBySearch(tokens, start, text, contextLength),
        );
      },
    ),
    { numRuns: 300, seed: 4 },
  );
});

test("matches as far back as texts agree, and not over a border", () => {
  const index = new TokenIndex(1, 1024);
  for (const token of [1, 2, 3, 4]) index.add(token);
  index.addBorder();
  for (const token of [2, 3, 4, 9]) index.add(token);
  const text = IntList.from([1, 2, 3, 4]);
  assert.equal(index.matchLength(4, text, 10), 4);
  assert.equal(index.matchLength(4, text, 2), 2);
  assert.equal(index.matchLength(8, text, 10), 3);
  index.clear();
  assert.equal(index.newestAfter(text), undefined);
});
