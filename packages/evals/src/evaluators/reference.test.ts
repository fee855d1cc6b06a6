import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import test from "node:test";
import { loadEvaluatorTable } from "./load-table.js";
import { evaluatorTable } from "./table.js";
import { sampleOf, scoreOf } from "./testing/sample.js";

const page = readFileSync(new URL("../../../../docs/reference/evaluators.md", import.meta.url), "utf8");

/** What a line of the page says of an evaluator before its description. */
const documented = new Map(
  Array.from(page.matchAll(/^\| `(\w+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \|/gm), ([, name, ...cells]) => [
    name!,
    cells,
  ]),
);

test("docs/reference/evaluators.md lists every evaluator with what it reads and gives, and no other", () => {
  for (const { name, inputs, output, passThreshold, description } of evaluatorTable.entries) {
    const cells = [inputs.join(", "), output, String(passThreshold)];
    assert.deepEqual(
      documented.get(name),
      cells,
      `the page needs the line: | \`${name}\` | ${cells.join(" | ")} | ${description} |`,
    );
  }
  assert.deepEqual(
    [...documented.keys()].filter((name) => evaluatorTable.get(name) === undefined),
    [],
  );
});

test("the page's module adds a row that scores", async () => {
  const [, source] = /```ts\n(.*?)```/s.exec(page) ?? [];
  // beside this test, where the package's name is found
  const module = new URL("documented-evaluators.mjs", import.meta.url);
  writeFileSync(module, source!);
  try {
    const table = await loadEvaluatorTable([module.href]);
    const [evaluator] = table.create(["ends_politely"]);
    const score = await scoreOf(evaluator!, sampleOf({ output: "Here it is. Thank you" }));
    assert.deepEqual(score, { status: "scored", value: 1, passed: true });
  } finally {
    rmSync(module);
  }
});
