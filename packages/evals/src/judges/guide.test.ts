import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { parse } from "yaml";
import { evaluatorTable } from "../evaluators/table.js";
import { FakeJudge } from "./testing/fake-judge.js";

const guide = new URL("../../../../docs/guide/judges.md", import.meta.url);

it("what the guide writes in YAML makes evaluators", () => {
  const blocks = [...readFileSync(guide, "utf8").matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(
    (match) => parse(match[1] ?? "") as unknown,
  );
  const specs = blocks.flatMap((block) =>
    Array.isArray(block) ? (block as unknown[]) : (block as { readonly evaluators: unknown[] }).evaluators,
  );
  assert.equal(specs.length, 4);
  const judge = new FakeJudge(() => ({ label: "pass" }));
  const names = evaluatorTable.create(specs, { judge }).map(({ name }) => name);
  assert.deepEqual(names, ["groundedness", "is_compliant", "names_the_source", "helpful"]);
});
