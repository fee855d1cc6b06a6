import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv } from "ajv";
import { cases } from "./families.js";
import { notInPassage } from "./grounded.js";
import { Pools } from "./pools/pools.js";
import { CaseRandom } from "./random.js";
import { notFound } from "./retrieval.js";
import { splitOf } from "./split.js";
import { type GoldenCase, type TaskName, taskNames } from "./task.js";
import type { Split } from "./split.js";

const ajv = new Ajv({ strict: false });

function take(
  task: TaskName,
  count: number,
  split: Split = "heldout",
  seed = "test",
): (GoldenCase & { readonly id: string })[] {
  const stream = cases({ task, split, seed });
  return Array.from({ length: count }, () => stream.next().value);
}

for (const task of taskNames) {
  test(`${task}: the same seed gives the same cases, another seed gives others`, () => {
    assert.deepEqual(take(task, 40), take(task, 40));
    assert.notDeepEqual(take(task, 40), take(task, 40, "heldout", "other"));
  });

  test(`${task}: the prompt ends before the answer and ids are unique`, () => {
    const drawn = take(task, 100);
    assert.equal(new Set(drawn.map(({ id }) => id)).size, drawn.length);
    for (const { messages, gold } of drawn) {
      assert.notEqual(messages.at(-1)?.role, "assistant");
      assert.ok(gold.length > 0);
    }
  });

  test(`${task}: no prompt is in both splits`, () => {
    const seen = new Set(take(task, 2000, "train").map(({ messages }) => JSON.stringify(messages)));
    for (const { messages, id } of take(task, 500)) assert.ok(!seen.has(JSON.stringify(messages)), id);
  });
}

test("closed pools are cut in two and open ones never cross", () => {
  const train = new Pools("train");
  const heldout = new Pools("heldout");
  for (const list of ["firstNames", "lastNames", "cities", "nouns", "productNouns"] as const) {
    assert.ok(heldout[list].length >= 5, list);
    assert.equal(train[list].filter((name) => heldout[list].includes(name)).length, 0, list);
  }
  const random = new CaseRandom("pools");
  for (let i = 0; i < 200; i++) {
    assert.equal(splitOf(heldout.word(random)), "heldout");
    assert.equal(splitOf(train.code(random)), "train");
  }
});

test("extraction golds are valid under their schema and their values are in the passage", () => {
  for (const { schema, gold, context, id } of take("extraction", 500)) {
    assert.ok(schema !== undefined && context !== null);
    const value: unknown = JSON.parse(gold);
    const validate = ajv.compile(schema);
    assert.ok(validate(value), `${id}: ${ajv.errorsText(validate.errors)}`);
    for (const leaf of leaves(value)) {
      if (typeof leaf === "string" || typeof leaf === "number")
        assert.ok(context.includes(String(leaf)), `${id}: ${leaf}`);
    }
  }
});

test("expected calls name an offered tool and match its parameters", () => {
  for (const { tools, expectedCalls, id } of take("tools", 500)) {
    assert.ok(tools !== undefined && expectedCalls !== undefined);
    assert.equal(new Set(tools.map((tool) => tool.function.name)).size, tools.length, id);
    for (const call of expectedCalls) {
      const tool = tools.find((offered) => offered.function.name === call.name);
      assert.ok(tool !== undefined, id);
      assert.ok(ajv.validate(tool.function.parameters, call.arguments), `${id}: ${ajv.errorsText()}`);
    }
  }
});

test("a call's arguments are in the conversation", () => {
  for (const { messages, expectedCalls, id } of take("tools", 500)) {
    const said = messages.map(({ content }) => content).join("\n");
    for (const call of expectedCalls ?? []) {
      for (const leaf of leaves(call.arguments))
        assert.ok(said.includes(String(leaf)), `${id}: ${String(leaf)}`);
    }
  }
});

test("the names and numbers of a grounded answer are in the passage, and both kinds occur", () => {
  const drawn = take("grounded", 500);
  for (const { gold, context, id } of drawn) {
    if (gold === notInPassage) continue;
    const given = gold
      .slice(0, -1)
      .split(" ")
      .slice(1)
      .filter((word) => /[A-Z0-9]/.test(word));
    for (const word of given) assert.ok(context?.includes(word), `${id}: ${word}`);
  }
  const refusals = drawn.filter(({ gold }) => gold === notInPassage).length;
  assert.ok(refusals > 75 && refusals < 250, String(refusals));
});

test("a looked-up value is in the haystack once its key is", () => {
  const stream = cases({ task: "retrieval", split: "heldout", seed: "test", contextTokens: 2048 });
  for (let i = 0; i < 50; i++) {
    const { gold, context, id } = stream.next().value;
    assert.ok(gold === notFound || context?.includes(gold), id);
  }
});

function leaves(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.flatMap(leaves);
  if (value !== null && typeof value === "object") return Object.values(value).flatMap(leaves);
  return [value];
}
