import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import { ggufPreTokenizer } from "../read/gguf-pre-tokenizers.js";
import { TokenizerPattern } from "./pattern.js";

function matches(source: string, text: string): string[] {
  const found: string[] = [];
  new TokenizerPattern(source).forEachMatch(text, (start, end) => found.push(text.slice(start, end)));
  return found;
}

describe("TokenizerPattern", () => {
  it("reads Oniguruma's syntax", () => {
    const cases: readonly [string, string, readonly string[]][] = [
      ["a|ab|abc", "abc", ["a"]],
      ["(?:ab|a)(?=c|$)", "abc a", ["ab", "a"]],
      ["^\\w+$", "one\ntwo", ["one", "two"]],
      ["\\A\\w|\\w\\z", "abc", ["a", "c"]],
      ["\\w\\Z", "ab\n", ["b"]],
      ["a{,2}b", "aaab", ["aab"]],
      ["a{2}", "aaaaa", ["aa", "aa"]],
      ["a{x}", "a{x}", ["a{x}"]],
      ["\\p{N}{1,3}+", "1234567", ["1234567"]],
      ["a+?b|a++a", "aab aa", ["aab"]],
      ["(?>a*)a|b", "aaab", ["b"]],
      ["(?i)straSSe|(?-i)X", "STRASSE x X", ["STRASSE", "X"]],
      ["(?i:k)", "kK\u212a", ["k", "K", "\u212a"]],
      ["a(?i)b|c", "aB aC c", ["aB", "aC"]],
      ["(?m:.)+", "a\nb", ["a\nb"]],
      ["(?<name>a)(?<!ba)(?<=a)b?", "ab bab", ["ab"]],
      ["[^]a-c&&[^b]]+", "xabcd", ["x", "b", "d"]],
      ["[\\]\\-a-]+", "a-]b", ["a-]"]],
      ["[a[bc]&&[^c]]", "abc", ["a", "b"]],
      ["\\x41\\x{1F600}\\u00e9\\t", "A😀é\t", ["A😀é\t"]],
      ["\\h+", "xyzBEEF", ["BEEF"]],
      ["\\R", "a\r\nb\nc\u2028", ["\r\n", "\n", "\u2028"]],
      ["\\s", "\u0085\ufeff\u00a0", ["\u0085", "\u00a0"]],
      ["(?x) a b # comment\n c", "abc", ["abc"]],
      ["a(?#note)b", "ab", ["ab"]],
      ["\\p{L}\\p{^L}\\P{L}", "a12", ["a12"]],
      ["[[:upper:][:digit:]]+", "aB1c", ["B1"]],
      ["(?:a|b)*?c", "abac", ["abac"]],
      ["(?:ab){2,3}", "ababababab", ["ababab", "abab"]],
      ["x*", "axxb", ["", "xx", ""]],
    ];
    for (const [source, text, expected] of cases) assert.deepEqual(matches(source, text), expected, source);
  });

  it("sees characters beyond the BMP whole", () => {
    assert.deepEqual(matches(".", "a😀b"), ["a", "😀", "b"]);
    assert.deepEqual(matches("[^a]+b", "😀😀b"), ["😀😀b"]);
    assert.deepEqual(matches("[^a]+😀", "x😀😀"), ["x😀😀"]);
    assert.deepEqual(matches("(?<=😀)b", "😀b"), ["b"]);
  });

  it("ends a match that would take for ever", () => {
    const isTooMuch = (error: unknown): boolean =>
      error instanceof OctavoError && error.code === "invalid_request" && /backtrack/.test(error.message);
    for (const source of ["(?:a+)+b", "(?:a|a)*b", "(?:a*)*b", "(?:a|aa)+$"]) {
      assert.throws(() => matches(source, `${"a".repeat(60)}!`), isTooMuch, source);
    }
    assert.throws(() => matches("(?:ab?)*c", "a".repeat(2_000_000)), isTooMuch);
    const pattern = new TokenizerPattern("(?:a+)+b|c");
    assert.throws(() => pattern.forEachMatch("a".repeat(60), () => {}), isTooMuch);
    const found: number[] = [];
    pattern.forEachMatch("cac", (start) => found.push(start));
    assert.deepEqual(found, [0, 2], "the pattern works after a failure");
  });

  it("stays within its budget with published patterns on hostile runs", () => {
    const runs = [
      " ",
      "a",
      "A",
      "7",
      "!",
      "\n",
      "\r\n",
      "\t ",
      "\u0301",
      "字",
      "😀",
      "aB",
      "a\u0301",
      "' ",
      "'s",
      " a",
      "\u200d",
      "ก",
      "-a",
      ".\n",
    ];
    const names = [
      "llama-bpe",
      "qwen2",
      "qwen35",
      "gpt-2",
      "gpt-4o",
      "tekken",
      "deepseek-v3",
      "deepseek-llm",
      "deepseek-coder",
      "falcon",
      "starcoder",
      "bailingmoe",
      "seed-coder",
      "bloom",
      "default",
    ];
    for (const name of names) {
      for (const source of ggufPreTokenizer(name)!.patterns) {
        const pattern = new TokenizerPattern(source);
        for (const run of runs) {
          const text = `${run.repeat(20_000)}x`;
          let end = 0;
          pattern.forEachMatch(text, (start, stop) => {
            assert.ok(start >= end);
            end = stop;
          });
        }
      }
    }
  });
});
