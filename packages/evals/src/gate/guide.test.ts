import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { evaluationVocabulary } from "../run/plan-evaluation.js";
import { parseGateConfig } from "./config.js";
import { exitCodes } from "./exit-codes.js";

const guide = readFileSync(new URL("../../../../docs/guide/release-gate.md", import.meta.url), "utf8");

test("the guide's eval.yaml is one", () => {
  const [, text = ""] = /```yaml\n(version: 1\n[\s\S]*?)```/.exec(guide) ?? [];
  const { assertions, checks } = parseGateConfig("release-gate.md", text, evaluationVocabulary);
  assert.equal(assertions.length, 8);
  assert.equal(checks.length, 2);
});

test("the guide's table has every exit code", () => {
  const rows = [...guide.matchAll(/^\| (\d+) \| (`[^|]+) \|/gm)].flatMap(([, code, names = ""]) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name]) => [name, Number(code)] as const),
  );
  assert.deepEqual(Object.fromEntries(rows), exitCodes);
});
