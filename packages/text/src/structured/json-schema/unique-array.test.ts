import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { TestRandom } from "../../testing/random.js";
import { MaskCache } from "../automaton/mask-cache.js";
import { TermGrammar } from "../automaton/matcher.js";
import { compileRules } from "../compile-rules.js";
import type { JsonObject, JsonValue } from "../grammar.js";
import { schemaGrammar } from "../testing/byte-grammar.js";
import { syntheticVocabulary } from "../testing/synthetic-vocabulary.js";
import { randomWalk } from "../testing/walk.js";

/** Values that are beginnings of each other, look like separators, or differ in type alone. */
const texts = ["", "a", "ab", "abc", ",", '","', '"', "\\", "]", "1", "null", "größe", "<", "a b", "\n"];
const numbers = [0, 1, 12, 121, -1, 0.5, 1.25, 100];
const others = [true, false, null, [], ["a"], ["a", "a"], {}, { a: 1 }, { a: [1, 1] }, [1, "a"]];
const pool: readonly JsonValue[] = [...texts, ...numbers, ...others];

function drawn<Value>(random: TestRandom, from: readonly Value[], count: number): Value[] {
  const left = [...from];
  return Array.from({ length: count }, () => left.splice(random.below(left.length), 1)[0]!);
}

function schemaOf(random: TestRandom, index: number): { schema: JsonObject; values: readonly JsonValue[] } {
  const numValues = 2 + random.below(15);
  const isRange = index % 3 === 0;
  const values = isRange
    ? Array.from({ length: numValues }, (_, at) => at - 12)
    : drawn(random, pool, numValues);
  const items = isRange
    ? { type: "integer", minimum: -12, exclusiveMaximum: numValues - 12 }
    : { enum: values };
  const minItems = random.below(numValues + 1);
  const maxItems = minItems + random.below(4);
  return { schema: { type: "array", items, uniqueItems: true, minItems, maxItems }, values };
}

describe("uniqueItems", () => {
  it("allows the arrays that ajv finds valid, and no others", () => {
    const random = new TestRandom(32);
    const ajv = new Ajv2020({ strict: false });
    const seen = { valid: 0, invalid: 0 };
    for (let index = 0; index < 15; index += 1) {
      const { schema, values } = schemaOf(random, index);
      const [allows, validate] = [schemaGrammar(schema), ajv.compile(schema)];
      for (let trial = 0; trial < 8; trial += 1) {
        const length = Math.min(values.length, Number(schema["minItems"]) + random.below(4));
        const data = drawn(random, values, length);
        if (length > 0 && trial % 3 === 0) data[random.below(length)] = data[random.below(length)]!;
        const isValid = validate(data);
        seen[isValid ? "valid" : "invalid"] += 1;
        assert.equal(allows(JSON.stringify(data)), isValid, JSON.stringify({ schema, data }));
      }
    }
    assert.ok(seen.valid > 20 && seen.invalid > 10, JSON.stringify(seen));
  });

  it("leads no walk through the masks into a dead end", () => {
    const random = new TestRandom(33);
    const ajv = new Ajv2020({ strict: false });
    const vocabulary = syntheticVocabulary(1500, 5);
    for (let index = 0; index < 5; index += 1) {
      const { schema } = schemaOf(random, index);
      const rules = compileRules({ kind: "json_schema", schema }, new Set());
      const grammar = new TermGrammar(rules, vocabulary, new MaskCache(1 << 22));
      const text = randomWalk(grammar.start(), vocabulary, random, { patience: 1000, maxTokens: 4000 });
      assert.ok(text !== undefined, `no end under ${JSON.stringify(schema)}`);
      assert.ok(ajv.validate(schema, JSON.parse(text)), `${text} under ${JSON.stringify(schema)}`);
    }
  });
});
