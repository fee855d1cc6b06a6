import assert from "node:assert/strict";
import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { EmbeddedStore } from "./embedded-store.js";
import { requireSharedStore, storeSchema } from "./store-config.js";
import { testStore, testWindow } from "./testing/store-conformance.js";

const shared = new EmbeddedStore({ nowMs: Date.now });
testStore("embedded store", () => shared);

const hour = { key: "h", limit: 100, startsAtMs: 0, endsAtMs: 3_600_000 };

test("a generic cell rate never grants more than its burst and what time has brought", () => {
  let now = 0;
  const store = new EmbeddedStore({ nowMs: () => now });
  const bucket = { key: "k", perSecond: 10, burst: 5 };
  const take = (amount: number) => store.takeRates([{ bucket, amount }]);
  let granted = 0;
  for (; now <= 20_000; now += 37) {
    for (let times = 0; times < 3; times += 1) if (take(1) === undefined) granted += 1;
    assert.ok(granted <= 5 + (now / 1000) * 10);
  }
  assert.ok(granted >= 195, "and nearly as much when asked all the time");
  now += 60_000;
  assert.equal(take(5), undefined);
  assert.deepEqual(take(2), { index: 0, waitMs: 200 });
  now += 200;
  assert.equal(take(2), undefined);
});

test("a process that was killed leaves what it granted", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-store-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "state");
  const first = new EmbeddedStore({ nowMs: () => 1, file });
  first.take(hour, 30, 30);
  first.giveBack(hour, 10);
  await first.writeDocument("rollout", "{}", 0);
  // not closed: as after kill -9, in the middle of a line
  await appendFile(file, '{"window":"h","tak');
  const second = new EmbeddedStore({ nowMs: () => 2, file });
  assert.equal(second.taken(hour), 20);
  assert.deepEqual(await second.readDocument("rollout"), { value: "{}", version: 1 });
  second.take(hour, 80, 80);
  await second.close();
  await assert.rejects(async () => second.giveBack(hour, 1), { code: "store_unavailable" });
  assert.equal(new EmbeddedStore({ nowMs: () => 3, file }).take(hour, 1, 1), 0);
  const late = new EmbeddedStore({ nowMs: () => 9_000_000, file });
  assert.equal(late.taken(hour), 0, "windows that ended are gone");
  await late.close();
  assert.ok(!(await readFile(file, "utf8")).includes("window"));
});

test("a damaged file is an error, not a fresh start", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-store-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "state");
  await writeFile(file, '{"window":"h","taken":"7","endsAtMs":1}\n');
  assert.throws(() => new EmbeddedStore({ nowMs: () => 0, file }), {
    code: "store_unavailable",
    message: /line 1 is damaged/,
  });
  assert.throws(() => new EmbeddedStore({ nowMs: () => 0, file: join(folder, "none", "state") }), {
    code: "store_unavailable",
  });
});

test("a long history is rewritten, and keeps the sums", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-store-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "state");
  const store = new EmbeddedStore({ nowMs: () => 1, file });
  const window = { ...hour, limit: 1e9 };
  for (let i = 0; i < 50_100; i++) store.take(window, 1, 1);
  assert.ok((await readFile(file, "utf8")).split("\n").length < 200);
  assert.equal(new EmbeddedStore({ nowMs: () => 1, file }).taken(window), 50_100);
});

test("blobs stay within their bounds, the least recently used go", async () => {
  const store = new EmbeddedStore({ nowMs: () => 0, maxBlobBytes: 1000 });
  for (const key of ["a", "b", "c"]) await store.writeBlob(key, "x".repeat(100), 1000);
  await store.readBlob("a");
  await store.writeBlob("d", "x".repeat(100), 1000);
  assert.equal(await store.readBlob("b"), undefined);
  assert.notEqual(await store.readBlob("a"), undefined);
  await store.writeBlob("e", "x".repeat(10_000), 1000);
  assert.equal(await store.readBlob("e"), undefined);
});

test("window keys are independent", async () => {
  const store = new EmbeddedStore({ nowMs: Date.now });
  const [one, two] = [testWindow(1), testWindow(1)];
  assert.equal(store.take(one, 1, 1), 1);
  assert.equal(store.take(two, 1, 1), 1);
});

test("several processes that count need a store that they share", () => {
  const stages = new Map<string, unknown>([["budgets", []]]);
  const store = storeSchema.parse({});
  assert.throws(() => requireSharedStore({ store, stages }, 2), {
    code: "invalid_option",
    message: /^budgets of 2 workers/,
  });
  requireSharedStore({ store, stages }, 1);
  requireSharedStore({ store, stages: new Map([["cache", {}]]) }, 4);
  requireSharedStore({ store: storeSchema.parse({ redis: "redis://x" }), stages }, 4);
  assert.equal(storeSchema.safeParse({ redis: "redis://x", file: "f" }).success, false);
});
