import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { concerns } from "./triggers.js";

test("a gate is concerned by the files that its patterns take", () => {
  const cases: readonly (readonly [readonly string[], string, boolean])[] = [
    [["prompts/**"], "prompts/support/refund.md", true],
    [["prompts/**"], "prompts", false],
    [["prompts/*"], "prompts/support/refund.md", false],
    [["**/*.yaml"], "vllm.yaml", true],
    [["**/*.yaml"], "deploy/eu/vllm.yaml", true],
    [["deploy/{vllm,octavo}.yaml"], "deploy/octavo.yaml", true],
    [["deploy/{vllm,octavo}.yaml"], "deploy/other.yaml", false],
    [["src/**", "!src/**/*.md"], "src/a/README.md", false],
    [["src/**", "!src/**/*.md", "src/keep.md"], "src/keep.md", true],
    [["model?.json"], "model1.json", true],
    [["a.b"], "aXb", false],
    [["x**/b"], "xx/yx/b", true],
    [["{a,b{c,d}}/*.ts"], "bd/x.ts", true],
    [["a/**/b"], "a/b", true],
    [["a/**/b"], "a/xb", false],
    [["**"], "any/thing", true],
    [["./docs/**"], "./docs/x", true],
    [["(x|y)+$"], "(x|y)+$", true],
  ];
  for (const [patterns, file, expected] of cases)
    assert.equal(concerns(patterns, [file]), expected, `${patterns.join(" ")} on ${file}`);
  assert.equal(concerns(["a/**"], []), false);
});

test("a pattern that cannot be read says so, and a hostile one takes no time", () => {
  assert.throws(() => concerns(["{a,b"], ["a"]), OctavoError);
  assert.throws(() => concerns(["x".repeat(600)], ["a"]), OctavoError);
  assert.throws(() => concerns(["{a,b}".repeat(20)], ["a"]), OctavoError);
  assert.equal(concerns([`${"**/".repeat(100)}end`], [`${"a/".repeat(200)}no`]), false);
  assert.equal(concerns([`${"*".repeat(40)}b`], ["a".repeat(60)]), false);
});
