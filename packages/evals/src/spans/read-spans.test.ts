import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { readSpanValues } from "./read-spans.js";

test("a file that is being written is read up to its last whole line, wherever it is cut off", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-read-spans-"));
  try {
    const path = join(folder, "spans.jsonl");
    const lines = ['{"a":"é😀"}\n', '{"b":"ü"}\n', '{"c":["日本",2]}\n'];
    const whole = Buffer.from(lines.join(""));
    const first = Buffer.byteLength(lines[0]!);
    const read = async (from: string): Promise<readonly unknown[]> => {
      const values: unknown[] = [];
      for await (const value of readSpanValues(from)) values.push(value);
      return values;
    };
    for (let end = first; end <= whole.length; end++) {
      await writeFile(path, whole.subarray(0, end));
      // a line without its end may be whole
      const expected = lines.filter(
        (_, index) => end >= Buffer.byteLength(lines.slice(0, index + 1).join("")) - 1,
      );
      assert.deepEqual(
        await read(folder),
        expected.map((line): unknown => JSON.parse(line)),
      );
    }
    for (const text of ['{"a":1}\n{"b":\n{"c":1}\n', '{"a":1}\n{"b":\n']) {
      await writeFile(path, text);
      await assert.rejects(read(path), /line 2: not JSON/);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
