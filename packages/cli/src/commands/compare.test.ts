import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { fileURLToPath } from "node:url";
import type { ModelComparison } from "@octavo/studio/compare";

const at = (path: string): string => fileURLToPath(new URL(`../../../../${path}`, import.meta.url));
const main = fileURLToPath(new URL("../main.js", import.meta.url));
const model = at("models/octavo-mini");
const data = at("packages/studio/fixtures/held-out.jsonl");
const scratch = mkdtempSync(join(tmpdir(), "octavo-compare-command-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

function octavo(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [main, ...args], { maxBuffer: 64 << 20 }, (_error, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    );
  });
}

/** Makes an artifact of octavo-mini and holds it against the model. */
async function verdictOn(
  name: string,
  ...method: readonly string[]
): Promise<{ code: number; comparison: ModelComparison }> {
  const out = join(scratch, name);
  const made = await octavo("quantize", model, "--method", ...method, "--out", out);
  assert.equal(made.code, 0, made.err);
  const {
    code,
    out: json,
    err,
  } = await octavo("compare", model, out, "--data", data, "--resamples", "500", "--json");
  assert.notEqual(json, "", err);
  return { code, comparison: JSON.parse(json) as ModelComparison };
}

test("three artifacts of octavo-mini get the three verdicts, each with its evidence", async () => {
  // The weights' own type: the same numbers in another file.
  const same = await verdictOn("bf16", "gguf:BF16");
  assert.equal(same.comparison.verdict.verdict, "identical", same.comparison.verdict.reasons.join(" "));
  assert.match(same.comparison.verdict.reasons[0] ?? "", /Every logit of all \d+ scored tokens/);
  assert.equal(same.code, 0);

  const eight = await verdictOn("q8", "gguf:Q8_0");
  assert.equal(eight.comparison.verdict.verdict, "near-lossless", eight.comparison.verdict.reasons.join(" "));
  assert.ok(eight.comparison.summary.overall.kl.value > 0);
  assert.equal(eight.code, 0);

  const two = await verdictOn("two-bits", "gptq", "--bits", "2", "--round-to-nearest");
  assert.equal(two.comparison.verdict.verdict, "drift", two.comparison.verdict.reasons.join(" "));
  assert.match(two.comparison.verdict.reasons.join(" "), /divergence of an answer is at least \d/);
  assert.ok(two.comparison.summary.overall.kl.value > 100 * eight.comparison.summary.overall.kl.value);
  assert.equal(two.code, 2);
});
