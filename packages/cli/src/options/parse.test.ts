import assert from "node:assert/strict";
import test from "node:test";
import { InvalidArgumentError } from "commander";
import { parseBytes, parseCount, parseJsonObject, parseNumber } from "./parse.js";

test("sizes take binary units in any spelling", () => {
  assert.equal(parseBytes("4GiB"), 4 * 2 ** 30);
  assert.equal(parseBytes("1.5g"), 1.5 * 2 ** 30);
  assert.equal(parseBytes("512 MB"), 512 * 2 ** 20);
  assert.equal(parseBytes("1000"), 1000);
  for (const wrong of ["", "GiB", "-1", "4 gigs", "1e9", "NaN"])
    assert.throws(() => parseBytes(wrong), InvalidArgumentError);
});

test("counts take vLLM's shorthands and keep to their range", () => {
  assert.equal(parseCount(1)("4096"), 4096);
  assert.equal(parseCount(1)("4K"), 4096);
  assert.equal(parseCount(1)("4k"), 4000);
  assert.equal(parseCount(0, 65_535)("0"), 0);
  for (const wrong of ["0", "-3", "1.5", "x", "", "99999999999999999999"]) {
    assert.throws(() => parseCount(1)(wrong), InvalidArgumentError);
  }
  assert.throws(() => parseCount(0, 65_535)("70000"), /from 0 to 65535/);
});

test("numbers are finite and in range", () => {
  assert.equal(parseNumber(0, 1)("0.5"), 0.5);
  for (const wrong of ["NaN", "Infinity", "-0.1", "2", ""])
    assert.throws(() => parseNumber(0, 1)(wrong), InvalidArgumentError);
});

test("JSON flags are objects", () => {
  assert.deepEqual(parseJsonObject('{"a": 1}'), { a: 1 });
  for (const wrong of ["", "[]", "1", "null", "{"])
    assert.throws(() => parseJsonObject(wrong), InvalidArgumentError);
});
