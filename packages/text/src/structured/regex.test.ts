import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { byteGrammar } from "./testing/byte-grammar.js";

function regexGrammar(pattern: string): (text: string) => boolean {
  return byteGrammar({ kind: "regex", pattern });
}

const patterns = [
  "abc",
  "a*b+c?",
  "(?:ab|a)(?:bc|c)",
  "[a-c]{2,4}",
  "(a|b)*abb",
  "[^a-y]+",
  "x{0}y{2}z{1,}",
  "(?<name>a)b|^c$",
  "\\d{1,3}(?:\\.\\d+)?",
  "\\w+\\s\\w+",
  "\\W\\S\\D",
  ".a.",
  "\\u0061\\x62\\u{63}",
  "[\\]\\-^a]+",
  "[\\w.-]+",
  "a|",
  "(?=.*b)[abc]{3}",
  "(?!ab)[abc]{2}",
  "a(?=b)[bc]c?",
  "(a+)+b",
  "\\p{Lu}\\p{Ll}*",
  "[äöü]+ß?",
  "\\/\\.\\$",
];

describe("regular expressions", () => {
  for (const pattern of patterns) {
    it(`match what JavaScript's engine matches: ${pattern}`, () => {
      const accepts = regexGrammar(pattern);
      const expected = new RegExp(`^(?:${pattern})$`, "u");
      const alphabet = fc.constantFrom(...Array.from("abcxyzABé1 9.-_/$^]\nßö"));
      fc.assert(
        fc.property(fc.string({ unit: alphabet, maxLength: 6 }), (text) => {
          assert.equal(accepts(text), expected.test(text), JSON.stringify(text));
        }),
        { seed: 42, numRuns: 120 },
      );
      // Texts that match are rare among random ones: those that the pattern itself suggests.
      for (const text of [
        "abc",
        "aabb",
        "abab",
        "abb",
        "cab",
        "12.5",
        "ab cd",
        "xay",
        "Aé",
        "üß",
        "/.$",
        "yyz",
        "]-^a",
        "a.b-c",
        "",
      ])
        assert.equal(accepts(text), expected.test(text), JSON.stringify(text));
    });
  }

  it("take any Unicode and nothing but UTF-8", () => {
    const accepts = regexGrammar("[^]*");
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 8 }), (text) => {
        assert.equal(accepts(text), true);
      }),
      { seed: 1, numRuns: 200 },
    );
    const one = regexGrammar("[\\u{800}-\\u{10ffff}]");
    for (const codePoint of [0x7f, 0x80, 0x7ff]) assert.equal(one(String.fromCodePoint(codePoint)), false);
    for (const codePoint of [
      0x800, 0xfff, 0x1000, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x3ffff, 0x40000, 0x10ffff,
    ])
      assert.equal(one(String.fromCodePoint(codePoint)), true, codePoint.toString(16));
  });

  it("count far without being expanded", () => {
    const accepts = regexGrammar("(?:[ab]{3}){0,2000}c");
    assert.ok(accepts(`${"aba".repeat(2000)}c`));
    assert.ok(!accepts(`${"aba".repeat(2001)}c`));
    assert.ok(!accepts(`${"aba".repeat(20)}ac`));
  });

  const refused: readonly (readonly [pattern: string, message: RegExp])[] = [
    ["(", /\( without its \)/],
    ["a)", /unmatched \)/],
    ["[a", /\[ without its \]/],
    ["*a", /quantifier with nothing/],
    ["a**", /possessive or doubled/],
    ["a{3,2}", /bounds reversed/],
    ["a{1,99999}", /more than 10000 times/],
    ["(a)\\1", /refers back/],
    ["\\k<n>", /refers back/],
    ["(?<!a)b", /looks behind/],
    ["\\bfoo", /escape \\b/],
    ["(?:a^b)+", /anchor/],
    ["(?:a(?=b))+", /lookahead inside a repetition/],
    ["(?=a)*", /repeats an assertion/],
    ["\\p{Nonsense}", /property/],
    ["[b-a]", /range reversed/],
    ["\\u{110000}", /malformed/],
    ["(?i)a", /kind that is not supported/],
    ["a$b", /something after its end/],
    ["(".repeat(300) + ")".repeat(300), /nested more than 200 deep/],
  ];
  for (const [pattern, message] of refused) {
    it(`that cannot be kept are refused: ${pattern.slice(0, 20)}`, () => {
      assert.throws(() => regexGrammar(pattern), { code: "invalid_request", message });
    });
  }
});
