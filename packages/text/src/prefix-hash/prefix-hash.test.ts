import assert from "node:assert/strict";
import { test } from "node:test";
import { hashLanes, prefixBlockHashes, PrefixHasher } from "./prefix-hash.js";

const key = Uint32Array.of(1, 2, 3, 4);
const tokens = Array.from({ length: 40 }, (_, index) => (index * 37) % 101);

test("prompts have the block hashes of their common prefix in common, and no others", () => {
  const hashes = prefixBlockHashes(tokens, { blockSize: 8, key });
  assert.equal(hashes.length, 5);
  assert.equal(new Set(hashes).size, 5);
  for (const hash of hashes) assert.match(hash, /^[0-9a-f]{32}$/);
  const changed = prefixBlockHashes(tokens.with(17, 999), { blockSize: 8, key });
  assert.deepEqual(
    changed.map((hash, block) => hash === hashes[block]),
    [true, true, false, false, false],
  );
  assert.deepEqual(prefixBlockHashes(tokens.slice(0, 31), { blockSize: 8, key }), hashes.slice(0, 3));
});

test("the salt and the key keep prefixes apart", () => {
  const plain = prefixBlockHashes(tokens, { blockSize: 16, key });
  assert.notDeepEqual(prefixBlockHashes(tokens, { blockSize: 16, key, salt: "" }), plain);
  assert.notDeepEqual(prefixBlockHashes(tokens, { blockSize: 16, key, salt: "a" }), plain);
  assert.notDeepEqual(prefixBlockHashes(tokens, { blockSize: 16, key: key.map((word) => word + 1) }), plain);
  assert.deepEqual(prefixBlockHashes(tokens, { blockSize: 16, key: key.slice() }), plain);
});

test("the hashes are those that the block pool keeps", () => {
  const hasher = new PrefixHasher(key);
  const out = new Uint32Array(hashLanes);
  hasher.block(hasher.root("tenant"), 0, Int32Array.from(tokens), 0, 16, out, 0);
  const [first] = prefixBlockHashes(tokens, { blockSize: 16, key, salt: "tenant" });
  assert.equal(first, Array.from(out, (lane) => lane.toString(16).padStart(8, "0")).join(""));
});

test("a malformed key or block size is refused", () => {
  assert.throws(() => prefixBlockHashes(tokens, { blockSize: 0, key }), { code: "invalid_option" });
  assert.throws(() => prefixBlockHashes(tokens, { blockSize: 1.5, key }), { code: "invalid_option" });
  assert.throws(() => prefixBlockHashes(tokens, { blockSize: 4, key: new Uint32Array(2) }), {
    code: "invalid_option",
  });
});
