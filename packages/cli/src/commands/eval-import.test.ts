import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../main.js", import.meta.url));
let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-import-"));
});
after(() => rm(folder, { recursive: true }));

interface Ended {
  readonly code: unknown;
  readonly err: string;
}

function octavo(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [main, ...args], (error, _out, err) =>
      resolve({ code: error === null ? 0 : error.code, err }),
    );
  });
}

test("a table of others becomes cases, by the names of its columns", async () => {
  const file = join(folder, "table.csv");
  await writeFile(file, 'Question;Right answer\n"Why; and how?";So\n');
  const out = join(folder, "out");
  const columns = ["--columns", "input=Question", "expected=Right answer"];
  const { code, err } = await octavo("eval", "import", file, "--out", out, "--delimiter", ";", ...columns);
  assert.equal(code, 0, err);
  const [line = ""] = (await readFile(join(out, "cases.jsonl"), "utf8")).split("\n");
  const { messages, expected } = JSON.parse(line) as Record<string, unknown>;
  assert.deepEqual(messages, [{ role: "user", content: "Why; and how?" }]);
  assert.deepEqual(expected, { outputs: ["So"] });
});

test("columns that no case has and flags that no format has are refused before anything is written", async () => {
  const file = join(folder, "other.csv");
  await writeFile(file, "Question\nWhy?\n");
  const config = join(folder, "promptfooconfig.yaml");
  await writeFile(config, "prompts: ['{{question}}']\n");
  const out = join(folder, "none");
  for (const [path, flags, says] of [
    [file, ["--columns", "inptu=Question"], /a case has no field "inptu"/],
    [file, ["--answers", file], /answers: .* is read as csv/],
    [config, ["--delimiter", ";"], /--delimiter: .* is a promptfoo configuration/],
  ] as const) {
    const { code, err } = await octavo("eval", "import", path, "--out", out, ...flags);
    assert.equal(code, 4, err);
    assert.match(err, says);
  }
  await assert.rejects(readFile(join(out, "cases.jsonl")));
});
