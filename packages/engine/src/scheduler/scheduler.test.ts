import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { BlockPool } from "../kv-cache/block-pool.js";
import type { Account } from "./account.js";
import { schedulingPolicyNames } from "./policies/scheduling-policy.js";
import { Scheduler } from "./scheduler.js";
import type { SchedulerOptions } from "./scheduler-options.js";
import type { PlannedStep } from "./step-budget.js";
import { Sequence, type SequenceGroup } from "./sequence.js";

const defaults: SchedulerOptions = {
  maxNumSeqs: 8,
  maxNumBatchedTokens: 16,
  enablePrefixCaching: false,
  enableChunkedPrefill: true,
  longPrefillTokenThreshold: 0,
  policy: "fcfs",
};

/** A scheduler whose steps are carried out at once, each complete sequence getting one token. */
class Bench {
  readonly pool: BlockPool;
  readonly scheduler: Scheduler;
  #numGroups = 0;

  constructor(numBlocks: number, options: Partial<SchedulerOptions> = {}, blockSize = 4) {
    this.pool = new BlockPool(numBlocks, blockSize);
    this.scheduler = new Scheduler(this.pool, { ...defaults, ...options });
  }

  add(
    promptTokens: number | readonly number[],
    priority = 0,
    cacheSalt?: string,
    account: Account = { tenant: "default" },
  ): Sequence {
    const sequences: Sequence[] = [];
    const order = this.#numGroups;
    this.#numGroups += 1;
    const group: SequenceGroup = {
      requestId: `r${order}`,
      order,
      priority,
      cacheSalt,
      account,
      sequences,
    };
    const prompt =
      typeof promptTokens === "number"
        ? Int32Array.from({ length: promptTokens }, (_, position) => order * 100 + position)
        : Int32Array.from(promptTokens);
    const sequence = new Sequence(group, 0, prompt);
    sequences.push(sequence);
    this.scheduler.add(sequence);
    return sequence;
  }

  /** Plans a step, carries it out and tells how many tokens each of `sequences` got. */
  step(...sequences: Sequence[]): number[] {
    return this.run(this.scheduler.schedule(), ...sequences);
  }

  run(step: PlannedStep, ...sequences: Sequence[]): number[] {
    const given = sequences.map((sequence) => sequence.numScheduled);
    for (const sequence of step.sequences) {
      this.scheduler.commit(sequence);
      if (sequence.numComputed === sequence.numTokens) sequence.tokens.push(7);
    }
    this.scheduler.checkIntegrity();
    return given;
  }
}

test("a step mixes one token of those that generate with prompts up to the budget", () => {
  const bench = new Bench(64);
  const a = bench.add(5);
  assert.deepEqual(bench.step(a), [5]);
  const b = bench.add(40);
  const c = bench.add(4);
  assert.deepEqual(bench.step(a, b, c), [1, 15, 0]);
  assert.deepEqual(bench.step(a, b, c), [1, 15, 0]);
  assert.deepEqual(bench.step(a, b, c), [1, 10, 4], "the last piece leaves room for the next prompt");
  const { prefillTokens, decodeTokens } = bench.scheduler.schedule();
  assert.deepEqual([prefillTokens, decodeTokens], [0, 3]);
});

test("those that generate go before a long prompt, wherever they stand", () => {
  const bench = new Bench(64, { maxNumBatchedTokens: 4, longPrefillTokenThreshold: 2 });
  const long = bench.add(60);
  const short = bench.add(2);
  assert.deepEqual(bench.step(long, short), [2, 2]);
  assert.deepEqual(bench.scheduler.running, [long, short]);
  for (let count = 0; count < 10; count += 1) assert.deepEqual(bench.step(long, short), [3, 1]);
});

test("the prefill cap shares the budget under contention and wastes none of it", () => {
  const bench = new Bench(64, { longPrefillTokenThreshold: 4 });
  const alone = bench.add(40);
  assert.deepEqual(bench.step(alone), [16], "nobody else wants the budget");
  const short = bench.add(3);
  assert.deepEqual(
    bench.step(alone, short),
    [13, 3],
    "the short prompt goes in, the rest is not left unused",
  );
  const others = [bench.add(30), bench.add(30), bench.add(30)];
  assert.deepEqual(bench.step(alone, short, ...others), [4, 1, 4, 4, 3]);
});

test("a bound on prompts holds while others generate, and leaves those all they need", () => {
  const bench = new Bench(64);
  const a = bench.add(20);
  assert.deepEqual(bench.run(bench.scheduler.schedule(6), a), [16], "nobody else to hold up");
  assert.deepEqual(bench.run(bench.scheduler.schedule(6), a), [4]);
  const b = bench.add(9);
  const c = bench.add(9);
  assert.deepEqual(bench.run(bench.scheduler.schedule(6), a, b, c), [1, 6, 0]);
  assert.deepEqual(bench.run(bench.scheduler.schedule(6), a, b, c), [1, 3, 3]);
  assert.deepEqual(bench.run(bench.scheduler.schedule(6), a, b, c), [1, 1, 6]);
});

test("under a bound on prompts each still gets its share", () => {
  const bench = new Bench(64, { longPrefillTokenThreshold: 8 });
  const a = bench.add(4);
  bench.step(a);
  const long = bench.add(40);
  const short = bench.add(3);
  assert.deepEqual(bench.run(bench.scheduler.schedule(6), a, long, short), [1, 3, 3]);
});

test("without chunked prefill, a prompt is computed whole or not at all", () => {
  const bench = new Bench(64, { enableChunkedPrefill: false, longPrefillTokenThreshold: 2 });
  const [a, b] = [bench.add(10), bench.add(10)];
  assert.deepEqual(bench.step(a, b), [10, 0]);
  assert.deepEqual(bench.step(a, b), [1, 10]);
});

test("no more sequences run than allowed", () => {
  const bench = new Bench(64, { maxNumSeqs: 2 });
  const sequences = [bench.add(1), bench.add(1), bench.add(1)];
  assert.deepEqual(bench.step(...sequences), [1, 1, 0]);
  bench.scheduler.remove(sequences[0]!);
  assert.deepEqual(bench.step(...sequences), [0, 1, 1]);
});

test("admission counts what running prompts still need", () => {
  const bench = new Bench(10, { maxNumBatchedTokens: 8, longPrefillTokenThreshold: 4 });
  const a = bench.add(28);
  const b = bench.add(16);
  assert.deepEqual(bench.step(a, b), [8, 0], "seven of ten blocks are spoken for, four do not fit");
  while (a.numOutputTokens === 0) assert.equal(bench.step(a, b)[1], 0);
  bench.scheduler.remove(a);
  assert.deepEqual(bench.step(b), [8]);
});

test("out of blocks, the last to arrive is preempted and keeps its position in the queue", () => {
  const bench = new Bench(4, { maxNumBatchedTokens: 64 });
  const [a, b] = [bench.add(7), bench.add(4)];
  assert.deepEqual(bench.step(a, b), [7, 4]);
  assert.deepEqual(bench.step(a, b), [1, 1], "now all four blocks are used");
  const late = bench.add(1);
  const step = bench.scheduler.schedule();
  assert.deepEqual(step.preempted, [b]);
  assert.deepEqual(step.sequences, [a]);
  bench.run(step);
  assert.deepEqual([b.status, b.blocks.length, b.numPreemptions], ["waiting", 0, 1]);
  bench.scheduler.remove(a);
  const resumed = bench.scheduler.schedule();
  assert.deepEqual(resumed.sequences, [b, late], "ahead of who arrived later");
  assert.deepEqual(resumed.admitted, [late], "it is admitted for the first time only once");
  assert.equal(b.numScheduled, 6, "prompt and output are computed again");
  bench.run(resumed);
});

test("by priority, the least urgent is preempted, even if it was planned already", () => {
  const bench = new Bench(4, { policy: "priority", maxNumBatchedTokens: 64 });
  const low = bench.add(7, 5);
  bench.step(low);
  const high = bench.add(4, 1);
  bench.step(low, high);
  while (low.status === "running") bench.step();
  assert.equal(high.status, "running");
  assert.equal(high.numPreemptions, 0);
  assert.equal(low.numPreemptions, 1);
});

test("the more urgent is admitted first", () => {
  const bench = new Bench(64, { policy: "priority", maxNumSeqs: 1 });
  const [a, b, c] = [bench.add(1, 3), bench.add(1, -1), bench.add(1, -1)];
  assert.deepEqual(bench.step(a, b, c), [0, 1, 0]);
  bench.scheduler.remove(b);
  assert.deepEqual(bench.step(a, b, c), [0, 0, 1]);
});

test("a cached prefix is not computed again, but at least one token is", () => {
  const bench = new Bench(16, { enablePrefixCaching: true });
  const prompt = [1, 2, 3, 4, 5, 6, 7, 8];
  const first = bench.add(prompt);
  bench.step(first);
  const same = bench.add(prompt);
  assert.deepEqual(bench.step(same), [4], "the second block holds the last token");
  assert.equal(same.cachedTokens, 4);
  assert.equal(same.blocks.at(0), first.blocks.at(0));
  assert.notEqual(same.blocks.at(1), first.blocks.at(1));
  const longer = bench.add([...prompt, 9]);
  assert.deepEqual(bench.step(longer), [1]);
});

test("wanted rows are computed although they are cached", () => {
  const bench = new Bench(16, { enablePrefixCaching: true });
  bench.step(bench.add([1, 2, 3, 4, 5, 6, 7, 8, 9]));
  const scored = bench.add([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  scored.firstWantedRow = 6;
  assert.deepEqual(bench.step(scored), [5]);
});

/** `length` tokens that start with the common ones 1, 2, ... and go on as no other prompt does. */
function forked(common: number, length: number, own: number): number[] {
  return Array.from({ length }, (_, index) => (index < common ? index + 1 : own * 1000 + index));
}

test("of prompts that arrive together, the first computes what they have in common", () => {
  const bench = new Bench(256, { enablePrefixCaching: true, maxNumBatchedTokens: 64, maxNumSeqs: 16 });
  const prompts = Array.from({ length: 12 }, (_, own) => bench.add(forked(28, 30, own)));
  assert.deepEqual(bench.step(...prompts), [30, ...Array.from({ length: 11 }, () => 0)]);
  assert.deepEqual(bench.step(...prompts), [1, ...Array.from({ length: 11 }, () => 2)]);
  assert.deepEqual(new Set(prompts.slice(1).map((sequence) => sequence.cachedTokens)), new Set([28]));
});

test("a chunked prefix is awaited chunk by chunk, and those with another prompt overtake", () => {
  const bench = new Bench(64, { enablePrefixCaching: true, longPrefillTokenThreshold: 8 });
  const [first, second] = [bench.add(forked(20, 21, 1)), bench.add(forked(20, 22, 2))];
  const other = bench.add(3);
  assert.deepEqual(bench.step(first, second, other), [13, 0, 3]);
  assert.deepEqual(bench.step(first, second, other), [8, 0, 1]);
  assert.deepEqual(bench.step(first, second, other), [1, 2, 1]);
});

test("no sequence waits if too little is saved", () => {
  const little = new Bench(64, { enablePrefixCaching: true, maxNumBatchedTokens: 64 });
  const [a, b] = [little.add(forked(4, 12, 1)), little.add(forked(4, 12, 2))];
  assert.deepEqual(little.step(a, b), [12, 12], "a third of the prompt");
  const long = new Bench(64, { enablePrefixCaching: true, maxNumBatchedTokens: 128 });
  const [c, d] = [long.add(forked(4, 100, 1)), long.add(forked(4, 6, 2))];
  assert.deepEqual(long.step(c, d), [100, 6], "a long step for four tokens");
  const salted = new Bench(64, { enablePrefixCaching: true, maxNumBatchedTokens: 64 });
  const e = salted.add(forked(8, 9, 1));
  const f = salted.add(forked(8, 9, 2), 0, "another tenant");
  assert.deepEqual(salted.step(e, f), [9, 9], "a prefix under another salt is another prefix");
});

test("when the sequence that computes the prefix leaves, the next takes over", () => {
  const bench = new Bench(64, { enablePrefixCaching: true, maxNumBatchedTokens: 8 });
  const [a, b, c] = [1, 2, 3].map((own) => bench.add(forked(12, 13, own))) as [Sequence, Sequence, Sequence];
  assert.deepEqual(bench.step(a, b, c), [8, 0, 0]);
  bench.scheduler.remove(a);
  assert.deepEqual(bench.step(a, b, c), [0, 5, 0], "what was cached stays");
  assert.equal(b.cachedTokens, 8);
  assert.deepEqual(bench.step(b, c), [1, 1]);
});

test("a step passes over a bounded number of waiting prompts", () => {
  const bench = new Bench(4096, { enablePrefixCaching: true, maxNumBatchedTokens: 256, maxNumSeqs: 256 });
  const prompts = Array.from({ length: 100 }, (_, own) => bench.add(forked(16, 17, own)));
  const late = bench.add(2);
  assert.deepEqual(bench.step(prompts[0]!, late), [17, 0]);
  assert.deepEqual(bench.step(prompts[99]!, late), [1, 2]);
});

test("long prompts leave the first pass to short ones, and have what those leave", () => {
  const bench = new Bench(256, { longPrefillTokenThreshold: 4, maxLongPartialPrefills: 1 });
  const [a, b] = [bench.add(40), bench.add(40)];
  assert.deepEqual(bench.step(a, b), [16, 0], "nobody else wants anything: the first goes on");
  const short = bench.add(3);
  assert.deepEqual(bench.step(a, b, short), [13, 0, 3]);
  bench.scheduler.remove(a);
  assert.deepEqual(bench.step(b, short), [15, 1]);
});

test("siblings wait for the prompt and then share its blocks, without any prefix cache", () => {
  const bench = new Bench(16);
  const leader = bench.add(10);
  const sibling = new Sequence(leader.group, 1, leader.tokens.slice());
  (leader.group.sequences as Sequence[]).push(sibling);
  bench.scheduler.add(sibling);
  const stranger = bench.add(2);
  assert.deepEqual(bench.step(leader, sibling, stranger), [10, 0, 2], "a stranger may overtake");
  assert.deepEqual(bench.step(leader, sibling), [1, 2]);
  assert.deepEqual(sibling.blocks.slice(0, 2), leader.blocks.slice(0, 2));
  assert.notEqual(sibling.blocks.at(2), leader.blocks.at(2), "the partial block is its own");
  bench.scheduler.remove(leader);
  bench.step(sibling);
});

test("every load is served to its end: no deadlock, no starvation", () => {
  const load = fc.record({
    prompts: fc.array(
      fc.record({
        length: fc.integer({ min: 1, max: 20 }),
        output: fc.integer({ min: 1, max: 12 }),
        priority: fc.nat(2),
        tenant: fc.constantFrom("a", "a", "b", "c"),
        lane: fc.constantFrom(0, 0, 1),
        weight: fc.constantFrom(1, 1, 3),
        // Leading tokens in common with all others.
        common: fc.constantFrom(0, 0, 6, 12, 20),
      }),
      {
        minLength: 1,
        maxLength: 14,
      },
    ),
    // One sequence of the greatest length (32 tokens) just fits.
    numBlocks: fc.integer({ min: 8, max: 20 }),
    maxPromptTokens: fc.constantFrom(1, 5, Number.POSITIVE_INFINITY),
    // Costs of a step: fixed, per prompt token and per sequence.
    cost: fc.tuple(fc.constantFrom(0, 5), fc.constantFrom(0.01, 1), fc.constantFrom(0.01, 1)),
    options: fc.record({
      maxNumSeqs: fc.integer({ min: 1, max: 8 }),
      maxNumBatchedTokens: fc.integer({ min: 1, max: 40 }),
      enablePrefixCaching: fc.boolean(),
      longPrefillTokenThreshold: fc.constantFrom(0, 1, 3),
      maxLongPartialPrefills: fc.constantFrom(0, 1, 2),
      policy: fc.constantFrom(...schedulingPolicyNames),
    }),
  });
  fc.assert(
    fc.property(load, ({ prompts, numBlocks, maxPromptTokens, cost, options }) => {
      const bench = new Bench(numBlocks, options);
      const targets = new Map(
        prompts.map(({ length, output, priority, common, ...account }, own) => [
          bench.add(forked(common, length, own + 1), priority, undefined, account),
          output,
        ]),
      );
      const totalTokens = prompts.reduce((sum, { length, output }) => sum + length + output, 0);
      for (let steps = 0; targets.size > 0; steps += 1) {
        assert(steps < totalTokens * 40, "no end in sight");
        const generating = bench.scheduler.running.filter((sequence) => sequence.isDecoding);
        const step = bench.scheduler.schedule(maxPromptTokens);
        assert(step.sequences.length > 0, "a step in which nobody runs");
        const scheduled = step.sequences.reduce((sum, sequence) => sum + sequence.numScheduled, 0);
        assert.equal(scheduled, step.prefillTokens + step.decodeTokens);
        if (generating.some((sequence) => step.sequences.includes(sequence)))
          assert(step.prefillTokens <= maxPromptTokens);
        assert(scheduled <= options.maxNumBatchedTokens && step.sequences.length <= options.maxNumSeqs);
        bench.run(step);
        bench.scheduler.observe(step, cost[0] + cost[1] * step.prefillTokens + cost[2] * step.decodeTokens);
        for (const [sequence, output] of targets) {
          if (sequence.numOutputTokens < output) continue;
          bench.scheduler.remove(sequence);
          targets.delete(sequence);
        }
        bench.scheduler.checkIntegrity();
      }
      assert.equal(bench.pool.numUsed, 0);
    }),
    { numRuns: 500, seed: 5 },
  );
});
