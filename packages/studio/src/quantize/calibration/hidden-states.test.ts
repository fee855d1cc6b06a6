import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { HiddenStates } from "./hidden-states.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-states-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
const widths = [[0, 64]] as const;
const lengths = [100, 50];

test("what was written comes back, each sequence from its own place", async () => {
  const states = await HiddenStates.open(join(scratch, "whole"), widths, lengths);
  const rows = lengths.map((length, sequence) => new Float32Array(64 * length).fill(sequence + 1));
  for (const [sequence, values] of rows.entries()) await states.write(sequence, new Map([[0, values]]));
  for (const [sequence, values] of rows.entries())
    assert.deepEqual((await states.read(sequence)).get(0), values);
  await states.close();
});

test("a file that was cut short is an error, not zeros", async () => {
  const path = join(scratch, "short");
  const states = await HiddenStates.open(path, widths, lengths);
  for (const [sequence, length] of lengths.entries())
    await states.write(sequence, new Map([[0, new Float32Array(64 * length).fill(1)]]));
  truncateSync(path, 4 * 64 * 120);
  await states.read(0);
  await assert.rejects(states.read(1), { code: "artifact_invalid", message: /cut short/ });
  await states.close();
});

test("a disk that takes a part of what is written is full", { skip: !existsSync("/bin/sh") }, async () => {
  // A limit on the size of files lets a write stop in its middle, as a disk that fills up does.
  const script = `
    import { HiddenStates } from ${JSON.stringify(new URL("hidden-states.js", import.meta.url).href)};
    const states = await HiddenStates.open(process.argv[1], [[0, 64]], [1000]);
    try {
      await states.write(0, new Map([[0, new Float32Array(64000)]]));
      console.log("written");
    } catch (error) {
      console.log(error.code);
    }`;
  const limited = "trap '' XFSZ; ulimit -f 100; exec \"$@\"";
  const node = [process.execPath, "--input-type=module", "-e", script, join(scratch, "limited")];
  const { stdout } = await promisify(execFile)("/bin/sh", ["-c", limited, "sh", ...node]);
  assert.equal(stdout.trim(), "invalid_option");
});
