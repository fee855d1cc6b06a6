import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { TestRandom } from "../../testing/random.js";
import { MaskCache } from "../automaton/mask-cache.js";
import { TermGrammar } from "../automaton/matcher.js";
import { compileRules } from "../compile-rules.js";
import type { JsonObject } from "../grammar.js";
import { randomSchema } from "../testing/random-schema.js";
import { schemaJudge } from "../testing/real-world/judge.js";
import { realWorldSchema } from "../testing/real-world/real-world-schema.js";
import { syntheticVocabulary } from "../testing/synthetic-vocabulary.js";
import { randomWalk } from "../testing/walk.js";

const numSchemas = 260;
const walksPerSchema = 2;
const numRealWorldSchemas = 224;

describe("random walks through the masks of generated schemas", () => {
  it("give only JSON that ajv finds valid, and come to an end", () => {
    const vocabulary = syntheticVocabulary(1500, 5);
    const random = new TestRandom(20_261_121);
    const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });
    let numFinished = 0;
    for (let index = 0; index < numSchemas; index += 1) {
      const schema: JsonObject = randomSchema(random);
      const validate = ajv.compile(schema);
      const grammar = new TermGrammar(
        compileRules({ kind: "json_schema", schema }, new Set()),
        vocabulary,
        new MaskCache(1 << 22),
      );
      for (let walk = 0; walk < walksPerSchema; walk += 1) {
        const text = randomWalk(grammar.start(), vocabulary, random);
        if (text === undefined) continue;
        numFinished += 1;
        const value: unknown = JSON.parse(text);
        assert.ok(
          validate(value),
          `${text}\nis not valid under\n${JSON.stringify(schema)}\n${JSON.stringify(validate.errors)}`,
        );
      }
    }
    assert.ok(numFinished > numSchemas * walksPerSchema * 0.7, `only ${numFinished} walks came to an end`);
  });

  it("give only JSON that ajv finds valid under schemas as people write them, formats included", () => {
    const vocabulary = syntheticVocabulary(1500, 5);
    const random = new TestRandom(7);
    let numFinished = 0;
    for (let index = 0; index < numRealWorldSchemas; index += 1) {
      const schema = realWorldSchema(random, index);
      const judge = schemaJudge(schema);
      const rules = compileRules({ kind: "json_schema", schema }, new Set());
      const grammar = new TermGrammar(rules, vocabulary, new MaskCache(1 << 22));
      const text = randomWalk(grammar.start(), vocabulary, random, { maxTokens: 1000 });
      if (text === undefined) continue;
      numFinished += 1;
      const problem = judge(JSON.parse(text));
      assert.equal(problem, undefined, `${text}\nis not valid under\n${JSON.stringify(schema)}`);
    }
    assert.ok(numFinished > numRealWorldSchemas * 0.7, `only ${numFinished} walks came to an end`);
  });
});
