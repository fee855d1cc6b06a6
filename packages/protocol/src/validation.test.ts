import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { z } from "zod";
import { chatCompletionRequest } from "./chat.js";
import { completionRequest } from "./completions.js";
import { OctavoError } from "./errors.js";
import { describeValue, parseWith } from "./validation.js";

function refusal(schema: z.ZodType, value: unknown): OctavoError {
  try {
    parseWith(schema, value);
  } catch (error) {
    assert.ok(error instanceof OctavoError);
    return error;
  }
  return assert.fail("was accepted");
}

describe("request validation", () => {
  it("names the path, what was expected and what was found", () => {
    const schema = z.object({ a: z.array(z.object({ b: z.number() })) });
    const error = refusal(schema, { a: [{ b: 1 }, { b: "x" }] });
    assert.equal(error.code, "invalid_request");
    assert.equal(error.param, "a[1].b");
    assert.equal(error.message, 'a[1].b: Invalid input: expected number, got "x"');
  });

  it("reports the branch of a union that the caller meant", () => {
    const schema = z.object({ v: z.union([z.string().min(1), z.array(z.number())]) });
    assert.equal(refusal(schema, { v: [1, "x"] }).param, "v[1]");
    assert.match(refusal(schema, { v: "" }).message, /Too small/);
    assert.match(refusal(schema, { v: 5 }).message, /expected string or array, got 5/);
  });

  it("stops at the first of millions of bad entries", () => {
    const message = (extra: object) => ({ messages: [{ role: "user", content: "a" }], ...extra });
    const bad = Array.from({ length: 4000 }, () => 0);
    const bodies: readonly (readonly [string, unknown])[] = [
      ["allowed_token_ids[0]", message({ allowed_token_ids: bad.map(() => "") })],
      ["allowed_token_ids", message({ allowed_token_ids: Array.from({ length: 262_145 }, () => 1) })],
      ["documents[0]", message({ documents: bad.slice(0, 1000) })],
      ["documents", message({ documents: bad })],
      ["logit_bias", message({ logit_bias: Object.fromEntries(bad.map((_, id) => [`x${id}`, "a"])) })],
      ["tools[0]", message({ tools: bad.slice(0, 1000) })],
      ["messages[0]", { messages: bad }],
      ["messages[0].content[0]", { messages: bad.map(() => ({ role: "user", content: bad })) }],
      [
        "messages[0].tool_calls[0]",
        { messages: bad.map(() => ({ role: "assistant", tool_calls: bad.slice(0, 1000) })) },
      ],
    ];
    for (const [param, body] of bodies) {
      const result = chatCompletionRequest.safeParse(body);
      assert.ok(!result.success);
      assert.equal(refusal(chatCompletionRequest, body).param, param);
      assert.ok(result.error.issues.length <= 8, `${param}: ${result.error.issues.length} issues`);
    }
  });

  it("takes seeds of 64 bits, as far as numbers can carry them", () => {
    const parse = (seed: unknown) => completionRequest.safeParse({ prompt: "a", seed }).success;
    for (const seed of [0, -1, 2 ** 60, 2 ** 63, -(2 ** 63)]) assert.equal(parse(seed), true, String(seed));
    for (const seed of [0.5, 2 ** 65, "1"]) assert.equal(parse(seed), false, String(seed));
  });

  it("never says much, whatever it is given", () => {
    const anything = fc.oneof(fc.anything(), fc.jsonValue());
    fc.assert(
      fc.property(
        fc.constantFrom(chatCompletionRequest, completionRequest),
        anything,
        anything,
        (schema, first, second) => {
          for (const value of [
            first,
            { messages: first, prompt: second },
            { messages: [{ role: "user", content: first }], stop: second },
          ]) {
            try {
              parseWith(schema, value);
            } catch (error) {
              assert.ok(error instanceof OctavoError, String(error));
              assert.ok(error.message.length < 600);
            }
          }
        },
      ),
      { numRuns: 500, seed: 7 },
    );
  });

  it("keeps long keys and values out of messages", () => {
    const schema = z.object({ map: z.record(z.string(), z.number()) });
    const error = refusal(schema, { map: { ["k".repeat(10_000)]: "v".repeat(10_000) } });
    assert.ok(error.message.length < 300);
  });

  it("describes values in few words", () => {
    const cases = [
      [undefined, "nothing"],
      [null, "null"],
      [[1, 2], "an array of 2"],
      [{}, "an object"],
      ["a", '"a"'],
      ["a".repeat(100), "a string of 100 characters"],
      [true, "true"],
      [1.5, "1.5"],
    ] as const;
    for (const [value, text] of cases) assert.equal(describeValue(value), text);
  });
});
