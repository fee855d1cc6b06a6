import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import test from "node:test";
import * as fc from "fast-check";
import { concurrently } from "./concurrently.js";

const { signal: never } = new AbortController();

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

test("every item is worked on once, by no more at a time than asked, whatever takes how long", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 40 }),
      fc.integer({ min: 1, max: 6 }),
      async (turns, concurrency) => {
        let numActive = 0;
        let most = 0;
        const work = async (index: number): Promise<number> => {
          most = Math.max(most, ++numActive);
          for (let turn = 0; turn < turns[index]!; turn++) await new Promise(setImmediate);
          numActive--;
          return index;
        };
        const done = await collect(concurrently(turns.keys(), concurrency, work, never));
        assert.deepEqual(
          done.toSorted((a, b) => a - b),
          [...turns.keys()],
        );
        assert.ok(most <= concurrency);
      },
    ),
    { seed: 3, numRuns: 60 },
  );
});

test("work that fails rejects the stream, and stops the rest", async () => {
  const error = new RangeError("three is too many");
  const started: number[] = [];
  const aborted: number[] = [];
  const work = async (item: number, signal: AbortSignal): Promise<number> => {
    if (item === 3) throw error;
    if (item < 3) return item;
    started.push(item);
    await sleep(60_000, undefined, { signal }).catch(() => aborted.push(item));
    return item;
  };
  await assert.rejects(collect(concurrently([1, 4, 5, 3, 6], 4, work, never)), error);
  await new Promise(setImmediate);
  assert.ok(started.includes(4) && started.includes(5));
  assert.deepEqual(aborted, started);
});

test("timers have their turn while synchronous work goes on", async () => {
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), 30);
  function* endless(): Generator<number, void, undefined> {
    for (let item = 0; ; item++) yield item;
  }
  await assert.rejects(collect(concurrently(endless(), 4, (item) => item, control.signal)), {
    name: "AbortError",
  });
  clearTimeout(timer);
});

test("a source that never answers does not hold up an abort", async () => {
  const control = new AbortController();
  async function* stuck(): AsyncGenerator<number, void, undefined> {
    yield 1;
    await new Promise(() => undefined);
  }
  await assert.rejects(
    async () => {
      for await (const item of concurrently(stuck(), 2, (one) => one, control.signal)) {
        assert.equal(item, 1);
        setImmediate(() => control.abort());
      }
    },
    { name: "AbortError" },
  );
});
