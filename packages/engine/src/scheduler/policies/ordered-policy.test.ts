import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { Sequence, type SequenceGroup } from "../sequence.js";
import { hasPriority, OrderedPolicy } from "./ordered-policy.js";
import { arrivedBefore } from "./scheduling-policy.js";

function sequence(order: number, priority: number): Sequence {
  const group: SequenceGroup = {
    requestId: `${order}`,
    order,
    priority,
    cacheSalt: undefined,
    sequences: [],
  };
  return new Sequence(group, 0, Int32Array.of(1));
}

for (const [name, before] of [
  ["fcfs", arrivedBefore],
  ["priority", hasPriority],
] as const) {
  test(`${name}: sequences come out in order, whichever leave in between`, () => {
    const operations = fc.array(
      fc.record({ adds: fc.boolean(), priority: fc.integer({ min: -1, max: 1 }), pick: fc.nat(100) }),
    );
    fc.assert(
      fc.property(operations, (drawn) => {
        const queue = new OrderedPolicy(name, before).waiting;
        const expected: Sequence[] = [];
        for (const [order, { adds, priority, pick }] of drawn.entries()) {
          if (adds || expected.length === 0) {
            const added = sequence(order, priority);
            queue.add(added);
            expected.push(added);
            expected.sort((a, b) => (before(a, b) ? -1 : 1));
          } else {
            const [removed] = expected.splice(pick % expected.length, 1);
            assert.equal(queue.remove(removed!), true);
            assert.equal(queue.remove(removed!), false);
          }
          queue.checkIntegrity();
          assert.equal(queue.peek(), expected[0]);
          assert.equal(queue.size, expected.length);
        }
        for (const next of expected) {
          assert.equal(queue.peek(), next);
          queue.remove(next);
        }
      }),
      { numRuns: 200, seed: 4 },
    );
  });
}

test("the integrity check finds a sequence that should not wait", () => {
  const queue = new OrderedPolicy("fcfs", arrivedBefore).waiting;
  const stray = sequence(0, 0);
  queue.add(stray);
  stray.status = "running";
  assert.throws(() => queue.checkIntegrity(), { code: "internal_error" });
});
