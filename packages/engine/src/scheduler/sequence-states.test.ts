import assert from "node:assert/strict";
import { test } from "node:test";
import { BlockPool } from "../kv-cache/block-pool.js";
import { PrefixChain } from "../kv-cache/prefix-cache.js";
import { IntList } from "../kv-cache/int-list.js";
import { Scheduler } from "./scheduler.js";
import type { SchedulerOptions } from "./scheduler-options.js";
import { SequenceStates } from "./sequence-states.js";
import { Sequence, type SequenceGroup } from "./sequence.js";

const blockSize = 4;

const defaults: SchedulerOptions = {
  maxNumSeqs: 8,
  maxNumBatchedTokens: 64,
  enablePrefixCaching: true,
  enableChunkedPrefill: true,
  longPrefillTokenThreshold: 0,
  policy: "fcfs",
};

/** A scheduler with slots of state whose steps are carried out at once. */
class StateBench {
  readonly pool = new BlockPool(256, blockSize);
  readonly slots: BlockPool;
  readonly scheduler: Scheduler;
  /** Positions of the snapshots that the latest step took, by sequence. */
  snapshots: number[][] = [];
  #numGroups = 0;

  constructor(numSlots: number, interval: number, options: Partial<SchedulerOptions> = {}) {
    this.slots = new BlockPool(numSlots, blockSize);
    const states = new SequenceStates(this.slots, blockSize, interval);
    const maxNumSeqs = Math.min(defaults.maxNumSeqs, numSlots);
    this.scheduler = new Scheduler(this.pool, { ...defaults, maxNumSeqs, ...options }, states);
  }

  add(promptTokens: readonly number[], cacheSalt?: string): Sequence {
    const sequences: Sequence[] = [];
    this.#numGroups += 1;
    const group: SequenceGroup = {
      requestId: `r${this.#numGroups}`,
      order: this.#numGroups,
      priority: 0,
      cacheSalt,
      sequences,
    };
    const sequence = new Sequence(group, 0, Int32Array.from(promptTokens));
    sequences.push(sequence);
    this.scheduler.add(sequence);
    return sequence;
  }

  /** Plans a step and carries it out; tells how many sequences ran. */
  step(): number {
    const { sequences } = this.scheduler.schedule();
    this.scheduler.reserveSnapshots(sequences);
    this.snapshots = sequences.map(({ state }) => (state?.snapshots ?? []).map(({ position }) => position));
    this.scheduler.checkIntegrity();
    for (const sequence of sequences) {
      this.scheduler.commit(sequence);
      if (sequence.numComputed === sequence.numTokens) sequence.tokens.push(7);
    }
    this.scheduler.checkIntegrity();
    return sequences.length;
  }

  /** Runs a request alone for one step and ends it; tells how many of its tokens were cached. */
  once(promptTokens: readonly number[], cacheSalt?: string): number | undefined {
    const sequence = this.add(promptTokens, cacheSalt);
    this.step();
    this.scheduler.remove(sequence);
    this.scheduler.checkIntegrity();
    return sequence.cachedTokens;
  }
}

const count = (from: number, length: number): number[] => Array.from({ length }, (_, index) => from + index);

test("a prompt that was computed is found up to its last block border, however short it is", () => {
  const bench = new StateBench(8, 512);
  assert.equal(bench.once(count(0, 11)), 0);
  assert.deepEqual(bench.snapshots, [[8]]);
  assert.equal(bench.once(count(0, 11)), 8);
  assert.equal(bench.once([...count(0, 11), 90, 91]), 8);
  assert.equal(bench.once(count(0, 11), "another salt"), 0);
});

test("states are kept after every interval, and further apart where a sequence would take too many slots", () => {
  const bench = new StateBench(64, 8);
  bench.once(count(0, 30));
  assert.deepEqual(bench.snapshots, [[8, 16, 24, 28]]);
  assert.equal(bench.once([...count(0, 20), ...count(500, 20)]), 16);
  const few = new StateBench(4, 8);
  few.once(count(0, 64));
  assert.deepEqual(few.snapshots, [[60, 64]]);
});

test("where prompts part, the second one leaves a state for the third", () => {
  const bench = new StateBench(16, 512);
  const shared = count(0, 12);
  assert.equal(bench.once([...shared, ...count(100, 8)]), 0);
  // The blocks of the shared prefix are found, but no state behind them.
  assert.equal(bench.once([...shared, ...count(200, 8)]), 0);
  assert.deepEqual(bench.snapshots, [[12, 16]]);
  assert.equal(bench.once([...shared, ...count(300, 8)]), 12);
});

test("no more sequences run than there are slots, and the last slot may be the snapshot itself", () => {
  const bench = new StateBench(2, 512);
  bench.once(count(0, 11));
  assert.deepEqual([bench.slots.numFree, bench.slots.numCached], [1, 1]);
  const first = bench.add(count(50, 6));
  const second = bench.add([...count(0, 9), 77]);
  const third = bench.add(count(70, 6));
  assert.equal(bench.step(), 2);
  assert.deepEqual([first.cachedTokens, second.cachedTokens, third.status], [0, 8, "waiting"]);
  assert.equal(bench.slots.numUsed, 2);
  bench.scheduler.preempt(second);
  assert.equal(second.state, undefined);
  bench.scheduler.remove(first);
  assert.equal(bench.step(), 2);
  bench.scheduler.remove(second);
  bench.scheduler.remove(third);
  assert.equal(bench.slots.numAvailable, 2);
});

test("evicted and forgotten prefixes take their states with them", () => {
  const bench = new StateBench(8, 4);
  bench.once(count(0, 12));
  const chain = new PrefixChain(IntList.from(count(0, 8)), undefined);
  bench.scheduler.evict(chain);
  assert.equal(bench.once(count(0, 12)), 0);
  const sequence = bench.add(count(0, 14));
  bench.step();
  assert.equal(sequence.cachedTokens, 8);
  bench.scheduler.forget(sequence);
  bench.scheduler.remove(sequence);
  assert.equal(bench.once(count(0, 12)), 0);
  bench.scheduler.evict();
  assert.equal(bench.slots.numFree, 8);
});

test("without a prefix cache nothing is kept", () => {
  const bench = new StateBench(8, 4, { enablePrefixCaching: false });
  bench.once(count(0, 12));
  assert.deepEqual(bench.snapshots, [[]]);
  assert.equal(bench.slots.numFree, 8);
});
