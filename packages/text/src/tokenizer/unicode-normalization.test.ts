import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { normalizeUnicode, type NormalizationForm } from "./unicode-normalization.js";

const forms: readonly NormalizationForm[] = ["NFC", "NFD", "NFKC", "NFKD"];

/** Numbers in [0, bound), always the same (a linear congruential generator). */
function numbers(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

const everyCodePoint = Array.from({ length: 0x110000 }, (_, code) => code).filter(
  (code) => code < 0xd800 || code > 0xdfff,
);
/** Characters that normalisation changes, moves or joins. */
const lively = everyCodePoint
  .map((code) => String.fromCodePoint(code))
  .filter((text) => /\p{M}/u.test(text) || forms.some((form) => text.normalize(form) !== text));
const joining = Array.from(
  "\u1100\u1161\u11a8\u09c7\u09be\u{16d63}\u{16d67}\u{113c2}\uff9e\u0345\u0334\u0f71\u0f77",
);

describe("normalizeUnicode", () => {
  it("gives what the platform gives, for every character beside marks", () => {
    for (const form of forms) {
      for (let start = 0; start < everyCodePoint.length; start += 300) {
        const text = everyCodePoint
          .slice(start, start + 300)
          .map((code) => `\u0334${String.fromCodePoint(code)}\u0345\u0301`)
          .join("");
        assert.equal(normalizeUnicode(text, form), text.normalize(form), `${form} ${start}`);
      }
    }
  });

  it("gives what the platform gives, for random texts", () => {
    const random = numbers(7);
    const pools = [
      lively,
      joining,
      [...lively.slice(0, 2000), "a", "b", " ", "\u4e00", "\uac00"],
      ["a", "é", " ", "\ud800", "\u0301"],
    ];
    for (let round = 0; round < 400; round += 1) {
      const pool = pools[round % pools.length]!;
      const length = 1 + random(1200);
      const text = Array.from({ length }, () => pool[random(pool.length)]!).join("");
      for (const form of forms)
        assert.equal(normalizeUnicode(text, form), text.normalize(form), `${form} in round ${round}`);
    }
  });

  it("never hands the platform a long stretch without a boundary", (test) => {
    const platform = test.mock.method(String.prototype, "normalize");
    for (const hostile of ["a" + "\u0345\u0334".repeat(50_000), "\uff9e\u0334".repeat(50_000) + "b"]) {
      for (const text of [hostile, `words ${hostile} words`, "\u{16d67}".repeat(50_000)]) {
        for (const form of forms) {
          platform.mock.resetCalls();
          normalizeUnicode(text, form);
          for (const { this: given } of platform.mock.calls)
            assert.ok(String(given).length <= 300, "a stretch was passed on");
        }
      }
    }
  });
});
