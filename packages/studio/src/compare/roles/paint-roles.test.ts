import assert from "node:assert/strict";
import test from "node:test";
import type { DataMessage } from "../data/cases.js";
import { parseJsonAt } from "./json-tree.js";
import { paintRoles } from "./paint-roles.js";
import { roles } from "./role.js";

/** One letter per character: p(rose), k(ey), v(alue), t(ool argument), - for structure. */
function painted(text: string, message?: DataMessage, mayCallTools = false): string {
  const paint = paintRoles(text, { start: 0, end: text.length, message, mayCallTools });
  return [...paint]
    .map(
      (role) =>
        ({ prose: "p", json_key: "k", json_value: "v", tool_argument: "t", structure: "-" })[roles[role]!],
    )
    .join("");
}

test("prose stays prose, JSON is taken apart", () => {
  assert.equal(painted("Hi there."), "ppppppppp");
  assert.equal(painted('{"ab": "cd", "e": 12}'), "--kk----vv----k---vv-");
  assert.equal(painted('So: {"a": [true]} ok'), "pppp--k----vvvv--ppp");
  assert.equal(painted("[1, 2]"), "-v--v-");
});

test("what only looks like JSON is prose", () => {
  for (const text of [
    "see [1] and {x}",
    "{}",
    "a { b",
    '{"unclosed": ',
    "[not json]",
    '{"a": 01}',
    "{'a': 1}",
  ]) {
    assert.match(painted(text), /^p+$/, text);
  }
});

test("a call's argument values are tool arguments; its name and keys are not", () => {
  const call = '<tool_call>\n{"name": "find", "arguments": {"city": "Oslo", "n": 3}}\n</tool_call>';
  const paint = painted(call, undefined, true);
  const at = (part: string) => paint.slice(call.indexOf(part), call.indexOf(part) + part.length);
  assert.equal(at("Oslo"), "tttt");
  assert.equal(at("3"), "t");
  assert.equal(at("city"), "kkkk");
  assert.equal(at("find"), "vvvv");
  assert.equal(at("<tool_call>"), "-".repeat(11));
  // The same object where no tools were offered is data.
  assert.ok(!painted(call).includes("t"));
});

test("around a message's content is structure; calls of other formats are found by their arguments' text", () => {
  const message: DataMessage = {
    role: "assistant",
    content: "Let me look.",
    tool_calls: [
      { type: "function", function: { name: "find", arguments: { city: "Oslo", days: [3, 14] } } },
    ],
  };
  const text = 'Let me look.\n[find(city="Oslo", days=[3, 14])]<|end|>';
  const isArgument = (index: number) =>
    ["Oslo", "3", "14"].some(
      (part) => index >= text.indexOf(part, 12) && index < text.indexOf(part, 12) + part.length,
    );
  const rest = Array.from({ length: text.length - 12 }, (_, index) => (isArgument(index + 12) ? "t" : "-"));
  assert.equal(painted(text, message, true), "p".repeat(12) + rest.join(""));
});

test("hostile nesting ends soon", () => {
  for (const text of ["[".repeat(50_000), '{"a":'.repeat(20_000), '["x",'.repeat(20_000)]) {
    assert.equal(
      paintRoles(text, { start: 0, end: text.length, message: undefined, mayCallTools: false }).length,
      text.length,
    );
  }
  assert.equal(parseJsonAt(`${"[".repeat(100)}${"]".repeat(100)}`, 0), undefined);
});
