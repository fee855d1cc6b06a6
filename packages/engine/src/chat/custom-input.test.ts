import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { CustomInput } from "./custom-input.js";

/** Each UTF-16 unit in one of the spellings that JSON allows. */
function spell(text: string, choices: readonly number[]): string {
  const units = text.split("").map((unit, at) => {
    const choice = choices[at % choices.length]! % 3;
    if (choice === 0) return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
    if (choice === 1 && unit === "/") return "\\/";
    const code = unit.charCodeAt(0);
    // half of a pair must not meet a raw other half in two spellings
    return code >= 0xd800 && code < 0xe000 ? `\\u${code.toString(16)}` : JSON.stringify(unit).slice(1, -1);
  });
  return units.join("");
}

function decode(written: string, cuts: readonly number[]): { readonly pieces: string[]; problem?: string } {
  const input = new CustomInput();
  const ends = [...cuts.map((cut) => cut % (written.length + 1)), written.length].toSorted((a, b) => a - b);
  let from = 0;
  const pieces = ends.map((end) => {
    const piece = input.push(written.slice(from, end));
    from = end;
    return piece;
  });
  const { text, ...rest } = input.finish();
  return { pieces: [...pieces, text], ...rest };
}

describe("the input of a custom tool's call", () => {
  it("is the text of its one argument, in every spelling and for every cut", () => {
    const spaces = fc.constantFrom("", " ", "\n  ");
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.array(fc.nat(), { minLength: 1, maxLength: 9 }),
        fc.tuple(spaces, spaces, spaces, spaces),
        fc.array(fc.nat(), { maxLength: 12 }),
        (text, choices, [a, b, c, d], cuts) => {
          const written = `${a}{${b}"input"${c}:${d}"${spell(text, choices)}"${a}}${b}`;
          assert.equal((JSON.parse(written) as { input: string }).input, text);
          const { pieces, problem } = decode(written, cuts);
          assert.equal(problem, undefined);
          assert.equal(pieces.join(""), text);
          for (const piece of pieces) assert.doesNotMatch(piece, /\p{Surrogate}/u, "no pair is divided");
        },
      ),
      { numRuns: 500, seed: 7 },
    );
  });

  it("is the arguments as written, with a note, where they are of another shape", () => {
    const others = ["{}", '{"code": "x"}', '{"input": 5}', '["x"]', "", '{"inp', '{"input', "x = 1\ny"];
    for (const written of others)
      for (let cut = 0; cut <= written.length; cut++) {
        const { pieces, problem } = decode(written, [cut]);
        assert.equal(pieces.join(""), written);
        assert.match(problem ?? "", /no text "input"/);
      }
    const more = decode('{"input": "a", "mode": 1}', [9, 12]);
    assert.equal(more.pieces.join(""), "a");
    assert.match(more.problem ?? "", /more than the text/);
    const cut = decode('{"input": "a\\u00', []);
    assert.match(cut.problem ?? "", /not complete/);
    assert.equal(cut.pieces.join(""), "a\\u00");
  });

  it("keeps escapes that JSON does not have, and line breaks that it forbids", () => {
    for (const cut of [0, 12, 13, 14, 15, 16])
      assert.equal(decode('{"input": "a\\d+\n\\"b"}', [cut]).pieces.join(""), 'a\\d+\n"b');
  });
});
