import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { byteClasses } from "./automaton/byte-classes.js";
import { compileRules } from "./compile-rules.js";
import type { GrammarSpec, JsonValue } from "./grammar.js";
import type { Node } from "./node.js";

const none: ReadonlySet<string> = new Set();

function statesOf(schema: JsonValue): number | undefined {
  return compileRules({ kind: "json_schema", schema }, none).analysis?.numTableStates;
}

function multiplesOf(divisors: readonly number[]): JsonValue {
  const properties = divisors.map((multipleOf, index) => [
    `p${index}`,
    { type: "integer", multipleOf, minimum: index },
  ]);
  return { type: "object", properties: Object.fromEntries(properties) as JsonValue };
}

describe("automata of a grammar", () => {
  it("are made once for each divisor, whatever stands beside it", () => {
    assert.equal(statesOf({ type: "integer", multipleOf: 7 }), 8);
    assert.equal(statesOf(multiplesOf(Array.from({ length: 40 }, () => 900))), 901);
    assert.equal(statesOf(multiplesOf([10, 20])), 11 + 21);
    assert.equal(statesOf({ type: "number", multipleOf: 0.5 }), 1 + 3 * 5);
  });

  it("are refused beyond a bound, before there is memory for them", () => {
    const refusal = { code: "invalid_request", message: /automata of more than 16384 states/ } as const;
    const divisors = Array.from({ length: 20 }, (_, index) => 1500 + index);
    assert.throws(() => statesOf(multiplesOf(divisors)), refusal);
    const long = Array.from({ length: 256 }, (_, index) => `<${String(index).padStart(1000, "-")}`);
    const many = long.map((trigger) => trigger.slice(-100));
    for (const triggers of [long, many]) {
      const content: GrammarSpec = { kind: "literal", text: "x" };
      const tags = triggers.map((begin) => ({ begin, content, end: "" }));
      assert.throws(() => compileRules({ kind: "tagged_text", triggers, tags }, none), refusal);
    }
  });

  it("tell bytes apart where one of their states does", () => {
    const { rules } = compileRules({ kind: "json_schema", schema: multiplesOf([6, 10, 25]) }, none);
    const { classes } = byteClasses(rules);
    const tables = new Set<Int32Array>();
    const visit = (node: Node): void => {
      if (node.op === "automaton") tables.add(node.table.next);
      else if (node.op === "repeat" || node.op === "not") visit(node.item);
      else if (node.op === "sequence" || node.op === "choice" || node.op === "all") node.items.forEach(visit);
    };
    rules.forEach(visit);
    assert.equal(tables.size, 3);
    for (const next of tables) {
      for (let row = 0; row < next.length; row += 256) {
        for (let byte = 0; byte < 256; byte += 1)
          assert.equal(next[row + classes.example[classes.of[byte]!]!], next[row + byte]);
      }
    }
    assert.ok(classes.count < 200, `${classes.count} classes`);
  });

  it("multiples beyond the whole numbers that doubles represent exactly are refused, not counted", () => {
    const schema = { type: "number", multipleOf: 3.3, minimum: 1e300, maximum: 1e300 };
    assert.throws(() => statesOf(schema), { code: "invalid_request", message: /No text can satisfy/ });
  });
});
