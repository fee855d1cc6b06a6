import assert from "node:assert/strict";
import test from "node:test";
import * as fc from "fast-check";
import { codeInjectionDetectors, promptInjectionDetectors } from "./attacks.js";
import { partialPattern } from "./partial-pattern.js";
import { personalDataDetectors } from "./personal-data.js";
import { secretDetectors } from "./secrets.js";

/** The first place where a pattern might still match if the text went on. */
function firstOpen({ source, flags }: RegExp, text: string): number {
  const match = new RegExp(partialPattern(source), flags.replaceAll("g", "")).exec(text);
  return match?.index ?? text.length;
}

test("a pattern is open where the text ends within it", () => {
  for (const [pattern, text, open] of [
    [/abc/g, "xxab", 2],
    [/abc/g, "xxabd", 5],
    [/abc/g, "xxabc", 5],
    [/ab{2,3}c/g, "abbb", 0],
    [/ab{2,3}c/g, "abbbb", 5],
    [/(?:ab|acd)+e/g, "-abacabac", 5],
    [/(?<!\w)ab/g, "xa", 2],
    [/(?<!\w)ab/g, "-a", 1],
    [/\d{3}(?!\d)/g, "123", 0],
    [/\d{3}(?![a-z]{2}|-)/g, "123a", 0],
    [/\bfoo\b/g, "a foo", 2],
    [/\bfoo\b/g, "a foo ", 6],
    [/^foo$/gm, "x\nfo", 2],
    [/^foo$/gm, "xfo", 3],
    [/a?b/g, "a", 0],
    [/[\]a-c]{2}\u{1F600}/gu, "a]", 0],
    [/\p{L}{2}x/giu, "äé", 0],
  ] as [RegExp, string, number][])
    assert.equal(firstOpen(pattern, text), open, `${pattern} in ${JSON.stringify(text)}`);
});

test("constructs that it does not know are errors", () => {
  for (const source of ["(a)\\1", "(?i)a", "a)", "(?P<x>a)", "*a"])
    assert.throws(() => partialPattern(source), { code: "invalid_option" }, source);
});

const patterns = [
  ...personalDataDetectors,
  ...secretDetectors,
  ...promptInjectionDetectors,
  ...codeInjectionDetectors,
].map(({ pattern }) => pattern);

/** Pieces of what the patterns look for, and of what they do not. */
const pieces = [
  ..."4111 1111 1111 1111|DE89 3704 0044 0532 0130 00|max@example|.com|078-05-1120|+49 30 |123456|192.168.0.1|2001:db8::1".split(
    "|",
  ),
  ..."AKIA|ABCDEFGHIJKLMNOP|ghp_|0123456789abcdefghijABCDEFGHIJ012345|sk-|eyJhbGciOiJIUzI1NiJ9|.eyJzdWIiOiIxIn0|.c2ln".split(
    "|",
  ),
  ..."ignore |all previous |instructions|you are now |DAN|' or 1=1|; drop table |users|rm -rf /|<script>|../../|password: ".split(
    "|",
  ),
  "-----BEGIN PRIVATE KEY-----\n",
  "\n-----END PRIVATE KEY-----",
  " ",
  "\n",
  ".",
  "é",
  "x",
  "7",
];

test("what begins before the first open place is the same whatever follows", () => {
  const parts = fc.array(fc.constantFrom(...pieces), { maxLength: 6 }).map((chosen) => chosen.join(""));
  const startsBefore = (pattern: RegExp, text: string, place: number): string[] =>
    [...text.matchAll(pattern)]
      .filter(({ index }) => index < place)
      .map(({ index, 0: found }) => `${index} ${found}`);
  fc.assert(
    fc.property(parts, parts, fc.nat(40), (before, after, cut) => {
      const start = before.slice(0, Math.max(0, before.length - cut));
      const whole = before + after;
      for (const pattern of patterns) {
        const open = firstOpen(pattern, start);
        assert.deepEqual(
          startsBefore(pattern, start, open),
          startsBefore(pattern, whole, open),
          String(pattern),
        );
      }
    }),
    { numRuns: 300, seed: 7 },
  );
});
