import assert from "node:assert/strict";
import { test } from "node:test";
import { opTables, sharesOf } from "./op-times.js";

test("times of ops are the mean of steps, largest first, and print as a table", () => {
  const ops = sharesOf([
    [
      { op: "head", count: 2, milliseconds: 1 },
      { op: "linear", count: 10, milliseconds: 4 },
    ],
    [
      { op: "linear", count: 12, milliseconds: 2 },
      { op: "head", count: 2, milliseconds: 1 },
    ],
  ]);
  assert.deepEqual(ops, [
    { op: "linear", dispatches: 11, ms: 3, percent: 75 },
    { op: "head", dispatches: 2, ms: 1, percent: 25 },
  ]);
  const plain = { name: "tokens", unit: "tokens/s", octavo: 7 };
  assert.deepEqual(opTables([plain, { name: "decode", unit: "ms a step", octavo: 4, details: { ops } }]), [
    "decode, 4.000 ms a step",
    "  linear     11 dispatches       3.000 ms   75.0 %",
    "  head        2 dispatches       1.000 ms   25.0 %",
  ]);
});
