import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { systemProblem } from "./errors.js";
import { makeFolder } from "./make-folder.js";

const folder = mkdtempSync(join(tmpdir(), "octavo-folders-"));
test.after(() => rmSync(folder, { recursive: true }));

test("folders are made with those above them, and again", () => {
  const path = join(folder, "a", "b", "c");
  makeFolder(path, 0o700);
  makeFolder(path, 0o700);
  assert.equal(statSync(join(folder, "a")).mode & 0o777, 0o700);
});

test("a file in the way is told, and nothing is made", () => {
  const path = join(folder, "file");
  writeFileSync(path, "");
  assert.throws(() => makeFolder(path), /EEXIST/);
  assert.throws(() => makeFolder(join(path, "x", "y")), { code: "ENOTDIR" });
});

test("below a folder that takes no new ones it ends", { skip: !existsSync("/proc/self") }, () => {
  assert.throws(
    () => makeFolder("/proc/octavo/a/b"),
    (thrown) => {
      assert.equal(systemProblem(thrown), "there is no such file or folder");
      return true;
    },
  );
});

test("why a file cannot be used is said in words; other errors say it themselves", () => {
  for (const [code, words] of [
    ["ENOSPC", "the disk is full"],
    ["EACCES", "permission denied"],
    ["EISDIR", "it is a folder"],
  ])
    assert.equal(systemProblem(Object.assign(new Error("raw"), { code })), words);
  assert.equal(systemProblem(new TypeError("raw")), "raw");
  assert.equal(systemProblem("text"), "text");
});
