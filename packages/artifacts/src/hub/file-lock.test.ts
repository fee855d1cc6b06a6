import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { setImmediate as yieldTurn } from "node:timers/promises";
import { withFileLock } from "./file-lock.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-lock-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
let counter = 0;

function freshPath(): string {
  return join(scratch, String(counter++), "the.lock");
}

describe("file lock", () => {
  it("lets one in at a time and leaves nothing behind", async () => {
    const path = freshPath();
    let inside = 0;
    let most = 0;
    const runs = Array.from({ length: 8 }, async (_, index) =>
      withFileLock(path, { staleMs: 30 }, async () => {
        most = Math.max(most, ++inside);
        await yieldTurn();
        inside--;
        return index;
      }),
    );
    assert.deepEqual(await Promise.all(runs), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert.equal(most, 1);
    assert.deepEqual(readdirSync(join(path, "..")), []);
  });

  it("is given back when the body fails", async () => {
    const path = freshPath();
    await assert.rejects(
      withFileLock(path, {}, () => Promise.reject(new TypeError("inside"))),
      /inside/,
    );
    assert.ok(!existsSync(path));
  });

  it("takes over from a process that is gone, and from one that stopped signing", async () => {
    const gone = spawnSync(process.execPath, ["-e", ""]).pid;
    for (const [owner, staleMs] of [
      [{ pid: gone, host: hostname(), startTicks: 0, id: "x" }, 600_000],
      ...(existsSync("/proc/self/stat")
        ? ([
            [
              { pid: process.pid, host: hostname(), startTicks: 1, id: "an earlier container's pid 1" },
              600_000,
            ],
          ] as const)
        : []),
      [{ pid: 1, host: "another machine", startTicks: 0, id: "x" }, 20],
      ["half a fil", 20],
    ] as const) {
      const path = freshPath();
      await withFileLock(path, {}, () => Promise.resolve());
      writeFileSync(path, typeof owner === "string" ? owner : JSON.stringify(owner));
      assert.equal(await withFileLock(path, { staleMs }, () => Promise.resolve("in")), "in");
    }
  });

  it("waits for a living owner until the caller gives up", async () => {
    const path = freshPath();
    const controller = new AbortController();
    await withFileLock(path, {}, async () => {
      const waiting = withFileLock(
        path,
        { signal: controller.signal, onWait: () => controller.abort() },
        () => Promise.resolve(),
      );
      await assert.rejects(waiting, { name: "AbortError" });
    });
    assert.ok(!existsSync(path));
  });
});
