import assert from "node:assert/strict";
import test from "node:test";
import {
  checkOptionNames,
  defaultTextOf,
  formatBinaryBytes,
  option,
  type OptionType,
  parseJsonObject,
  resolveOptions,
  valueType,
} from "./options.js";

function refuses(type: OptionType<unknown>, texts: readonly string[], message = /^expected /): void {
  for (const text of texts)
    assert.throws(() => type.parse(text, undefined), { code: "invalid_option", message }, text);
}

test("sizes take binary units in any spelling", () => {
  const size = valueType.bytes();
  assert.equal(size.parse("4GiB", undefined), 4 * 2 ** 30);
  assert.equal(size.parse("1.5g", undefined), 1.5 * 2 ** 30);
  assert.equal(size.parse("512 MB", undefined), 512 * 2 ** 20);
  assert.equal(size.parse("1000", undefined), 1000);
  refuses(size, ["", "GiB", "-1", "4 gigs", "1e9", "NaN"], /such as 4GiB or 512MiB/);
  refuses(valueType.bytes({ min: 1024, max: 2 ** 31 }), ["10"], /from 1 KiB to 2 GiB/);
});

test("integers take vLLM's suffixes and keep to their range", () => {
  const positive = valueType.integer({ min: 1 });
  assert.equal(positive.parse("4096", undefined), 4096);
  assert.equal(positive.parse("4K", undefined), 4096);
  assert.equal(positive.parse("4k", undefined), 4000);
  assert.equal(valueType.integer({ min: 0, max: 65_535 }).parse("0", undefined), 0);
  assert.equal(valueType.integer({ min: -1 }).parse("-1", undefined), -1);
  refuses(positive, ["0", "-3", "1.5", "x", "", "99999999999999999999"], /an integer of at least 1/);
  refuses(valueType.integer({ min: 0, max: 65_535 }), ["70000"], /from 0 to 65535/);
});

test("numbers are finite and in range", () => {
  assert.equal(valueType.number({ min: 0, max: 1 }).parse("0.5", undefined), 0.5);
  refuses(valueType.number({ min: 0, max: 1 }), ["NaN", "Infinity", "-0.1", "2", ""]);
  refuses(valueType.number({ above: 0, max: 1 }), ["0"], /above 0 and at most 1/);
});

test("times are given in seconds and kept in milliseconds", () => {
  assert.equal(valueType.seconds().parse("1.5", undefined), 1500);
  assert.equal(valueType.seconds().show(30_000), "30 s");
  refuses(valueType.seconds(), ["", "-1", "1e9", "soon"]);
});

test("lists and pairs gather what is given one after the other", () => {
  const names = valueType.list(valueType.choice(["a", "b"]));
  assert.deepEqual(names.parse("b", names.parse("a", undefined)), ["a", "b"]);
  refuses(names, ["c"], /one of a, b/);
  const limits = valueType.pairs(valueType.number());
  assert.deepEqual(limits.parse("y=2", limits.parse(" x = 1", undefined)), { x: 1, y: 2 });
  refuses(limits, ["x", "=1", "x=", "x=one"]);
});

test("JSON flags are objects", () => {
  assert.deepEqual(parseJsonObject('{"a": 1}'), { a: 1 });
  for (const wrong of ["", "[]", "1", "null", "{"])
    assert.throws(() => parseJsonObject(wrong), { code: "invalid_option" });
});

test("defaults fill in what is absent or undefined, and every value is checked by name", () => {
  const rows = {
    seats: option.integer("--seats <n>", "chairs", { min: 1, default: 4 }),
    note: option.text("--note <text>", "what to remember", { defaultText: "none" }),
    loud: option.toggle("--loud", "speak up"),
  };
  assert.deepEqual(resolveOptions(rows, { seats: undefined, loud: true }), {
    seats: 4,
    note: undefined,
    loud: true,
  });
  assert.throws(() => resolveOptions(rows, { seats: 0 }, (key) => key.toUpperCase()), {
    code: "invalid_option",
    param: "SEATS",
    message: "seats: expected an integer of at least 1, got 0",
  });
  assert.deepEqual(Object.values(rows).map(defaultTextOf), ["4", "none", "off"]);
});

test("an unknown name is refused with the nearest one", () => {
  assert.doesNotThrow(() => checkOptionNames({ port: 1 }, ["port", "host"], "it"));
  assert.throws(() => checkOptionNames({ prot: 1 }, ["port", "host"], "it"), {
    code: "invalid_option",
    param: "prot",
    message: 'it has no option "prot"; did you mean port?',
  });
});

test("sizes are shown in the largest unit that leaves at least one", () => {
  const shown = [0, 512, 1536, 40_000, 1023 * 1024, 2 ** 31, 1.5 * 2 ** 40].map(formatBinaryBytes);
  assert.deepEqual(shown, ["0 bytes", "512 bytes", "1.5 KiB", "39.1 KiB", "1023 KiB", "2 GiB", "1.5 TiB"]);
});
