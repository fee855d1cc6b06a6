import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { AccessLog } from "./access-log.js";

describe("the access log", () => {
  it("has every line, in order, when it is closed while lines are being written", async () => {
    const folder = await mkdtemp(join(tmpdir(), "octavo-access-log-"));
    try {
      for (const numLines of [1, 700, 5000]) {
        const path = join(folder, `${numLines}.log`);
        const log = new AccessLog(path);
        for (let line = 0; line < numLines; line += 1) log.add({ line, text: "x".repeat(100) });
        await log.close();
        const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
        assert.deepEqual(
          lines.map((line) => (JSON.parse(line) as { line: number }).line),
          Array.from({ length: numLines }, (_, line) => line),
        );
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("counts the lines that found no room while the disk was behind", async () => {
    const folder = await mkdtemp(join(tmpdir(), "octavo-access-log-"));
    try {
      const path = join(folder, "calls.log");
      const log = new AccessLog(path);
      const text = "x".repeat(1 << 20);
      for (let line = 0; line < 20; line += 1) log.add({ line, text });
      await log.close();
      const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
      const last = JSON.parse(lines.at(-1) ?? "") as { event: string; count: number };
      assert.equal(last.event, "lines_dropped");
      assert.ok(last.count > 0);
      assert.equal(lines.length - 1 + last.count, 20);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
