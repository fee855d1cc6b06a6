import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { QuantizeOptions } from "./options.js";
import { quantize } from "./quantize.js";
import type { QuantizationCard } from "./report/card.js";
import { calibrationFile, divergence, heldOutLogprobs, octavoMini } from "./testing/quality.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-quantize-quality-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** Quantises octavo-mini and gives the divergence from it on conversations that calibration did not see. */
async function lossOf(
  name: string,
  options: Omit<QuantizeOptions, "out">,
): Promise<{ kl: number; card: QuantizationCard }> {
  const out = join(scratch, name);
  const card = await quantize(octavoMini, { ...options, out });
  const kl = divergence(original, await heldOutLogprobs(out));
  assert.ok(kl > 0 && Number.isFinite(kl), `${name}: ${kl}`);
  return { kl, card };
}

const original = await heldOutLogprobs(octavoMini);
const texts = { calibration: calibrationFile, numSamples: 24, sampleTokens: 256 } as const;

test("GPTQ and AWQ lose less than plain rounding at the same bits, FP8 less than all of four bits", async () => {
  const rounded = await lossOf("gptq-rtn", { method: "gptq", roundToNearest: true });
  const gptq = await lossOf("gptq", { method: "gptq", ...texts });
  const awqRounded = await lossOf("awq-rtn", { method: "awq", roundToNearest: true });
  const awq = await lossOf("awq", { method: "awq", ...texts });
  const fp8 = await lossOf("fp8", { method: "fp8" });
  const losses = JSON.stringify({
    gptqRounded: rounded.kl,
    gptq: gptq.kl,
    awqRounded: awqRounded.kl,
    awq: awq.kl,
    fp8: fp8.kl,
  });
  assert.ok(gptq.kl < 0.7 * rounded.kl, losses);
  assert.ok(awq.kl < awqRounded.kl, losses);
  assert.ok(fp8.kl < 0.3 * Math.min(gptq.kl, awq.kl), losses);
  for (const { card } of [gptq, awq]) {
    assert.equal(card.errorOf, "outputs");
    assert.equal(card.calibration?.sequences, 24);
    assert.equal(card.modules.length, 6 * 7);
    assert.ok(card.modules.every(({ error }) => error > 0 && error < 0.05));
  }
  const text = readFileSync(join(scratch, "awq", "README.md"), "utf8");
  assert.match(text, /Calibrated on 24 sequences, 6144 tokens/);
  assert.match(text, /\| 5 \| int4 \| 0\.\d+ % \|/);
});
