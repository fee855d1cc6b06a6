import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { type BlockId, BlockPool, rootContent } from "./block-pool.js";

const hash = (value: number): Uint32Array => Uint32Array.of(value, 2, 3, 4);

function take(pool: BlockPool): BlockId {
  const block = pool.allocate();
  assert(block !== undefined);
  return block;
}

function cache(
  pool: BlockPool,
  block: BlockId,
  tokens: readonly number[],
  parent = rootContent,
  lanes = hash(tokens[0]!),
): void {
  pool.register(block, parent, lanes, 0, Int32Array.from(tokens), 0);
}

function find(
  pool: BlockPool,
  tokens: readonly number[],
  parent = rootContent,
  lanes = hash(tokens[0]!),
): BlockId | undefined {
  return pool.lookup(parent, lanes, 0, Int32Array.from(tokens), 0);
}

test("reuses worthless blocks first, then evicts the least recently used", () => {
  const pool = new BlockPool(3, 2);
  const [a, b, c] = [take(pool), take(pool), take(pool)];
  assert.equal(pool.allocate(), undefined);
  cache(pool, a, [1, 1]);
  cache(pool, b, [2, 2]);
  pool.release(b);
  pool.release(a);
  pool.release(c);
  assert.deepEqual([pool.numFree, pool.numCached, pool.numUsed], [1, 2, 0]);
  assert.equal(take(pool), c);
  assert.equal(pool.numEvictions, 0);
  assert.equal(take(pool), b, "b was given back before a");
  assert.equal(pool.numEvictions, 1);
  assert.equal(find(pool, [2, 2]), undefined);
  assert.equal(find(pool, [1, 1]), a);
  pool.checkIntegrity([[b, c]]);
});

test("a hit saves a block from eviction and makes it the latest again", () => {
  const pool = new BlockPool(2, 1);
  const [a, b] = [take(pool), take(pool)];
  cache(pool, a, [1]);
  cache(pool, b, [2]);
  pool.release(a);
  pool.release(b);
  pool.retain(a);
  assert.equal(pool.numUsed, 1);
  pool.retain(a);
  pool.release(a);
  pool.release(a);
  assert.equal(take(pool), b);
});

test("a hash collision is a miss, never another prefix's block", () => {
  const pool = new BlockPool(4, 2);
  const same = hash(7);
  const [a, b] = [take(pool), take(pool)];
  cache(pool, a, [1, 2], rootContent, same);
  assert.equal(find(pool, [1, 3], rootContent, same), undefined, "other tokens");
  assert.equal(find(pool, [1, 2], 99, same), undefined, "another parent");
  cache(pool, b, [3, 4], rootContent, same);
  const [parentA, parentB] = [pool.contentOf(a), pool.contentOf(b)];
  assert.notEqual(parentA, parentB);
  const child = take(pool);
  cache(pool, child, [5, 6], parentA, same);
  assert.equal(find(pool, [5, 6], parentB, same), undefined);
  assert.equal(find(pool, [5, 6], parentA, same), child);
});

test("caches equal content once when it is not in use", () => {
  const pool = new BlockPool(3, 1);
  const [a, b] = [take(pool), take(pool)];
  cache(pool, a, [1]);
  cache(pool, b, [1]);
  assert.equal(pool.contentOf(a), pool.contentOf(b));
  pool.release(a);
  assert.equal(pool.numCached, 0, "b is used and stays findable");
  assert.equal(find(pool, [1]), b);
  const c = take(pool);
  cache(pool, c, [1]);
  pool.release(b);
  pool.release(c);
  assert.deepEqual([pool.numFree, pool.numCached], [2, 1]);
  assert.equal(find(pool, [1]), c);
  pool.checkIntegrity([]);
});

test("forgets content that is not to be trusted", () => {
  const pool = new BlockPool(2, 1);
  const [a, b] = [take(pool), take(pool)];
  cache(pool, a, [1]);
  cache(pool, b, [2]);
  pool.release(b);
  pool.forget(a);
  pool.forget(b);
  assert.equal(find(pool, [1]) ?? find(pool, [2]), undefined);
  pool.checkIntegrity([[a]]);
});

test("resets only while nothing is used", () => {
  const pool = new BlockPool(2, 1);
  const a = take(pool);
  cache(pool, a, [1]);
  assert.equal(pool.reset(), false);
  assert.equal(find(pool, [1]), a);
  pool.release(a);
  assert.equal(pool.reset(), true);
  assert.deepEqual([pool.numFree, pool.numCached, find(pool, [1])], [2, 0, undefined]);
});

test("misuse is an error and not a corrupted pool", () => {
  const pool = new BlockPool(2, 1);
  const a = take(pool);
  pool.release(a);
  assert.throws(() => pool.release(a), { code: "internal_error" });
  assert.throws(() => pool.retain(a), { code: "internal_error" });
  assert.throws(() => cache(pool, a, [1]), { code: "internal_error" });
  assert.throws(() => pool.release(17 as BlockId), { code: "internal_error" });
  pool.checkIntegrity([]);
  for (const [numBlocks, blockSize] of [
    [0, 16],
    [1.5, 16],
    [4, 0],
    [4, 257],
    [Number.NaN, 16],
  ] as const) {
    assert.throws(() => new BlockPool(numBlocks, blockSize), { code: "invalid_option" });
  }
});

test("the integrity check finds tables that disagree", () => {
  const pool = new BlockPool(4, 1);
  const [a, b] = [take(pool), take(pool)];
  pool.checkIntegrity([[a], [b]]);
  for (const tables of [[[a]], [[a, b], [b]], [[a, b, 3]], [[a, a, b]], [[a, b, 9]]]) {
    assert.throws(() => pool.checkIntegrity(tables), { code: "internal_error", message: /block pool/ });
  }
});

test("random use agrees with a model of the rules", () => {
  const operation = fc.record({ kind: fc.nat(3), pick: fc.nat(1000), token: fc.nat(4) });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      fc.array(operation, { maxLength: 120 }),
      (numBlocks, operations) => {
        const pool = new BlockPool(numBlocks, 1);
        /** Block tables of one block each. */
        const held: BlockId[] = [];
        for (const { kind, pick, token } of operations) {
          const chosen = held[pick % Math.max(1, held.length)];
          if (kind === 0) {
            const block = pool.allocate();
            assert.equal(block === undefined, new Set(held).size === numBlocks);
            if (block !== undefined) {
              assert(!held.includes(block));
              assert.equal(pool.contentOf(block), undefined, "a new block has no old content");
              held.push(block);
            }
          } else if (kind === 1 && chosen !== undefined) {
            held.splice(held.indexOf(chosen), 1);
            pool.release(chosen);
          } else if (kind === 2 && chosen !== undefined) cache(pool, chosen, [token]);
          else if (kind === 3) {
            const hit = find(pool, [token]);
            if (hit !== undefined) {
              pool.retain(hit);
              held.push(hit);
            }
          }
          pool.checkIntegrity(held.map((block) => [block]));
          assert.equal(pool.numFree + pool.numCached + pool.numUsed, numBlocks);
        }
      },
    ),
    { numRuns: 200, seed: 2 },
  );
});
