import assert from "node:assert/strict";
import { test } from "node:test";
import { PrefixHeat } from "./prefix-heat.js";

const none = { cacheScope: undefined, cacheSalt: undefined };
const tokens = Int32Array.from({ length: 64 }, (_, index) => index);

test("what requests find most, of late, is hottest, and comes within the tokens asked for", () => {
  const heat = new PrefixHeat();
  heat.note("a", tokens, 16, none, 0);
  heat.note("b", tokens, 48, { cacheScope: "tenant t", cacheSalt: "s" }, 0);
  heat.note("b", tokens, 48, { cacheScope: "tenant t", cacheSalt: "s" }, 0);
  const [first, second] = heat.hottest(64, 0);
  assert.deepEqual(
    [first?.tokens, first?.cacheScope, first?.cacheSalt, first?.heat],
    [tokens.slice(0, 48), "tenant t", "s", 2],
  );
  assert.equal(second?.heat, 1);
  assert.deepEqual(
    heat.hottest(47, 0).map((prefix) => prefix.tokens.length),
    [16],
  );
  heat.note("a", tokens, 16, none, 600_000);
  assert.deepEqual(
    heat.hottest(64, 600_000).map((prefix) => prefix.heat),
    [1.25, 0.5],
  );
  heat.clear();
  assert.deepEqual(heat.hottest(64), []);
});

test("of many prefixes the coldest make room, also for a long one, which is then as hot as they were", () => {
  const heat = new PrefixHeat();
  for (let index = 0; index < 300; index += 1)
    for (let times = 0; times <= 300 - index; times += 1) heat.note(`${index}`, tokens, 16, none, 0);
  const kept = heat.hottest(2 ** 20, 0);
  assert.equal(kept.length, 256);
  assert.equal(kept[0]?.heat, 301);
  const length = 2 ** 18 - 160;
  heat.note("long", new Int32Array(length), length, none, 0);
  const rest = heat.hottest(2 ** 20, 0);
  assert.equal(rest.length, 11);
  assert.deepEqual(
    rest.slice(0, 10).map(({ heat: of }) => of),
    kept.slice(0, 10).map(({ heat: of }) => of),
  );
  assert.equal(rest.at(-1)?.tokens.length, length);
  heat.note("too long", new Int32Array(2 ** 18 + 16), 2 ** 18 + 16, none, 0);
  assert.deepEqual(heat.hottest(2 ** 20, 0), rest);
});
