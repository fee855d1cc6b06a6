import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { openFilesWarning } from "./check-open-files.js";

test("names the limit of open files when requests may outnumber it, and what it should be", () => {
  const limits = (soft: string): string =>
    `Limit  Soft Limit  Hard Limit  Units\nMax open files  ${soft}  4096  files\n`;
  assert.match(
    openFilesWarning(1000, limits("256")) ?? "",
    /nofile\) is 256, .* need 1128; raise it with ulimit -n 1128/,
  );
  for (const enough of [limits("1128"), limits("unlimited"), ""])
    assert.equal(openFilesWarning(1000, enough), undefined);
});

test("reads the limit of this process", () => {
  const program = `
    const { openFilesWarning } = await import(${JSON.stringify(import.meta.resolve("./check-open-files.js"))});
    console.log(openFilesWarning(1000));
  `;
  const { stdout } = spawnSync(
    "bash",
    ["-c", 'ulimit -n 200; exec "$@"', "bash", process.execPath, "--input-type=module", "-e", program],
    { encoding: "utf8" },
  );
  if (process.platform === "linux") assert.match(stdout, /nofile\) is 200,/);
});
