import assert from "node:assert/strict";
import test from "node:test";
import { array, assert as check, constantFrom, property } from "fast-check";
import { wordDiff } from "./word-diff.js";

const without = (kind: string, before: string, after: string): string =>
  wordDiff(before, after)
    .filter((part) => part.kind !== kind)
    .map(({ text }) => text)
    .join("");

const text = array(constantFrom("a", "b", "badge", " ", "\n", ",", "{", "\u00e9", "\ud83d\ude00"), {
  maxLength: 40,
}).map((words) => words.join(""));

test("a diff without its additions is the text before, without its removals the text after", () => {
  check(
    property(text, text, (before, after) => {
      assert.equal(without("added", before, after), before);
      assert.equal(without("removed", before, after), after);
    }),
  );
});

test("a diff is as short as it can be, and names what changed", () => {
  assert.deepEqual(wordDiff("the badge reads DQD-7197.", "the badge says DQD-7198."), [
    { kind: "same", text: "the badge " },
    { kind: "removed", text: "reads" },
    { kind: "added", text: "says" },
    { kind: "same", text: " DQD-" },
    { kind: "removed", text: "7197" },
    { kind: "added", text: "7198" },
    { kind: "same", text: "." },
  ]);
  assert.deepEqual(wordDiff("same", "same"), [{ kind: "same", text: "same" }]);
  assert.deepEqual(wordDiff("", ""), []);
});

test("texts that have little in common, or are huge, are one removal and one addition", () => {
  const before = Array.from({ length: 400 }, (_, index) => `a${index}`).join(" ");
  const after = Array.from({ length: 400 }, (_, index) => `b${index}`).join(",");
  assert.deepEqual(
    wordDiff(before, after).map(({ kind }) => kind),
    ["removed", "added"],
  );
  const huge = "x y ".repeat(200_000);
  assert.deepEqual(
    wordDiff(`${huge}1`, `${huge}2`).map(({ kind }) => kind),
    ["same", "removed", "added"],
  );
});
