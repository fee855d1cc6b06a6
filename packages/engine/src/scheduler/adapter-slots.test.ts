import assert from "node:assert/strict";
import { test } from "node:test";
import { BlockPool } from "../kv-cache/block-pool.js";
import { Scheduler } from "./scheduler.js";
import { Sequence, type SequenceAdapter, type SequenceGroup } from "./sequence.js";

const [a, b, c] = ["a", "b", "c"].map((name, id): SequenceAdapter => ({ name, id }));

/** A scheduler whose sequences go on until `finish`. */
class Bench {
  readonly scheduler: Scheduler;
  #numGroups = 0;

  constructor(maxLoras: number) {
    this.scheduler = new Scheduler(new BlockPool(256, 4), {
      maxNumSeqs: 16,
      maxNumBatchedTokens: 64,
      enablePrefixCaching: false,
      enableChunkedPrefill: true,
      longPrefillTokenThreshold: 0,
      policy: "fcfs",
      maxLoras,
    });
  }

  add(adapter?: SequenceAdapter): Sequence {
    const sequences: Sequence[] = [];
    const order = this.#numGroups++;
    const group: SequenceGroup = {
      requestId: `r${order}`,
      order,
      priority: 0,
      cacheSalt: undefined,
      adapter,
      sequences,
    };
    sequences.push(new Sequence(group, 0, Int32Array.of(1, 2, 3)));
    this.scheduler.add(sequences[0]!);
    return sequences[0]!;
  }

  /** Runs a step; which of the sequences run now. */
  step(...sequences: readonly Sequence[]): boolean[] {
    for (const sequence of this.scheduler.schedule().sequences) {
      this.scheduler.commit(sequence);
      if (sequence.numComputed === sequence.numTokens) sequence.tokens.push(7);
    }
    this.scheduler.checkIntegrity();
    return sequences.map(({ status }) => status === "running");
  }

  finish(...sequences: readonly Sequence[]): void {
    for (const sequence of sequences) this.scheduler.remove(sequence);
  }
}

test("no more adapters run at a time than may; the model itself always does", () => {
  const bench = new Bench(2);
  const all = [bench.add(a), bench.add(b), bench.add(c), bench.add(), bench.add(a)];
  // The last one would keep the adapter's place that is to fall free for the third.
  assert.deepEqual(bench.step(...all), [true, true, false, true, false]);
  assert.deepEqual(bench.scheduler.adapters, { running: ["a", "b"], waiting: ["c", "a"] });
  bench.finish(all[1]!);
  assert.deepEqual(bench.step(...all), [true, false, true, true, true]);
});

test("an adapter that many ask for does not keep another one out for ever", () => {
  const bench = new Bench(1);
  let running = bench.add(a);
  bench.step();
  const starved = bench.add(b);
  for (let round = 0; round < 3; round++) {
    const next = bench.add(a);
    assert.deepEqual(bench.step(starved, next), [false, false]);
    if (round === 0) continue;
    bench.finish(running);
    assert.deepEqual(bench.step(starved), [true]);
    running = starved;
    break;
  }
  assert.equal(running, starved);
});

test("a preempted sequence resumes under its adapter", () => {
  const bench = new Bench(1);
  const first = bench.add(a);
  const second = bench.add(b);
  assert.deepEqual(bench.step(first, second), [true, false]);
  bench.scheduler.preempt(first);
  assert.deepEqual(bench.step(first, second), [true, false]);
});
