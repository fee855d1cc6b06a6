import assert from "node:assert/strict";
import test from "node:test";
import { KeptCases } from "./kept-cases.js";
import { sampleCase } from "./testing/sample-report.js";

test("of many cases the worst are kept, in the order in which they came", () => {
  const kept = new KeptCases(20);
  for (let index = 0; index < 5000; index += 1) kept.add(sampleCase(index));
  assert.equal(kept.numSeen, 5000);
  const numbers = kept.rows.map(({ caseId }) => Number(caseId.slice("case-".length)));
  assert.equal(numbers.length, 20);
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => a - b),
  );
  assert.ok(
    numbers.every((number) => number % 9 === 0 && number % 7 !== 0),
    "these regressed",
  );
});

test("what is kept of a case is bounded, whatever its size", () => {
  const kept = new KeptCases(1);
  kept.add(sampleCase(1, "x".repeat(10_000_000)));
  assert.ok(JSON.stringify(kept.rows).length < 200_000);
  const none = new KeptCases(0);
  none.add(sampleCase(1));
  assert.deepEqual([none.rows.length, none.numSeen], [0, 1]);
});
