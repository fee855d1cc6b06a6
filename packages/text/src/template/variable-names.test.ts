import assert from "node:assert/strict";
import { test } from "node:test";
import { compileChatTemplate } from "./compile-chat-template.js";

test("a template may have any number of parts", () => {
  const { variables } = compileChatTemplate("{{a}}".repeat(150_000));
  assert.deepEqual([...(variables ?? [])], ["a"]);
});

test("a template's variables are the names that it reads, wherever they stand", () => {
  const { variables } = compileChatTemplate(
    "{%- macro m(a) %}{{ a ~ inner }}{% endmacro %}{% for x in messages if cond %}{{ x.attribute['key'][index] | f(arg) }}{% endfor %}" +
      "{% if enable_thinking is defined and not (y is not none) %}{{ m(named=value) }}{% set z = other %}{% endif %}'text'",
  );
  assert.ok(variables !== undefined);
  const read = [
    "inner",
    "messages",
    "cond",
    "x",
    "index",
    "arg",
    "enable_thinking",
    "y",
    "m",
    "value",
    "other",
    "z",
    "a",
  ];
  assert.deepEqual([...variables].toSorted(), read.toSorted());
});
