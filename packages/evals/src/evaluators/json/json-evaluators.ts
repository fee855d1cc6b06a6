import { z } from "zod";
import { verdict } from "../outcomes.js";
import { defineEvaluator, noOptions, type EvaluatorEntry } from "../registry.js";
import { findJson, readFencedJson, readJson } from "./read-json.js";
import { schemaCheck } from "./schema-validator.js";

const fenced = z.boolean().default(false).describe("Reads the first code block where there is one.");

export const jsonEvaluators: readonly EvaluatorEntry[] = [
  defineEvaluator({
    name: "is_json",
    description: "The whole output is one JSON value.",
    inputs: ["output"],
    output: "pass_fail",
    options: z.strictObject({ fenced }),
    create: (options) => ({
      score({ answer }) {
        const read = options.fenced ? readFencedJson(answer.text) : readJson(answer.text);
        return "value" in read ? verdict(true) : verdict(false, `not JSON: ${read.problem}`);
      },
    }),
  }),
  defineEvaluator({
    name: "contains_json",
    description: "A JSON object or array stands somewhere in the output.",
    inputs: ["output"],
    output: "pass_fail",
    options: noOptions,
    create: () => ({
      score({ answer }) {
        const read = findJson(answer.text);
        return "value" in read ? verdict(true) : verdict(false, read.problem);
      },
    }),
  }),
  defineEvaluator({
    name: "json_schema",
    description: "The output is JSON that the case's schema, or one given as an option, allows.",
    inputs: ["output", "schema"],
    output: "pass_fail",
    options: z.strictObject({ schema: z.record(z.string(), z.unknown()).optional(), fenced }),
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
