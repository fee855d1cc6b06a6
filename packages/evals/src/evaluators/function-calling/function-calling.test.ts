import assert from "node:assert/strict";
import test from "node:test";
import * as fc from "fast-check";
import type { Expectation, ToolDefinition } from "../../cases/eval-case.js";
import { EvaluatorTable } from "../registry.js";
import { sampleOf, scoreOf } from "../testing/sample.js";
import { typeProblem } from "./argument-types.js";
import { bestAlignment, bestAssignment } from "./assignment.js";
import { functionCallingEvaluators } from "./function-calling-evaluators.js";

const tools: readonly ToolDefinition[] = [
  {
    type: "function",
    function: {
      name: "weather.get",
      parameters: {
        type: "object",
        properties: {
          city: { type: "string" },
          days: { type: "integer" },
          limit: { type: "number" },
          hours: { type: "array", items: { type: "integer" } },
          place: { type: "object" },
          metric: { type: "boolean" },
        },
        required: ["city"],
      },
    },
  },
  { type: "function", function: { name: "stop", parameters: { type: "object", properties: {} } } },
];

type Calls = readonly { name: string; arguments: unknown }[];

const evaluators = new EvaluatorTable(functionCallingEvaluators).create(
  functionCallingEvaluators.map(({ name }) => name),
);

/** All rows' values of an answer, and the codes of its errors. */
async function scoresOf(expected: Expectation, calls: Calls) {
  const toolCalls = calls.map((call) => ({
    name: call.name,
    arguments: typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments),
  }));
  const values: Record<string, number | string> = {};
  let codes: unknown[] = [];
  for (const evaluator of evaluators) {
    const score = await scoreOf(evaluator, sampleOf({ toolCalls, case: { tools, expected } }));
    values[evaluator.name] = score.status === "scored" ? score.value : score.status;
    if (evaluator.name === "evaluate_function_calling" && score.status === "scored") {
      assert.equal(score.passed, score.value === 1);
      codes = ((score.details?.["errors"] ?? []) as { code: string }[]).map(({ code }) => code);
    }
  }
  return { values, codes };
}

const paris = { name: "weather.get", arguments: { city: ["Paris", "Paris, France"], days: [3, ""] } };

/** Calls of one expected function, with the errors that the leaderboard's rules give. */
const single: readonly (readonly [
  what: string,
  expected: Record<string, readonly unknown[]>,
  made: unknown,
  codes: readonly string[],
])[] = [
  ["as expected", paris.arguments, { city: "Paris", days: 3 }, []],
  ["an optional one left out", paris.arguments, { city: "Paris" }, []],
  ["another accepted value", paris.arguments, { city: "Paris, France" }, []],
  ["case, spaces and marks do not count", paris.arguments, { city: "PARIS-france." }, []],
  ["a wrong string", paris.arguments, { city: "Rome" }, ["value_error_string"]],
  ["a wrong number", paris.arguments, { city: "Paris", days: 4 }, ["value_error_other"]],
  ["a number as a string", paris.arguments, { city: "Paris", days: "3" }, ["type_error_simple"]],
  ["a fraction for an integer", { city: ["a"], days: [""] }, { city: "a", days: 2.5 }, ["type_error_simple"]],
  ["an integer for a float", { city: ["a"], limit: [5] }, { city: "a", limit: 5 }, []],
  ["a boolean is no integer", { city: ["a"], days: [1] }, { city: "a", days: true }, ["type_error_simple"]],
  ["the type of an accepted value", { city: ["a"], days: ["n"] }, { city: "a", days: "n" }, []],
  ["a required one is missing", paris.arguments, { days: 3 }, ["missing_required"]],
  ["one this call needs is missing", { city: ["a"], metric: [true] }, { city: "a" }, ["missing_optional"]],
  ["one too many", paris.arguments, { city: "Paris", metric: true }, ["unexpected_parameter"]],
  [
    "an inherited name is unknown",
    paris.arguments,
    '{"city":"Paris","__proto__":1}',
    ["unexpected_parameter"],
  ],
  ["an array", { city: ["a"], hours: [[1, 2]] }, { city: "a", hours: [1, 2] }, []],
  [
    "an array in another order",
    { city: ["a"], hours: [[1, 2]] },
    { city: "a", hours: [2, 1] },
    ["value_error_array"],
  ],
  [
    "an item of another type",
    { city: ["a"], hours: [[1]] },
    { city: "a", hours: ["1"] },
    ["type_error_nested"],
  ],
  ["a variable among an array's items", { city: ["a"], hours: [["n"]] }, { city: "a", hours: ["N"] }, []],
  ["an empty array for an optional one", { city: ["a"], hours: [[1], ""] }, { city: "a", hours: [] }, []],
  [
    "an object by accepted values",
    { city: ["a"], place: [{ x: [1, 2], y: ["Q", ""] }] },
    { city: "a", place: { x: 2 } },
    [],
  ],
  ["an object of plain values", { city: ["a"], place: [{ x: 1 }] }, { city: "a", place: { x: 1 } }, []],
  [
    "an unknown key",
    { city: ["a"], place: [{ x: [1] }] },
    { city: "a", place: { x: 1, z: 1 } },
    ["value_error_object"],
  ],
  [
    "a missing key",
    { city: ["a"], place: [{ x: [1], y: [2] }] },
    { city: "a", place: { x: 1 } },
    ["value_error_object"],
  ],
  ["arguments that are no JSON", paris.arguments, '{"city": Paris}', ["invalid_arguments"]],
  ["arguments that are no object", paris.arguments, "[1]", ["invalid_arguments"]],
];

test("a call is held to the leaderboard's rules", async () => {
  for (const [what, args, made, expectedCodes] of single) {
    const toolCalls = [{ name: "weather.get", arguments: args }];
    const { values, codes } = await scoresOf({ toolCalls }, [{ name: "weather_get", arguments: made }]);
    assert.deepEqual(codes, expectedCodes, what);
    assert.equal(values["evaluate_function_calling"], expectedCodes.length === 0 ? 1 : 0, what);
  }
});

test("the parts tell where a call went wrong", async () => {
  const expected = {
    toolCalls: [{ name: "weather.get", arguments: { city: ["Paris"], days: [3], metric: [true] } }],
  };
  const { values } = await scoresOf(expected, [
    { name: "weather.get", arguments: { city: "paris", days: "3", colour: "red" } },
  ]);
  assert.deepEqual(values, {
    evaluate_function_calling: 0,
    function_name_match: 1,
    parameter_presence: 2 / 4,
    parameter_types: 1 / 2,
    parameter_values: 1 / 3,
    function_call_accuracy: 0,
    function_call_exact_match: 0,
    valid_tool_calls: 0,
  });
  const standardised = await scoresOf({ toolCalls: [paris] }, [
    { name: "weather.get", arguments: { city: "paris" } },
  ]);
  assert.equal(standardised.values["evaluate_function_calling"], 1);
  assert.equal(standardised.values["function_call_exact_match"], 0, "exactness knows no standardising");
});

test("parallel calls are matched in any order, so that as many as can be are right", async () => {
  const city = (...names: string[]) => ({ name: "weather.get", arguments: { city: names } });
  const made = (name: string) => ({ name: "weather.get", arguments: { city: name } });
  // a greedy match gives Rome to the first, which leaves the second without
  const expected = { toolCalls: [city("Rome", "Oslo"), city("Rome")] };
  const both = await scoresOf(expected, [made("Rome"), made("Oslo")]);
  assert.deepEqual([both.values["evaluate_function_calling"], both.codes], [1, []]);
  const one = await scoresOf(expected, [made("Oslo"), made("Bern")]);
  assert.equal(one.values["function_call_accuracy"], 0.5);
  const many = await scoresOf(expected, [made("Rome"), made("Oslo"), made("Rome")]);
  assert.deepEqual(many.codes, ["wrong_count"]);
  assert.equal(many.values["function_call_accuracy"], 2 / 3);
  const none = await scoresOf(expected, []);
  assert.deepEqual(none.codes, ["wrong_count", "missing_call", "missing_call"]);
  assert.equal(none.values["parameter_values"], 0);
});

test("steps are matched in order where the order counts", async () => {
  const toolCalls = [paris, { name: "stop", arguments: {} }];
  const made = [
    { name: "stop", arguments: "" },
    { name: "weather.get", arguments: { city: "Paris" } },
  ];
  assert.equal((await scoresOf({ toolCalls }, made)).values["evaluate_function_calling"], 1);
  const ordered = await scoresOf({ toolCalls, isOrderFree: false }, made);
  assert.equal(ordered.values["evaluate_function_calling"], 0);
  assert.equal(ordered.values["function_call_accuracy"], 0.5);
  const right = await scoresOf({ toolCalls, isOrderFree: false }, made.toReversed());
  assert.equal(right.values["evaluate_function_calling"], 1);
});

test("where no call is expected, none is right; without a gold nothing is scored", async () => {
  const quiet = await scoresOf({ toolCalls: [] }, []);
  assert.deepEqual(
    [
      quiet.values["evaluate_function_calling"],
      quiet.values["function_call_accuracy"],
      quiet.values["parameter_types"],
    ],
    [1, 1, "skipped"],
  );
  const eager = await scoresOf({ toolCalls: [] }, [{ name: "stop", arguments: {} }]);
  assert.deepEqual([eager.values["evaluate_function_calling"], eager.codes], [0, ["wrong_count"]]);
  const goldless = await scoresOf({}, [{ name: "stop", arguments: {} }]);
  assert.deepEqual(new Set(Object.values(goldless.values)), new Set(["skipped", 1]));
});

test("thousands of calls are counted and not compared", async () => {
  const calls = Array.from({ length: 5000 }, () => ({ name: "stop", arguments: {} }));
  const { codes } = await scoresOf({ toolCalls: [{ name: "stop", arguments: {} }] }, calls);
  assert.deepEqual(codes, ["wrong_count"]);
});

test("Python's names of types are understood, and unknown ones leave the type open", () => {
  assert.equal(typeProblem(2.5, { type: "float" }, []), undefined);
  assert.equal(typeProblem({}, { type: "dict" }, []), undefined);
  assert.equal(typeProblem([1], { type: "tuple", items: { type: "integer" } }, []), undefined);
  assert.equal(typeProblem("x", { type: "any" }, []), undefined);
  assert.equal(typeProblem("x", { type: ["integer", "string"] }, []), undefined);
  assert.match(typeProblem("x", { type: "float" }, [])?.message ?? "", /expected float, got string/);
});

const matrix = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 4 }))
  .chain(([rows, columns]) =>
    fc.array(fc.array(fc.integer({ min: 0, max: 9 }), { minLength: columns, maxLength: columns }), {
      minLength: rows,
      maxLength: rows,
    }),
  );

/** The greatest sum there is, by trying every pairing. */
function greatest(weights: readonly (readonly number[])[], isOrdered: boolean): number {
  const from = (row: number, used: readonly number[]): number => {
    if (row === weights.length) return 0;
    let best = from(row + 1, used);
    for (const [column, weight] of weights[row]!.entries()) {
      const isFree = isOrdered ? used.every((other) => other < column) : !used.includes(column);
      if (isFree) best = Math.max(best, weight + from(row + 1, [...used, column]));
    }
    return best;
  };
  return from(0, []);
}

test("assignment and alignment find the greatest sum", () => {
  fc.assert(
    fc.property(matrix, (weights) => {
      for (const [match, isOrdered] of [
        [bestAssignment, false],
        [bestAlignment, true],
      ] as const) {
        const columns = match(weights);
        const used = columns.filter((column) => column !== undefined);
        assert.equal(new Set(used).size, used.length);
        if (isOrdered)
          assert.deepEqual(
            used,
            used.toSorted((a, b) => a - b),
          );
        const sum = columns.reduce<number>(
          (all, column, row) => all + (column === undefined ? 0 : weights[row]![column]!),
          0,
        );
        assert.equal(sum, greatest(weights, isOrdered));
      }
    }),
    { seed: 11, numRuns: 300 },
  );
});
