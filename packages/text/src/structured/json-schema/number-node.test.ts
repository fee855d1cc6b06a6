import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { schemaGrammar } from "../testing/byte-grammar.js";
import { decimalOf } from "./decimal.js";

const bound = fc.oneof(
  fc.integer({ min: -1200, max: 1200 }),
  fc.integer({ min: -120_000, max: 120_000 }).map((value) => value / 100),
  fc.constantFrom(0, 0.001, -0.5, 1e6, 99.99, 100),
);

describe("numbers within bounds", () => {
  it("are exactly those that the bounds allow", () => {
    fc.assert(
      fc.property(
        bound,
        bound,
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        fc.array(
          fc.oneof(
            fc.integer({ min: -1300, max: 1300 }),
            fc.integer({ min: -130_000, max: 130_000 }).map((value) => value / 100),
          ),
          {
            minLength: 12,
            maxLength: 12,
          },
        ),
        (first, second, strictBelow, strictAbove, isInteger, values) => {
          const [low, high] = [Math.min(first, second), Math.max(first, second)];
          const isEmpty = isInteger
            ? (strictBelow ? Math.floor(low) + 1 : Math.ceil(low)) >
              (strictAbove ? Math.ceil(high) - 1 : Math.floor(high))
            : low === high && (strictBelow || strictAbove);
          const schema = {
            type: isInteger ? "integer" : "number",
            [strictBelow ? "exclusiveMinimum" : "minimum"]: low,
            [strictAbove ? "exclusiveMaximum" : "maximum"]: high,
          };
          if (isEmpty) {
            assert.throws(() => schemaGrammar(schema), /No text/);
            return;
          }
          const accepts = schemaGrammar(schema);
          for (const value of [...values, low, high, low + 1, high - 1]) {
            const text = String(value);
            if (/e/.test(text) || (text.split(".")[1] ?? "").length > 3) continue;
            const isIn =
              (strictBelow ? value > low : value >= low) &&
              (strictAbove ? value < high : value <= high) &&
              (!isInteger || Number.isInteger(value));
            assert.equal(accepts(text), isIn, `${text} under ${JSON.stringify(schema)}`);
            if (!isInteger && !text.includes("."))
              assert.equal(accepts(`${text}.0`), isIn, `${text}.0 under ${JSON.stringify(schema)}`);
          }
        },
      ),
      { seed: 5, numRuns: 150 },
    );
  });

  it("come from the shortest decimals of their bounds", () => {
    const cases: readonly (readonly [number, string, string])[] = [
      [0, "0", ""],
      [-12.5, "12", "5"],
      [1e21, "1000000000000000000000", ""],
      [1.5e-7, "0", "00000015"],
      [123_456.789, "123456", "789"],
    ];
    for (const [value, integer, fraction] of cases) assert.deepEqual(decimalOf(value), { integer, fraction });
  });
});
