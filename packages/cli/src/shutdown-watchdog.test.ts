import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

const module = JSON.stringify(new URL("./shutdown-watchdog.js", import.meta.url).href);

function run(afterMs: number, rest: string): Promise<{ stdout: string; stderr: string }> {
  const script = `import { endProcessAfter } from ${module}; endProcessAfter(${afterMs}); ${rest}`;
  return promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
}

test("a process whose event loop is stuck ends at the deadline", async () => {
  await assert.rejects(run(10, "for (;;) {}"), { signal: "SIGKILL", stderr: /did not finish in time/ });
});

test("a process that has finished does not wait for the deadline", async () => {
  const { stdout, stderr } = await run(3_600_000, 'process.stdout.write("done")');
  assert.deepEqual({ stdout, stderr }, { stdout: "done", stderr: "" });
});
