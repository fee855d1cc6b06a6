import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BlockPool } from "../../kv-cache/block-pool.js";
import type { Account } from "../account.js";
import { Scheduler } from "../scheduler.js";
import type { SchedulerOptions } from "../scheduler-options.js";
import type { PlannedStep } from "../step-budget.js";
import { Sequence, type SequenceGroup } from "../sequence.js";

const defaults: SchedulerOptions = {
  maxNumSeqs: 8,
  maxNumBatchedTokens: 64,
  enablePrefixCaching: false,
  enableChunkedPrefill: true,
  longPrefillTokenThreshold: 0,
  policy: "fair",
};

/** A scheduler whose steps are carried out at once, each complete sequence getting one token. */
class Bench {
  readonly pool: BlockPool;
  readonly scheduler: Scheduler;
  #numGroups = 0;

  constructor(numBlocks = 256, options: Partial<SchedulerOptions> = {}) {
    this.pool = new BlockPool(numBlocks, 4);
    this.scheduler = new Scheduler(this.pool, { ...defaults, ...options });
  }

  add(account: string | Account, length: number, firstTokenDueMs?: number): Sequence {
    const sequences: Sequence[] = [];
    const order = this.#numGroups++;
    const group: SequenceGroup = {
      requestId: `r${order}`,
      order,
      priority: 0,
      cacheSalt: undefined,
      account: typeof account === "string" ? { tenant: account } : account,
      firstTokenDueMs,
      sequences,
    };
    const sequence = new Sequence(group, 0, new Int32Array(length));
    sequences.push(sequence);
    this.scheduler.add(sequence);
    return sequence;
  }

  crowd(account: string | Account, count: number, length: number): Sequence[] {
    return Array.from({ length: count }, () => this.add(account, length));
  }

  /** Plans a step, carries it out and tells how many tokens each of `sequences` got. */
  step(...sequences: Sequence[]): number[] {
    const step = this.scheduler.schedule();
    const given = sequences.map((sequence) => sequence.numScheduled);
    this.#carryOut(step);
    return given;
  }

  /** Plans a step and carries it out. */
  carryOut(): PlannedStep {
    const step = this.scheduler.schedule();
    this.#carryOut(step);
    return step;
  }

  #carryOut(step: PlannedStep): void {
    for (const sequence of step.sequences) {
      this.scheduler.commit(sequence);
      if (sequence.numComputed === sequence.numTokens) sequence.tokens.push(7);
    }
    this.scheduler.checkIntegrity();
  }

  /** Steps in which a load whose cost is in proportion to its size was computed. */
  learn(account: string): void {
    const sequence = this.add(account, 200);
    for (let step = 0; step < 12; step += 1) {
      const before = sequence.isDecoding
        ? { prefillTokens: 0, decodeTokens: 1 }
        : { prefillTokens: 64, decodeTokens: 0 };
      this.step();
      this.scheduler.observe(before, 20 + 0.1 * before.prefillTokens + 0.3 * before.decodeTokens);
    }
    this.scheduler.remove(sequence);
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

describe("the fair policy", () => {
  test("a newcomer's prompt shares the step with those of a tenant that came before it", () => {
    const bench = new Bench();
    const large = bench.crowd("large", 4, 200);
    bench.step();
    const small = bench.add("small", 32);
    const [ofSmall, ...ofLarge] = bench.step(small, ...large);
    assert.equal(ofSmall, 32, "all of it, being less than half of the step");
    assert.equal(sum(ofLarge), 32, "and nothing is left unused");
  });

  test("alone, a tenant has everything", () => {
    const bench = new Bench();
    const large = bench.crowd("large", 3, 100);
    assert.equal(sum(bench.step(...large)), 64);
  });

  test("two tenants with endless work get the same, one of double weight twice as much", () => {
    for (const weight of [1, 2]) {
      const bench = new Bench(4096, { maxNumSeqs: 32 });
      const a = bench.crowd({ tenant: "a", weight }, 12, 400);
      const b = bench.crowd("b", 3, 1600);
      let [ofA, ofB] = [0, 0];
      for (let step = 0; step < 40; step += 1) {
        const given = bench.step(...a, ...b);
        ofA += sum(given.slice(0, a.length));
        ofB += sum(given.slice(a.length));
      }
      assert.ok(Math.abs(ofA / ofB - weight) < 0.15 * weight, `${ofA} to ${ofB} tokens by weight ${weight}`);
    }
  });

  test("a tenant that was away has not saved up, and is not held to what it had alone", () => {
    const bench = new Bench(4096, { maxNumSeqs: 32 });
    const first = bench.crowd("a", 4, 1600);
    for (let step = 0; step < 20; step += 1) bench.step();
    const late = bench.crowd("b", 4, 1600);
    let [ofA, ofB] = [0, 0];
    for (let step = 0; step < 20; step += 1) {
      const given = bench.step(...first, ...late);
      ofA += sum(given.slice(0, 4));
      ofB += sum(given.slice(4));
    }
    assert.ok(Math.abs(ofA / ofB - 1) < 0.2, `${ofA} to ${ofB}`);
  });

  test("tokens from the cache cost nothing", () => {
    const bench = new Bench(256, { enablePrefixCaching: true, maxNumSeqs: 1 });
    const done = bench.add("a", 32);
    bench.step();
    bench.scheduler.remove(done);
    const [again, other] = [bench.add("a", 32), bench.add("b", 32)];
    bench.step();
    assert.equal(again.numCharged, 32);
    assert.equal(again.cachedTokens ?? other.cachedTokens, 28);
  });

  test("without a free slot, a tenant below its share takes one from the other, up to its share", () => {
    const bench = new Bench();
    const large = bench.crowd("large", 12, 8);
    for (let step = 0; step < 3; step += 1) bench.step();
    assert.equal(bench.scheduler.running.length, 8);
    const small = bench.crowd("small", 6, 8);
    for (let step = 0; step < 3; step += 1) bench.step();
    const running = bench.scheduler.running.filter((sequence) => small.includes(sequence)).length;
    assert.equal(running, 4, "half of the places");
    const preempted = large.filter((sequence) => sequence.numPreemptions > 0);
    assert.equal(preempted.length, 4);
    assert.ok(preempted.every(({ preemptedBy }) => small.some(({ group }) => group.order === preemptedBy)));
    const before = sum(large.map((sequence) => sequence.numPreemptions));
    for (let step = 0; step < 10; step += 1) bench.step();
    assert.equal(sum(large.map((sequence) => sequence.numPreemptions)), before, "nobody takes it back");
  });

  test("without free blocks, they are taken from the tenant that holds most, if that is enough", () => {
    const bench = new Bench(64, { maxNumSeqs: 32, maxNumBatchedTokens: 256 });
    const large = bench.crowd("large", 7, 32);
    bench.step();
    assert.equal(large.filter(({ status }) => status === "running").length, 7);
    const tooMuch = bench.add("small", 160);
    bench.step();
    assert.equal(tooMuch.status, "waiting", "it would have more than the other then");
    bench.scheduler.remove(tooMuch);
    const small = bench.add("small", 60);
    bench.step();
    assert.equal(small.status, "running");
    assert.ok(sum(large.map((sequence) => sequence.numPreemptions)) >= 1);
  });

  test("a more urgent lane goes first, and takes slots from a less urgent one, also of the same tenant", () => {
    const bench = new Bench(256, { maxNumSeqs: 2 });
    const batch = bench.crowd({ tenant: "a", lane: 2 }, 3, 8);
    bench.step();
    const urgent = bench.crowd({ tenant: "a", lane: 0 }, 2, 8);
    bench.step();
    assert.deepEqual(new Set(bench.scheduler.running), new Set(urgent));
    assert.deepEqual(
      batch.map(({ numPreemptions }) => numPreemptions),
      [1, 1, 0],
    );
    for (const sequence of urgent) bench.scheduler.remove(sequence);
    bench.step();
    assert.deepEqual(
      batch.map(({ status }) => status),
      ["running", "running", "waiting"],
    );
  });

  test("within a tenant, the earliest first-token deadline goes first, then arrival", () => {
    const bench = new Bench(256, { maxNumSeqs: 1 });
    const [late, free, soon] = [bench.add("a", 4, 9000), bench.add("a", 4), bench.add("a", 4, 1000)];
    const order: Sequence[] = [];
    for (let count = 0; count < 3; count += 1) {
      bench.step();
      const [running] = bench.scheduler.running;
      order.push(running!);
      bench.scheduler.remove(running!);
    }
    assert.deepEqual(order, [soon, late, free]);
  });

  test("steps are kept short while a small tenant generates, and the others take turns", () => {
    const bench = new Bench(4096, { maxNumSeqs: 64, maxNumBatchedTokens: 512 });
    bench.learn("large");
    const large = bench.crowd("large", 48, 16);
    for (let step = 0; step < 4; step += 1) bench.step();
    const prompts = bench.crowd("large", 4, 2000);
    const small = bench.add("small", 8);
    for (let step = 0; step < 4; step += 1) {
      const [ofSmall, ...others] = bench.step(small, ...large, ...prompts);
      bench.scheduler.observe({ prefillTokens: 400, decodeTokens: 40 }, 20 + 40 + 12);
      assert.ok(ofSmall! >= 1, "the small tenant runs in every step");
      assert.ok(sum(others) > 0, "and never alone");
    }
    const costs: number[] = [];
    for (let step = 0; step < 6; step += 1) {
      const given = bench.step(...large, ...prompts);
      const decodes = sum(given.slice(0, large.length));
      costs.push(20 + 0.3 * (decodes + 1) + 0.1 * sum(given.slice(large.length)));
      bench.scheduler.observe({ prefillTokens: 512, decodeTokens: 48 }, 20 + 51.2 + 14.4);
    }
    assert.ok(Math.min(...costs) <= 1.9 * 20.3, `a step takes ${Math.min(...costs)} ms`);
  });

  test("the first step of a tenant that has just come is short, whatever is waiting", () => {
    const bench = new Bench(4096, { maxNumSeqs: 64, maxNumBatchedTokens: 512 });
    bench.learn("large");
    const large = bench.crowd("large", 40, 300);
    for (let step = 0; step < 4; step += 1) {
      const { prefillTokens, decodeTokens } = bench.carryOut();
      const ms = 20 + 0.1 * prefillTokens + 0.3 * decodeTokens;
      bench.scheduler.observe({ prefillTokens, decodeTokens }, ms);
    }
    assert.ok(
      large.some(({ status }) => status === "waiting"),
      "the large tenant's requests came before",
    );
    const small = bench.add("small", 64);
    const [ofSmall, ...ofLarge] = bench.step(small, ...large);
    assert.equal(ofSmall, 64);
    const ownMs = 20 + 0.1 * 64;
    assert.ok(0.1 * sum(ofLarge) <= 0.6 * ownMs, `${sum(ofLarge)} tokens of the large tenant beside it`);
  });

  test("steps stay short for as long as a small tenant's answer, and not for ever", () => {
    const bench = new Bench(4096, { maxNumSeqs: 64, maxNumBatchedTokens: 512 });
    bench.learn("large");
    const large = bench.crowd("large", 200, 300);
    const stepMs = (): number => {
      const { prefillTokens, decodeTokens } = bench.carryOut();
      const ms = 20 + 0.1 * prefillTokens + 0.3 * decodeTokens;
      bench.scheduler.observe({ prefillTokens, decodeTokens }, ms);
      for (const [index, sequence] of large.entries()) {
        if (sequence.numOutputTokens < 20) continue;
        bench.scheduler.remove(sequence);
        large[index] = bench.add("large", 300);
      }
      return ms;
    };
    for (let step = 0; step < 400; step += 1) stepMs();
    bench.add("small", 8);
    stepMs();
    const answer = Array.from({ length: 120 }, stepMs);
    assert.ok(Math.max(...answer) <= 1.6 * 20.3, `a step takes ${Math.max(...answer)} ms`);
    const long = Array.from({ length: 400 }, stepMs);
    assert.ok(Math.max(...long) > 60, "who always streams does not cost everybody else their steps");
  });

  test("a thousand tenants, and one that keeps returning, use bounded memory", () => {
    const bench = new Bench(4096, { maxNumSeqs: 16 });
    for (let tenant = 0; tenant < 5000; tenant += 1) {
      const sequence = bench.add(`tenant-${tenant}`, 8);
      if (tenant % 5 === 0) bench.step();
      bench.scheduler.remove(sequence);
    }
    const steady = bench.add("steady", 200);
    for (let count = 0; count < 500; count += 1) {
      const cancelled = bench.add("cancels", 64);
      if (count % 2 === 0) bench.step();
      bench.scheduler.remove(cancelled);
    }
    bench.step();
    assert.ok(steady.numOutputTokens > 0, "who stays is served");
    bench.scheduler.remove(steady);
    bench.scheduler.checkIntegrity();
    assert.equal(bench.pool.numUsed, 0);
  });
});
