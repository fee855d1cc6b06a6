import assert from "node:assert/strict";
import test from "node:test";
import { evaluatorTable } from "./table.js";
import { sampleOf, scoreOf } from "./testing/sample.js";

const length = 50_000;
const filledWith = (unit: string): string => unit.repeat(Math.ceil(length / unit.length));

const texts: Readonly<Record<string, string>> = {
  nothing: "",
  "one letter": filledWith("a"),
  "many words": Array.from({ length: length / 6 }, (_, index) => `w${index}`).join(" "),
  "line ends": filledWith("\n"),
  "nested JSON": filledWith('{"a":['),
  "lone surrogates": filledWith("\ud800x"),
  "invisible characters": filledWith("\u0000\u200b\u202e"),
  "code fences": filledWith("```\n"),
  "half links": filledWith("https://a.b/)"),
  citations: filledWith("[1] "),
  numbers: filledWith("1,234 "),
  operators: filledWith("const x = ((( "),
};

/** Options without which a row cannot be made. */
const options: Readonly<Record<string, object>> = {
  regex: { pattern: "(a+)+$", timeoutMs: 50 },
  latency_below: { maxMs: 1 },
  first_token_below: { maxMs: 1 },
  completion_tokens_below: { maxTokens: 1 },
  cascade: { steps: [{ evaluator: "is_json" }] },
};

test("every evaluator without a judge gives a score, a skip or a typed failure for hostile answers", async () => {
  for (const { name, needsJudge } of evaluatorTable.entries) {
    if (needsJudge) continue;
    const [evaluator] = evaluatorTable.create([{ name, options: options[name] ?? {} }]);
    for (const [kind, output] of Object.entries(texts)) {
      const sample = sampleOf({
        output,
        toolCalls: [{ name: "find", arguments: output }],
        case: {
          messages: [{ role: "user", content: output }],
          context: `[1] ${output.slice(0, 1000)}`,
          expected: {
            outputs: [output.slice(1), "x"],
            schema: { type: "array" },
            toolCalls: [{ name: "find", arguments: {} }],
          },
          tools: [{ type: "function", function: { name: "find" } }],
        },
      });
      const score = await scoreOf(evaluator!, sample);
      const what = `${name} of ${kind}`;
      if (score.status === "scored") assert.ok(score.value >= 0 && score.value <= 1, what);
      else assert.ok(score.reason !== "", what);
      if (score.status === "failed")
        assert.ok(
          ["deadline_exceeded", "payload_too_large"].includes(score.code),
          `${what}: ${score.reason}`,
        );
      assert.ok(JSON.stringify(score).length < 20_000, `${what} is repeated in its score`);
    }
  }
});
