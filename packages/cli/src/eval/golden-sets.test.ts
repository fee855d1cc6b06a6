import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { detectFormat, type EvalCase, openDataset } from "@octavo/evals";

const generator = fileURLToPath(
  new URL("../../../../models/octavo-mini/dist/generator/main.js", import.meta.url),
);

async function golden(task: string): Promise<EvalCase[]> {
  const folder = await mkdtemp(join(tmpdir(), "octavo-golden-"));
  try {
    const path = join(folder, "golden.jsonl");
    const written = spawnSync(process.execPath, [generator, "--task", task, "--count", "40"]);
    await writeFile(path, written.stdout);
    assert.equal(await detectFormat(path), "jsonl");
    const cases: EvalCase[] = [];
    for await (const evalCase of (await openDataset(path)).cases()) cases.push(evalCase);
    return cases;
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("what octavo-mini's generator writes are golden sets, each case with a gold", async () => {
  for (const task of ["chat", "extraction", "tools", "grounded", "copying", "retrieval"]) {
    const cases = await golden(task);
    assert.equal(cases.length, 40, task);
    for (const { id, tags, expected, messages } of cases) {
      assert.match(id, new RegExp(`^${task}-heldout-1-`));
      assert.equal(tags[0], task);
      assert.notEqual(messages.at(-1)?.role, "assistant");
      assert.ok(expected.outputs !== undefined || (expected.toolCalls?.length ?? 0) > 0, id);
      if (task === "extraction") assert.ok(expected.schema !== undefined, id);
    }
  }
});
