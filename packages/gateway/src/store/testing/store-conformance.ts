import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { RateBucket, RateShare, SharedStore, SpendingWindow } from "../shared-store.js";

let names = 0;

/** A window of its own, that began before now and goes on. */
export function testWindow(limit: number): SpendingWindow {
  const now = Date.now();
  return { key: `w${process.pid}-${++names}`, limit, startsAtMs: now - 1000, endsAtMs: now + 3_600_000 };
}

/** What every store promises, asked of one. `open` gives views of the same state, as several instances have them. */
export function testStore(name: string, open: () => SharedStore, skip: string | false = false): void {
  const check = (what: string, run: (store: SharedStore, other: SharedStore) => Promise<void>): void => {
    test(`${name}: ${what}`, { skip }, () => run(open(), open()));
  };

  check("grants what is left, between the least and what is wanted, and never more", async (store, other) => {
    const window = testWindow(100);
    assert.equal(await store.take(window, 60, 60), 60);
    assert.equal(await other.take(window, 60, 60), 0, "less is left than the least");
    assert.equal(await other.take(window, 60, 1), 40, "what is left");
    assert.equal(await store.take(window, 1, 1), 0);
    assert.equal(await store.taken(window), 100);
    await other.giveBack(window, 25);
    assert.equal(await store.take(window, 30, 1), 25);
    await store.giveBack(window, 1000);
    assert.equal(await store.taken(window), 0, "no more comes back than was taken");
    await store.giveBack(window, 5);
    assert.equal(await store.taken(window), 0);
  });

  check("counts large amounts exactly", async (store) => {
    const limit = 2 ** 53 - 1;
    const window = testWindow(limit);
    assert.equal(await store.take(window, limit - 1, 1), limit - 1);
    assert.equal(await store.take(window, 2, 1), 1);
    await store.giveBack(window, limit - 3);
    assert.equal(await store.taken(window), 3);
  });

  check("200 takers at once share a window for 100", async (store, other) => {
    const window = testWindow(100);
    const grants = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => (index % 2 === 0 ? store : other).take(window, 1, 1)),
    );
    assert.equal(
      grants.reduce((sum, granted) => sum + granted, 0),
      100,
    );
  });

  check("a limit that shrinks below what is taken grants nothing", async (store) => {
    const window = testWindow(10);
    await store.take(window, 8, 8);
    assert.equal(await store.take({ ...window, limit: 5 }, 1, 1), 0);
  });

  check("a rate grants its burst, then as time passes", async (store, other) => {
    const slow = { key: `r${process.pid}-${++names}`, perSecond: 0.001, burst: 10 };
    const share = (amount: number): RateShare => ({ bucket: slow, amount });
    assert.equal(await store.takeRates([share(7)]), undefined);
    assert.equal(await other.takeRates([share(3)]), undefined);
    const refused = await store.takeRates([share(1)]);
    assert.equal(refused?.index, 0);
    assert.ok(refused.waitMs > 900_000 && refused.waitMs <= 1_000_000, String(refused.waitMs));
    await other.giveBackRates([share(4)]);
    assert.notEqual(await store.takeRates([share(5)]), undefined);
    assert.equal(await store.takeRates([share(4)]), undefined);
    await store.giveBackRates([share(1e6)]);
    assert.notEqual(await store.takeRates([share(11)]), undefined, "no more comes back than the burst");
    assert.equal(await store.takeRates([share(10)]), undefined);
    await store.giveBackRates([{ bucket: { ...slow, key: `${slow.key}-none` }, amount: 5 }]);
    const fast = { key: `r${process.pid}-${++names}`, perSecond: 200, burst: 1 };
    assert.equal(await store.takeRates([{ bucket: fast, amount: 1 }]), undefined);
    let waits = 0;
    while ((await other.takeRates([{ bucket: fast, amount: 1 }])) !== undefined && waits++ < 1000)
      await sleep(5);
    assert.ok(waits < 1000, "the bucket fills again");
  });

  check("several rates are taken together or not at all", async (store, other) => {
    const bucket = (burst: number): RateBucket => ({
      key: `r${process.pid}-${++names}`,
      perSecond: 0.001,
      burst,
    });
    const [wide, narrow] = [bucket(100), bucket(3)];
    const both = [
      { bucket: wide, amount: 10 },
      { bucket: narrow, amount: 1 },
    ];
    for (let times = 0; times < 3; times += 1)
      assert.equal(await (times % 2 === 0 ? store : other).takeRates(both), undefined);
    assert.equal((await store.takeRates(both))?.index, 1);
    assert.equal(
      await other.takeRates([{ bucket: wide, amount: 70 }]),
      undefined,
      "the refused one took nothing",
    );
    assert.equal((await store.takeRates([{ bucket: wide, amount: 1 }]))?.index, 0);
    await store.giveBackRates(both);
    assert.equal(await other.takeRates(both), undefined);
    const twice = { bucket: bucket(3), amount: 2 };
    assert.equal((await store.takeRates([twice, twice]))?.index, 1, "one bucket asked twice");
    assert.equal(await store.takeRates([]), undefined);
    const taker = bucket(50);
    const refusals = await Promise.all(
      Array.from({ length: 100 }, async (_, index) =>
        (index % 2 === 0 ? store : other).takeRates([
          { bucket: taker, amount: 1 },
          { bucket: bucket(1), amount: 1 },
        ]),
      ),
    );
    assert.equal(refusals.filter((one) => one === undefined).length, 50);
  });

  check("places are held by owners and come free when an owner is silent", async (store, other) => {
    const pool = { key: `s${process.pid}-${++names}`, limit: 5 };
    assert.equal(await store.holdSlots(pool, "a", 3, 60_000), 3);
    assert.equal(await other.holdSlots(pool, "b", 3, 60_000), 2);
    assert.equal(await store.holdSlots(pool, "a", 1, 60_000), 1);
    assert.equal(await other.holdSlots(pool, "b", 9, 60_000), 4);
    assert.equal(await other.holdSlots(pool, "b", 0, 60_000), 0);
    assert.equal(await store.holdSlots(pool, "a", 9, 1), 5);
    let held = 0;
    for (let tries = 0; held === 0 && tries < 1000; tries++) {
      await sleep(2);
      held = await other.holdSlots(pool, "b", 2, 60_000);
    }
    assert.equal(held, 2);
  });

  check("documents are replaced only by a writer that has read the latest", async (store, other) => {
    const document = `d${process.pid}-${++names}`;
    assert.equal(await store.readDocument(document), undefined);
    assert.equal(await store.writeDocument(document, "one", 0), true);
    assert.equal(await other.writeDocument(document, "other", 0), false);
    const read = (await other.readDocument(document))!;
    assert.deepEqual(read, { value: "one", version: 1 });
    const writes = await Promise.all(
      [store, other, store].map((view, index) => view.writeDocument(document, `two-${index}`, read.version)),
    );
    assert.equal(writes.filter(Boolean).length, 1);
    assert.equal((await store.readDocument(document))!.version, 2);
  });

  check("blobs last until they expire or are deleted", async (store, other) => {
    const key = `b${process.pid}-${++names}`;
    await store.writeBlob(key, "Grüße", 60_000);
    assert.equal(await other.readBlob(key), "Grüße");
    await other.deleteBlobs([key, "none"]);
    assert.equal(await store.readBlob(key), undefined);
    await store.writeBlob(key, "short", 1);
    await sleep(10);
    assert.equal(await store.readBlob(key), undefined);
    await store.deleteBlobs([]);
  });

  check("amounts that cannot be counted are errors", async (store) => {
    const window = testWindow(10);
    for (const [want, least] of [
      [0, 0],
      [1.5, 1],
      [NaN, 1],
      [1, 2],
      [2 ** 53, 1],
    ] as const)
      await assert.rejects(async () => store.take(window, want, least), { code: "invalid_option" });
    await assert.rejects(
      async () => store.takeRates([{ bucket: { key: "x", perSecond: 1, burst: 1 }, amount: -1 }]),
      {
        code: "invalid_option",
      },
    );
  });
}
