import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { Random } from "../../testing/random.js";
import { MaskCache } from "../automaton/mask-cache.js";
import { TermGrammar } from "../automaton/matcher.js";
import { compileRules } from "../compile-rules.js";
import type { JsonObject } from "../grammar.js";
import { randomSchema } from "../testing/random-schema.js";
import { syntheticVocabulary } from "../testing/synthetic-vocabulary.js";
import { randomWalk } from "../testing/walk.js";

const numSchemas = 260;
const walksPerSchema = 2;

describe("random walks through the masks of generated schemas", () => {
  it("give only JSON that ajv finds valid, and come to an end", () => {
    const vocabulary = syntheticVocabulary(1500, 5);
    const random = new Random(20_261_121);
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
});
