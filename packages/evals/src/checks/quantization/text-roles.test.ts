import assert from "node:assert/strict";
import test from "node:test";
import { textRoles } from "./text-roles.js";

/** One letter for each character: p(rose), k(ey), v(alue), a(rgument), - for structure. */
function painted(text: string): string {
  const letters = { prose: "p", json_key: "k", json_value: "v", tool_argument: "a", structure: "-" } as const;
  return textRoles(text)
    .map((role) => letters[role])
    .join("");
}

test("prose is prose, JSON is taken apart", () => {
  assert.equal(painted("Hi [1]."), "ppppppp");
  assert.equal(painted('{"ab":"cd","e":12}'), "--kk---vv---k--vv-");
  assert.equal(painted("[true,{}]"), "-vvvv----");
  assert.equal(painted(""), "");
});

test("what cannot be parsed is prose", () => {
  for (const text of ['{"a": ', "{'a': 1}", "<tool_call>{</tool_call>", '"a"'])
    assert.match(painted(text), /^p*$/, text);
});

test("of a call, the values of arguments are arguments; name and keys are not", () => {
  const call = '{"name":"find","arguments":{"city":"Oslo","at":[1]},"id":7}';
  const marked = `Well.<tool_call>${call}</tool_call>`;
  const roles = painted(marked);
  const of = (part: string): string => roles.slice(marked.indexOf(part), marked.indexOf(part) + part.length);
  assert.equal(of("Well."), "ppppp");
  assert.equal(of("find"), "vvvv");
  assert.equal(of("city"), "kkkk");
  assert.equal(of("Oslo"), "aaaa");
  assert.equal(of("[1]"), "-a-");
  assert.equal(of('"id":7'), "-kk--v");
  assert.equal(of("<tool_call>"), "-".repeat(11));
  assert.equal(painted('```json\n{"a":1}\n```'), `${"-".repeat(8)}--k--v-${"-".repeat(4)}`);
});
