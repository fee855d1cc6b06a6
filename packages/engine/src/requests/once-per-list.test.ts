import assert from "node:assert/strict";
import { test } from "node:test";
import { oncePerList } from "./once-per-list.js";

test("makes one value for a list, and another when its entries changed", () => {
  let numMade = 0;
  const count = oncePerList((list) => ({ entries: list.join(), number: (numMade += 1) }));
  const list = ["a", "b"];
  const first = count(list);
  assert.equal(count(list), first);
  assert.notEqual(count(["a", "b"]), first);
  list[1] = "c";
  assert.deepEqual(count(list), { entries: "a,c", number: 3 });
  list.push("d");
  assert.deepEqual(count(list), { entries: "a,c,d", number: 4 });
});
