// The table of vulnerabilities names tests that exist, and nothing shipped runs what it reads.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { filesBelow, root } from "./lib/steps.mjs";

const page = readFileSync(join(root, "docs/reference/security.md"), "utf8");
const rows = [...page.matchAll(/^\| (.+) \| (.*) \| `([^`]+)`: (.+) \|$/gm)];

/** Evaluators that a user wrote and names, and a fixed script that gives a user's pattern a deadline. */
const byUser = new Set([
  "packages/evals/src/evaluators/load-table.ts",
  "packages/evals/src/evaluators/within-time.ts",
]);

describe("published vulnerabilities", () => {
  it("each name a test that is there", () => {
    assert.ok(rows.length >= 20, `${rows.length} rows`);
    assert.equal(rows.length, page.match(/^\| (?!---|vulnerability)/gm).length, "a row without a test");
    for (const [, what, , file, title] of rows) {
      const source = readFileSync(join(root, file), "utf8");
      assert.ok(source.includes(title), `${what}: ${file} has no test "${title}"`);
    }
  });

  it("nothing that is shipped evaluates text as code", () => {
    const sources = filesBelow(
      "packages",
      (path) => /\/src\/.*\.ts$/.test(path) && !/\.test\.ts$|\/testing\//.test(path),
    );
    assert.ok(sources.length > 400);
    const evaluates = /\beval\(|\bnew Function\(|["'](?:node:)?vm["']|(?<!#)\bimport\((?!["'])/;
    const found = sources.filter((path) => {
      const code = readFileSync(join(root, path), "utf8").replace(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "");
      return evaluates.test(code) && !byUser.has(path);
    });
    assert.deepEqual(found, []);
  });
});
