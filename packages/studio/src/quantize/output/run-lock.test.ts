import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { RunLock } from "./run-lock.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-run-lock-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
let counter = 0;
const fresh = (): string => join(scratch, `lock-${counter++}`);

const refused = (path: string, message: RegExp): void => {
  assert.throws(() => RunLock.take(path), { code: "invalid_option", param: "out", message });
};

test("a lock is held by one, and free again when it is given back", () => {
  const path = fresh();
  {
    using _ = RunLock.take(path);
    refused(path, new RegExp(`process ${process.pid} on ${hostname()}; wait for it.*remove ${path}`));
    assert.equal((JSON.parse(readFileSync(path, "utf8")) as { pid: number }).pid, process.pid);
  }
  assert.ok(!existsSync(path));
  RunLock.take(path)[Symbol.dispose]();
});

test("who gives it back twice takes nobody else's", () => {
  const path = fresh();
  const first = RunLock.take(path);
  first[Symbol.dispose]();
  using _ = RunLock.take(path);
  first[Symbol.dispose]();
  refused(path, /being written/);
});

test("what a process that has ended left behind is taken over", () => {
  const { pid } = spawnSync(process.execPath, ["--version"]);
  for (const left of [
    JSON.stringify({ pid, host: hostname(), startTicks: 1 }),
    // This process's number, but of one that began earlier.
    ...(existsSync("/proc/self/stat")
      ? [JSON.stringify({ pid: process.pid, host: hostname(), startTicks: 1 })]
      : []),
    '{"pid":',
    "",
    "null",
  ]) {
    const path = fresh();
    writeFileSync(path, left);
    {
      using _ = RunLock.take(path);
      refused(path, /being written/);
    }
    assert.deepEqual(
      readdirSync(scratch).filter((name) => name.startsWith(path.slice(scratch.length + 1))),
      [],
      left,
    );
  }
});

test("another machine's is left to people", () => {
  const path = fresh();
  writeFileSync(path, JSON.stringify({ pid: 1, host: "elsewhere", startTicks: null }));
  refused(path, /process 1 on elsewhere/);
  assert.ok(existsSync(path));
});
