import { z } from "zod";
import { verdict } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";
import { findJson, readFencedJson, readJson } from "./read-json.js";
import { schemaCheck } from "./schema-validator.js";

const fenced = z.boolean().default(false).describe("Reads the first code block where there is one.");

const schemaOption = z.record(z.string(), z.unknown()).optional();

export const jsonEvaluators: readonly EvaluatorEntry[] = [
  defineEvaluator({
    name: "is_json",
    description: "The whole output is one JSON value.",
    options: z.strictObject({ fenced }),
    score({ answer }, options) {
      const read = options.fenced ? readFencedJson(answer.text) : readJson(answer.text);
      return "value" in read ? verdict(true) : verdict(false, `not JSON: ${read.problem}`);
    },
  }),
  defineEvaluator({
    name: "contains_json",
    description:
      "A JSON object or array stands somewhere in the output, one that a schema allows where it is given.",
    options: z.strictObject({ schema: schemaOption }),
    create({ schema }) {
      const check = schema === undefined ? undefined : schemaCheck(schema);
      return {
        score({ answer }) {
          let problem: string | undefined;
          const read = findJson(answer.text, (value) => (problem = check?.(value)) === undefined);
          if ("value" in read) return verdict(true);
          return verdict(false, problem ?? read.problem);
        },
      };
    },
  }),
  defineEvaluator({
    name: "json_schema",
    description: "The output is JSON that the case's schema, or one given as an option, allows.",
    inputs: ["output", "schema"],
    options: z.strictObject({ schema: schemaOption, fenced }),
    create(options) {
      if (options.schema !== undefined) schemaCheck(options.schema);
      return {
        inputs: options.schema === undefined ? ["output", "schema"] : ["output"],
        score(sample) {
          const schema = options.schema ?? sample.case.expected.schema ?? {};
          const check = schemaCheck(schema);
          const { text } = sample.answer;
          const read = options.fenced ? readFencedJson(text) : readJson(text);
          if (!("value" in read)) return verdict(false, `not JSON: ${read.problem}`);
          const problem = check(read.value);
          return verdict(problem === undefined, problem);
        },
      };
    },
  }),
];
