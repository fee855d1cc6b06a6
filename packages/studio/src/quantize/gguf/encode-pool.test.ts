import assert from "node:assert/strict";
import { test } from "node:test";
import { TestRandom } from "@octavo/text/testing/random";
import type { OctavoError } from "@octavo/protocol";
import { EncodePool } from "./encode-pool.js";
import { encodeStretch } from "./encoded-stretch.js";
import { type GgmlTypeName, ggmlTypes } from "./ggml-types.js";

test("threads give the bytes that this one gives, in the order asked for", async () => {
  using pool = new EncodePool(3);
  const random = new TestRandom(3);
  const names = Object.keys(ggmlTypes) as GgmlTypeName[];
  const stretches = names.map((name) => ({ name, values: random.floats(1024, 1) }));
  const expected = stretches.map(({ name, values }) => encodeStretch(ggmlTypes[name], values.slice()));
  const found = await Promise.all(stretches.map(({ name, values }) => pool.encode(name, values)));
  for (const [index, { bytes, error }] of found.entries()) {
    assert.deepEqual(Buffer.from(bytes), Buffer.from(expected[index]!.bytes), names[index]);
    assert.deepEqual(error, expected[index]!.error);
  }
});

test("a stretch whose thread fails is an error, and the others are encoded", async () => {
  using pool = new EncodePool(1);
  const bad = pool.encode("no such type" as GgmlTypeName, new Float32Array(256));
  const good = pool.encode("Q4_K", new Float32Array(256));
  await assert.rejects(bad, { code: "internal_error" });
  assert.equal((await good).bytes.byteLength, ggmlTypes.Q4_K.blockBytes);
});

test("a pool that is disposed leaves nothing that waits", async () => {
  const pool = new EncodePool(1);
  const begun = pool.encode("Q4_K", new Float32Array(2 ** 20));
  const waiting = pool.encode("Q4_K", new Float32Array(256));
  const settled = Promise.allSettled([begun, waiting]);
  pool[Symbol.dispose]();
  for (const stretch of await settled) {
    assert.equal(stretch.status, "rejected");
    assert.equal((stretch.reason as OctavoError).code, "internal_error");
  }
});
