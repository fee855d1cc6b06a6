import assert from "node:assert/strict";
import test from "node:test";
import * as fc from "fast-check";
import type { ByteSource } from "./byte-source.js";
import { readJsonArray } from "./json-array.js";
import { textSource } from "./testing/sources.js";

async function values(source: ByteSource, limitBytes?: number): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const { value } of readJsonArray(source, limitBytes)) found.push(value);
  return found;
}

test("any array reads back as it was, whatever the pieces and the layout", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 3 }),
      fc.constantFrom(undefined, 2),
      async (array, pieces, indent) => {
        const text = `\uFEFF ${JSON.stringify(array, undefined, indent)}\n`;
        assert.deepEqual(await values(textSource(text, pieces)), JSON.parse(JSON.stringify(array)));
      },
    ),
    { seed: 5, numRuns: 200 },
  );
});

const bad: readonly [text: string, says: RegExp][] = [
  ["", /cases\.json ends inside its array/],
  ["{}", /cases\.json is no JSON array/],
  ["[1, 2", /cases\.json ends inside its array, after element 1/],
  ["[1,]", /cases\.json element 2 is not JSON/],
  ["[,1]", /element 1 is not JSON/],
  ["[1] 2", /goes on after its array/],
  ["[1}]", /element 1 is not JSON/],
  ['["a\\"]', /ends inside its array/],
];
for (const [text, says] of bad) {
  test(`refused: ${text || "nothing"}`, async () => {
    await assert.rejects(values(textSource(text, [2], "cases.json")), says);
  });
}

test("elements are bounded, and only one is in memory", async () => {
  await assert.rejects(
    values(textSource(`["${"x".repeat(100)}"]`, [8], "cases.json"), 50),
    /element 1 is longer than 50 bytes/,
  );
  let produced = 0;
  let consumed = 0;
  const source: ByteSource = {
    path: "long.json",
    async *bytes() {
      yield Buffer.from("[0");
      while (produced < 20_000) {
        produced++;
        assert.ok(produced - consumed <= 1, `${produced - consumed} elements ahead`);
        yield await Promise.resolve(Buffer.from(`,${produced}`));
      }
      yield Buffer.from("]");
    },
  };
  for await (const { value } of readJsonArray(source)) assert.equal(value, consumed++);
  assert.equal(consumed, 20_001);
});
