import assert from "node:assert/strict";
import { test } from "node:test";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { readTestConfig } from "../testing/test-gateway.js";
import { type DrainableCall, LiveTarget } from "../targets/live-target.js";
import { OpenList, type ListMember } from "./open-list.js";

test("items leave an open list in any order, once", () => {
  const list = new OpenList<ListMember & { readonly name: string }>();
  const [a, b, c] = ["a", "b", "c"].map((name) => ({ name, place: -1 }));
  assert.ok(a !== undefined && b !== undefined && c !== undefined);
  assert.equal(list.remove(a), false, "never added");
  for (const item of [a, b, c]) list.add(item);
  assert.equal(list.remove(a), true);
  assert.equal(list.remove(a), false, "a second time");
  assert.deepEqual(new Set(list.all), new Set([b, c]));
  assert.equal(list.remove(c), true);
  assert.deepEqual(list.all, [b]);
  assert.equal(list.remove(b), true);
  assert.deepEqual(list.all, []);
});

test("a target's finished calls are gone with the next young collections, not with the next full one", async () => {
  setFlagsFromString("--expose_gc");
  const gc = runInNewContext("gc") as (options?: { readonly type: "minor" }) => void;
  const { targets } = readTestConfig({
    targets: { t: { provider: "openai-compatible", url: "http://127.0.0.1:1", models: { m: {} } } },
  });
  const config = targets["t"];
  assert.ok(config !== undefined);
  const target = new LiveTarget("t", config);
  const numOpen = 32;
  const numCalls = 20_000;
  const wordsPerCall = 100;
  const run = (count: number): void => {
    const open: DrainableCall[] = [];
    for (let index = 0; index < count; index += 1) {
      const call = makeCall(wordsPerCall);
      target.begin(call);
      open.push(call);
      if (open.length > numOpen) target.end(open.splice((index * 7) % numOpen, 1)[0] ?? call);
      if (index % 500 === 0) gc({ type: "minor" });
    }
    for (const call of open) target.end(call);
  };
  run(2000);
  gc();
  const before = oldBytes();
  run(numCalls);
  assert.equal(target.outstanding, 0);
  // what every call holds is 8 bytes a word; a few that were open while the collector ran may have grown old
  const keptCalls = (oldBytes() - before) / (8 * wordsPerCall);
  assert.ok(keptCalls < numCalls / 10, `${Math.round(keptCalls)} of ${numCalls} calls have grown old`);
  await target.close();
});

function makeCall(words: number): DrainableCall & { readonly payload: readonly number[] } {
  return {
    place: -1,
    tokens: 1,
    payload: Array.from({ length: words }, (_, index) => index),
    canMove: () => false,
    moveOn: () => undefined,
  };
}

function oldBytes(): number {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space");
  assert.ok(space !== undefined);
  return space.space_used_size;
}
