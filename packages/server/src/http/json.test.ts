import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { JsonDepthGuard, maxJsonDepth } from "./json-depth.js";
import { findJsonProblem } from "./json-position.js";

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON with one piece cut out, doubled or replaced: nearly JSON, sometimes still JSON. */
const damagedJson = fc
  .tuple(
    fc.json(),
    fc.nat(),
    fc.nat({ max: 3 }),
    fc.constantFrom("", ",", "}", "]", '"', "\\", "0", "nul", "\n", " ", ":", "\u0001"),
  )
  .map(([text, at, length, insert]) => {
    const start = at % (text.length + 1);
    return text.slice(0, start) + insert + text.slice(start + length);
  });

describe("the position of a JSON error", () => {
  it("is found exactly when JSON.parse fails", () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), damagedJson, fc.string()), (text) => {
        assert.equal(findJsonProblem(text) === undefined, isJson(text));
      }),
      { numRuns: 3000, seed: 7 },
    );
  });

  it("comes after a valid prefix of JSON", () => {
    const problem = findJsonProblem('{"a": [1, 2,, 3]}');
    assert.deepEqual(problem, { offset: 12, line: 1, column: 13, message: 'expected a value, found ","' });
    assert.deepEqual(findJsonProblem('"abc\n"')?.offset, 4);
    assert.deepEqual(findJsonProblem('{"a":1}}')?.message, 'expected nothing after the value, found "}"');
    assert.deepEqual(
      findJsonProblem("{a:1}")?.message,
      "expected a key in double quotes or '}', found \"a\"",
    );
    assert.deepEqual(findJsonProblem("[1,\n 2,\n x]"), {
      offset: 9,
      line: 3,
      column: 2,
      message: 'expected a value, found "x"',
    });
  });

  it("takes time linear in the text", () => {
    const text = `["${"\\n".repeat(500_000)}", ${" ".repeat(500_000)}x`;
    assert.equal(findJsonProblem(text)?.offset, text.length - 1);
  });
});

describe("the nesting guard", () => {
  it("counts brackets outside strings only, wherever chunks end", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.array(fc.nat({ max: 20 })), (text, cuts) => {
        const guard = new JsonDepthGuard();
        const bytes = Buffer.from(text);
        let start = 0;
        for (const cut of cuts) {
          guard.push(bytes.subarray(start, start + cut));
          start += cut;
        }
        guard.push(bytes.subarray(start));
      }),
      { numRuns: 300, seed: 7 },
    );
    new JsonDepthGuard().push(Buffer.from(JSON.stringify("[".repeat(1000) + '\\"{')));
  });

  it("allows depth up to the limit", () => {
    const nested = (depth: number): Buffer => Buffer.from("[".repeat(depth) + "]".repeat(depth));
    new JsonDepthGuard().push(nested(maxJsonDepth));
    assert.throws(() => new JsonDepthGuard().push(nested(maxJsonDepth + 1)), /nests deeper than 128 levels/);
    const split = new JsonDepthGuard();
    split.push(Buffer.from("[".repeat(maxJsonDepth)));
    assert.throws(() => split.push(Buffer.from("{")), /nests deeper/);
  });
});
