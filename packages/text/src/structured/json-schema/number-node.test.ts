import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Ajv } from "ajv";
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

  it("are the multiples of decimals that ajv finds when it allows for binary rounding", () => {
    const judge = new Ajv({ multipleOfPrecision: 6 });
    const divisors = [0.01, 0.05, 0.1, 0.3, 1.1, 2.5, 0.001, 2.34, 7];
    const known = divisors.map((multipleOf) => {
      const schema = { type: "number", multipleOf };
      return { accepts: schemaGrammar(schema), isValid: judge.compile(schema) };
    });
    const digit = fc.integer({ min: 0, max: 9 });
    const decimal = fc.tuple(fc.integer({ min: -9999, max: 9999 }), fc.array(digit, { maxLength: 3 }));
    const multiple = fc.tuple(fc.nat(), fc.integer({ min: -2000, max: 2000 }));
    fc.assert(
      fc.property(decimal, multiple, ([whole, fraction], [which, times]) => {
        const { integer, fraction: rest } = decimalOf(
          (divisors[which % divisors.length]! * 1000 * times) / 1000,
        );
        const exact = Number(`${times < 0 ? "-" : ""}${integer}.${rest.slice(0, 6)}`)
          .toFixed(6)
          .replace(/\.?0+$/, "");
        for (const text of [fraction.length === 0 ? String(whole) : `${whole}.${fraction.join("")}`, exact])
          for (const { accepts, isValid } of known) {
            const places = (text.split(".")[1] ?? "").replace(/0+$/, "").length;
            // more places than the divisor has are never written
            if (places <= 3) assert.ok(!accepts(text) || isValid(Number(text)), text);
          }
        assert.ok(known[which % divisors.length]!.accepts(exact), exact);
      }),
      { seed: 7, numRuns: 400 },
    );
  });

  it("are listed ones that a decimal divides, as decimals", () => {
    const listed = { enum: [0.07, 0.3, 0.305, -19.99, 1e21, 5e-324, 3] };
    const divided = schemaGrammar({ ...listed, multipleOf: 0.01 });
    const rest = schemaGrammar({ ...listed, not: { multipleOf: 0.01 } });
    for (const text of ["0.07", "0.3", "-19.99", "1e+21", "3"])
      assert.deepEqual([divided(text), rest(text)], [true, false], text);
    for (const text of ["0.305", "5e-324"])
      assert.deepEqual([divided(text), rest(text)], [false, true], text);
  });

  it("are multiples of decimals beside other bounds", () => {
    const cases = [
      [
        { multipleOf: 0.01 },
        ["0.07", "-19.99", "3", "12345.60", "123456789012345"],
        ["0.075", "1.001", "1e2"],
      ],
      [{ multipleOf: 0.05, minimum: 0.3 }, ["0.3", "0.35", "1000.05"], ["0.25", "0.31", "0.07"]],
    ] as const;
    for (const [schema, valid, invalid] of cases) {
      const accepts = schemaGrammar({ type: "number", ...schema });
      for (const text of valid) assert.ok(accepts(text), text);
      for (const text of invalid) assert.ok(!accepts(text), text);
    }
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
