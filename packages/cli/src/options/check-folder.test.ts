import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { runOctavo } from "../testing/run-octavo.js";
import { checkFolder } from "./check-folder.js";

test("folders that cannot be made are refused, and nothing is left where they can", () => {
  const folder = mkdtempSync(join(tmpdir(), "octavo-folder-"));
  try {
    checkFolder("out", join(folder, "a", "b"));
    assert.deepEqual(readdirSync(folder), []);
    writeFileSync(join(folder, "file"), "");
    assert.throws(() => checkFolder("out", join(folder, "file", "x")), {
      code: "invalid_option",
      param: "out",
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test(
  "where nothing can be written, commands say so at once",
  { skip: process.platform !== "linux" },
  async () => {
    for (const args of [
      ["quantize", "nobody/nothing", "--method", "int8", "--out", "/proc/x/y"],
      ["serve", "--port", "0", "--trace-store", "/proc/x"],
      ["serve", "--port", "0", "--weight-cache", "/proc/x"],
      ["serve", "--port", "0", "--download-dir", "/proc/x"],
    ]) {
      const ended = await runOctavo(args);
      assert.equal(ended.code, 1, args.join(" "));
      assert.match(
        ended.err,
        /nothing can be written to \/proc(?:: [a-z -]+)? \[invalid_option\]/,
        args.join(" "),
      );
    }
  },
);
