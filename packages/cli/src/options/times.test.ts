import assert from "node:assert/strict";
import test from "node:test";
import { parseDuration, parsePast } from "./times.js";

test("time spans", () => {
  assert.equal(parseDuration("90s"), 90_000);
  assert.equal(parseDuration("1h30m"), 5_400_000);
  assert.equal(parseDuration("0.5d"), 43_200_000);
  assert.equal(parseDuration("250ms"), 250);
  for (const bad of ["", "5", "m", "5 minutes", "0s", "-5m", "5m!"])
    assert.throws(() => parseDuration(bad), { code: "invalid_option" }, bad);
});

test("times in the past", () => {
  assert.equal(parsePast("1h", 10_000_000), 6_400_000);
  assert.equal(parsePast("now", 5), 5);
  assert.equal(parsePast("2026-01-02T03:04:05Z"), Date.UTC(2026, 0, 2, 3, 4, 5));
  for (const bad of ["yesterday", "2026-99-99", ""])
    assert.throws(() => parsePast(bad), { code: "invalid_option" }, bad);
});
