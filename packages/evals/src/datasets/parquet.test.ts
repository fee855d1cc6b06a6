import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { gzipSync } from "node:zlib";
import * as fc from "fast-check";
import { parquetWriteFile } from "hyparquet-writer";
import { ParquetFile } from "./parquet-file.js";
import { parquetDataset } from "./parquet.js";
import { collected } from "./testing/sources.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-parquet-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const numbered = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

async function writeCases(name: string, count: number, rowGroupSize: number): Promise<string> {
  const filename = join(folder, name);
  await Promise.resolve(
    parquetWriteFile({
      filename,
      rowGroupSize,
      columnData: [
        { name: "id", data: numbered(count).map(BigInt), type: "INT64" },
        { name: "question", data: numbered(count).map((index) => `Question ${index}?`), type: "STRING" },
        {
          name: "gold",
          data: numbered(count).map((index) => (index % 2 ? `Answer ${index}` : null)),
          type: "STRING",
        },
        { name: "weight", data: numbered(count).map((index) => index / 4), type: "DOUBLE" },
        { name: "tools", data: numbered(count).map(() => '[{"name":"f"}]'), type: "STRING" },
      ],
    }),
  );
  return filename;
}

test("rows are cases, across row groups", async () => {
  const path = await writeCases("plain.parquet", 25, 10);
  const dataset = await parquetDataset(path);
  assert.equal(dataset.size, 25);
  const cases = await collected(dataset);
  assert.deepEqual(
    cases.map(({ id }) => id),
    numbered(25).map(String),
  );
  assert.equal(cases[12]?.messages[0]?.content, "Question 12?");
  assert.deepEqual(cases[12]?.expected, {});
  assert.deepEqual(cases[13]?.expected, { outputs: ["Answer 13"] });
  assert.equal(cases[13]?.tools[0]?.function.name, "f");
  assert.deepEqual(cases[13]?.metadata, { weight: 3.25 });
  assert.equal((await collected(dataset)).length, 25, "a dataset can be read again");
});

test("one row group is in memory at a time, and columns that were not asked for are not read", async () => {
  const path = await writeCases("groups.parquet", 30, 10);
  const file = await ParquetFile.open(path);
  assert.deepEqual(file.columns, ["id", "question", "gold", "weight", "tools"]);
  const sizes: number[] = [];
  for await (const rows of file.rowGroups(["question"])) {
    sizes.push(rows.length);
    assert.deepEqual(Object.keys(rows[0] ?? {}), ["question"]);
  }
  await file.close();
  assert.deepEqual(sizes, [10, 10, 10]);
});

test("gzip pages", async () => {
  const filename = join(folder, "gzip.parquet");
  await Promise.resolve(
    parquetWriteFile({
      filename,
      codec: "GZIP",
      compressors: { GZIP: (input) => new Uint8Array(gzipSync(input)) },
      columnData: [
        { name: "input", data: numbered(50).map((index) => `Again and again ${index}`), type: "STRING" },
      ],
    }),
  );
  const cases = await collected(await parquetDataset(filename));
  assert.equal(cases[49]?.messages[0]?.content, "Again and again 49");
});

test("columns may be mapped, and unknown ones are named", async () => {
  const path = await writeCases("mapped.parquet", 3, 10);
  const [first] = await collected(
    await parquetDataset(path, { columns: { expected: "question", input: "tools" } }),
  );
  assert.deepEqual(first?.expected, { outputs: ["Question 0?"] });
  await assert.rejects(
    parquetDataset(path, { columns: { input: "prompt" } }),
    /no column "prompt" for the field "input"; it has "id"/,
  );
});

test("files that are no Parquet are refused", async () => {
  const path = join(folder, "no.parquet");
  for (const content of ["", "PAR1", "PAR1 but nothing of it PAR1", "x".repeat(100)]) {
    await writeFile(path, content);
    await assert.rejects(parquetDataset(path), { code: "dataset_invalid" });
  }
  await assert.rejects(parquetDataset(join(folder, "missing.parquet")), /there is no such file/);
});

test("rows name themselves in errors", async () => {
  const filename = join(folder, "bad-row.parquet");
  const data = numbered(12).map((index) => (index === 11 ? "not JSON" : '["t"]'));
  await Promise.resolve(
    parquetWriteFile({
      filename,
      rowGroupSize: 5,
      columnData: [
        { name: "input", data: numbered(12).map(String), type: "STRING" },
        { name: "tools", data, type: "STRING" },
      ],
    }),
  );
  await assert.rejects(
    collected(await parquetDataset(filename)),
    /bad-row\.parquet row 1: field "tools\[0\]" must be a tool/,
  );
});

test("damaged files end in a typed error, never in a crash", async () => {
  const original = await readFile(await writeCases("damaged.parquet", 40, 15));
  const path = join(folder, "mutated.parquet");
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat({ max: original.length - 1 }), fc.nat({ max: 255 })), {
        minLength: 1,
        maxLength: 6,
      }),
      fc.option(fc.nat({ max: original.length }), { nil: undefined }),
      async (changes, cut) => {
        const bytes = Buffer.from(original);
        for (const [at, value] of changes) bytes[at] = value;
        await writeFile(path, bytes.subarray(0, cut ?? bytes.length));
        try {
          await collected(await parquetDataset(path));
        } catch (error) {
          assert.equal((error as { code?: string }).code, "dataset_invalid", String(error));
        }
      },
    ),
    { seed: 3, numRuns: 150 },
  );
});
