import assert from "node:assert/strict";
import { test } from "node:test";
import { type BlockId, BlockPool } from "./block-pool.js";
import { IntList } from "./int-list.js";
import { PrefixCache, PrefixChain } from "./prefix-cache.js";
import { hashLanes, PrefixHasher } from "@octavo/text/prefix-hash/prefix-hash";

function chainOf(tokens: readonly number[], salt?: string): PrefixChain {
  return new PrefixChain(IntList.from(tokens), salt);
}

/** A pool whose cache holds the full blocks of `tokens`. */
function cached(
  tokens: readonly number[],
  salt?: string,
): { pool: BlockPool; prefixes: PrefixCache; blocks: IntList } {
  const pool = new BlockPool(16, 2);
  const prefixes = new PrefixCache(pool);
  const blocks = new IntList();
  const chain = chainOf(tokens, salt);
  for (let block = 0; block < Math.floor(tokens.length / 2); block += 1) {
    blocks.push(pool.allocate()!);
    prefixes.register(chain, blocks, block);
  }
  return { pool, prefixes, blocks };
}

function find(
  prefixes: PrefixCache,
  tokens: readonly number[],
  salt?: string,
  maxTokens = tokens.length,
): number[] {
  const found = new IntList();
  prefixes.find(chainOf(tokens, salt), maxTokens, found);
  return Array.from(found.slice());
}

test("finds the longest cached prefix in full blocks", () => {
  const { prefixes, blocks } = cached([1, 2, 3, 4, 5, 6]);
  const [a, b, c] = blocks.slice();
  assert.deepEqual(find(prefixes, [1, 2, 3, 4, 5, 6, 7]), [a, b, c]);
  assert.deepEqual(find(prefixes, [1, 2, 3, 4, 9, 6]), [a, b]);
  assert.deepEqual(find(prefixes, [1, 2, 3]), [a]);
  assert.deepEqual(find(prefixes, [9, 2, 3, 4]), []);
  assert.deepEqual(find(prefixes, [3, 4, 5, 6]), [], "the same tokens elsewhere are another prefix");
  assert.deepEqual(find(prefixes, [1, 2, 3, 4, 5, 6], undefined, 5), [a, b], "capped");
});

test("a salt splits the cache", () => {
  const { prefixes, blocks } = cached([1, 2, 3, 4], "tenant");
  assert.deepEqual(find(prefixes, [1, 2, 3, 4], "tenant"), Array.from(blocks.slice()));
  assert.deepEqual(find(prefixes, [1, 2, 3, 4]), []);
  assert.deepEqual(find(prefixes, [1, 2, 3, 4], "tenanT"), []);
});

test("what follows a forgotten block is not offered", () => {
  const pool = new BlockPool(4, 1);
  const prefixes = new PrefixCache(pool);
  const chain = chainOf([1, 2]);
  const blocks = IntList.from([pool.allocate()!, pool.allocate()!]);
  prefixes.register(chain, blocks, 0);
  pool.forget(blocks.at(0) as BlockId);
  prefixes.register(chain, blocks, 1);
  assert.equal(pool.contentOf(blocks.at(1) as BlockId), undefined);
});

test("hashes depend on parent, tokens, their number and a key of the process", () => {
  const hasher = new PrefixHasher();
  const digest = (tokens: readonly number[], salt?: string, by = hasher): string => {
    const out = new Uint32Array(hashLanes);
    by.block(by.root(salt), 0, Int32Array.from(tokens), 0, tokens.length, out, 0);
    return out.join();
  };
  const distinct = [[1], [2], [1, 0], [0, 1], [1, 0, 0], []];
  const digests = [
    ...distinct.map((tokens) => digest(tokens)),
    digest([1], "a"),
    digest([1], "b"),
    digest([1], "\0a"),
  ];
  assert.equal(new Set(digests).size, digests.length);
  assert.equal(digest([1, 2]), digest([1, 2]));
  assert.notEqual(digest([1, 2]), digest([1, 2], undefined, new PrefixHasher()));
});
