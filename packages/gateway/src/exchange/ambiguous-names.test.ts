import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "@octavo/statistics";
import { requireUnambiguous } from "./ambiguous-names.js";

function check(text: string): void {
  requireUnambiguous(Buffer.from(text), JSON.parse(text) as Record<string, unknown>);
}

test("names that stand twice are refused wherever and however they are written", () => {
  for (const text of [
    String.raw`{"max_tokens":9,"max_tokens":100000}`,
    String.raw`{"model":"a","messages":[{"role":"user","content":"good","content":"bad"}]}`,
    String.raw`{"messages":[],"messag\u0065s":[1]}`,
    String.raw`{"a\\":1,"b":"\\\"","b" : 2}`,
    String.raw`{"x":{"y":[{"z":1, "z" : {}}]}}`,
    '{"":1,"":2}',
    String.raw`{"__proto__":1,"__proto__":2}`,
  ])
    assert.throws(() => check(text), { code: "invalid_json" }, text);
});

test("names that differ from one with a meaning in case alone are refused where they would have it", () => {
  for (const text of [
    '{"messages":[],"Messages":[{"role":"user","content":"bad"}]}',
    '{"MAX_TOKENS":100000}',
    '{"max_to\u212aens":1}',
    '{"me\u017fsages":[]}',
    '{"messages":[{"role":"user","content":"good","Content":"bad"}]}',
    '{"messages":[{"role":"user","content":[{"type":"text","text":"good","TEXT":"bad"}]}]}',
  ])
    assert.throws(() => check(text), { code: "invalid_request" }, text);
});

test("whatever one reader alone can understand passes", () => {
  check(
    '{"tools":[{"function":{"parameters":{"properties":{"Content":{},"Text":{}}}}}],"metadata":{"User":"x"}}',
  );
  check(String.raw`{"a\"":"\":","b":"x\\","c" :[":","\\\":"],"__proto__":{"x":1}}`);
  const random = new Random(7);
  const texts = ['"', "\\", ":", '\\"', '":', "é", "a", "\u2028", "{", "}", ",", " "];
  const text = (): string =>
    Array.from(
      { length: Math.floor(random.uniform() * 6) },
      () => texts[Math.floor(random.uniform() * texts.length)],
    ).join("");
  const value = (depth: number): unknown => {
    const kind = Math.floor(random.uniform() * (depth > 3 ? 2 : 4));
    if (kind === 0) return text();
    if (kind === 1) return random.uniform() < 0.5 ? null : 1.5;
    const items = Array.from({ length: Math.floor(random.uniform() * 4) }, () => value(depth + 1));
    return kind === 2 ? items : Object.fromEntries(items.map((item, index) => [`${index}_${text()}`, item]));
  };
  for (let round = 0; round < 3000; round += 1) {
    const object = { first: value(0), second: value(0) };
    check(JSON.stringify(object));
    check(JSON.stringify(object, undefined, 2));
    // the same with one more member of a name that is there
    const json = JSON.stringify(object);
    assert.throws(() => check(`${json.slice(0, -1)},"second":${JSON.stringify(value(2))}}`), {
      code: "invalid_json",
    });
  }
});
