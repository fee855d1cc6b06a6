import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { QuantizeOptions } from "./options.js";
import { quantize } from "./quantize.js";
import type { QuantizationCard } from "./report/card.js";
import { calibrationFile, meanDivergence, heldOutLogprobs, octavoMini } from "./testing/quality.js";
import { writeStructuredModel } from "./testing/structured-model.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-quantize-quality-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

interface Loss {
  readonly kl: number;
  readonly card: QuantizationCard;
}

/** Quantises a model and gives the meanDivergence from it on conversations that calibration did not see. */
function lossesOf(
  model: string,
  original: readonly Float32Array[],
): (name: string, options: Omit<QuantizeOptions, "out">) => Promise<Loss> {
  return async (name, options) => {
    const out = join(scratch, name);
    const card = await quantize(model, { ...options, out });
    const kl = meanDivergence(original, await heldOutLogprobs(out));
    assert.ok(kl > 0 && Number.isFinite(kl), `${name}: ${kl}`);
    return { kl, card };
  };
}

const texts = { calibration: calibrationFile, numSamples: 24, sampleTokens: 256 } as const;

test("GPTQ and AWQ lose less than plain rounding at the same bits, FP8 less than all of four bits", async () => {
  const lossOf = lossesOf(octavoMini, await heldOutLogprobs(octavoMini));
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

test("and so they do on a larger random model whose activations are correlated and have outliers", async () => {
  const model = join(scratch, "structured");
  writeStructuredModel(model, 4);
  const lossOf = lossesOf(model, await heldOutLogprobs(model));
  const kl: Record<string, number> = {};
  for (const [name, options] of [
    ["gptq rounded", { method: "gptq", roundToNearest: true }],
    ["gptq", { method: "gptq", ...texts }],
    ["awq rounded", { method: "awq", roundToNearest: true }],
    ["awq", { method: "awq", ...texts }],
    ["fp8", { method: "fp8" }],
  ] as const) {
    kl[name] = (await lossOf(`structured ${name}`, options)).kl;
  }
  const losses = JSON.stringify(kl);
  assert.ok(kl["gptq"]! < kl["gptq rounded"]!, losses);
  assert.ok(kl["awq"]! < kl["awq rounded"]!, losses);
  assert.ok(kl["fp8"]! < Math.min(kl["gptq"]!, kl["awq"]!), losses);
});

test("an importance matrix keeps GGUF's low bits nearer to the original", async () => {
  const model = join(scratch, "important");
  writeStructuredModel(model, 5);
  const lossOf = lossesOf(model, await heldOutLogprobs(model));
  for (const type of ["IQ4_XS", "Q2_K"]) {
    const method = `gguf:${type}`;
    const plain = await lossOf(`${type} plain`, { method });
    const important = await lossOf(`${type} important`, { method, ...texts });
    assert.ok(important.kl < plain.kl, `${type}: ${important.kl} for ${plain.kl}`);
    assert.equal(important.card.errorOf, "weights");
    assert.equal(important.card.calibration?.sequences, 24);
  }
});
