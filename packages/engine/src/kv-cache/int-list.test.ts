import assert from "node:assert/strict";
import { test } from "node:test";
import { IntList } from "./int-list.js";

test("shares an array until the first push, and never writes to it", () => {
  const values = Int32Array.of(1, 2, 3);
  const lists = [IntList.sharing(values), IntList.sharing(values)] as const;
  assert.equal(lists[0].values, values);
  lists[0].truncate(2);
  lists[0].push(9);
  lists[1].push(8);
  assert.deepEqual(Array.from(lists[0].slice()), [1, 2, 9]);
  assert.deepEqual(Array.from(lists[1].slice()), [1, 2, 3, 8]);
  assert.deepEqual([...values], [1, 2, 3]);
});

test("grows from nothing and past its doubling", () => {
  const list = new IntList(0);
  for (let value = 0; value < 20_000; value += 1) list.push(value);
  assert.equal(list.length, 20_000);
  assert.equal(list.at(19_999), 19_999);
  assert.ok(list.values.length < 20_000 + 4096);
  assert.throws(() => list.at(20_000), RangeError);
});
