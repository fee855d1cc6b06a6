import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fixtureCheckpoint, readModelFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { openCheckpoint } from "@octavo/engine";
import { ModelRunner } from "@octavo/engine/testing";
import { createCpuBackend } from "@octavo/kernels";
import { quantize } from "./quantize.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-quantize-newer-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
const texts = join(scratch, "texts.txt");
writeFileSync(texts, "The quick brown fox jumps over the lazy dog; 0123456789 times, or more. ".repeat(40));

const fixtures = readModelFixtures();

const others = ["lm_head", "re:.*(self_attn|mlp).*"];

for (const [name, ignore, modules, refusal] of [
  // What Gemma 4's small models have beside the others' matrices. Six layers of random weights would drown it in the noise of those.
  [
    "gemma4-small",
    others,
    ["per_layer_input_gate", "per_layer_projection"],
    /layers with gate, whose inputs/,
  ],
  ["llama4", ["lm_head"], ["feed_forward.shared_expert.up_proj"], /experts with weights on what they read/],
] as const) {
  const fixture = fixtures.find((candidate) => candidate.name === name);

  test(`${name} in fp8 gives nearly the original's logits`, async () => {
    assert.ok(fixture !== undefined);
    const out = join(scratch, name);
    const { modules: quantised } = await quantize(fixtureCheckpoint(name), { method: "fp8", ignore, out });
    for (const module of modules)
      assert.ok(quantised.some(({ name: full }) => full.endsWith(`.1.${module}`)));
    const checkpoint = await openCheckpoint(out);
    using backend = createCpuBackend({ numThreads: 1 });
    using runner = await ModelRunner.load(backend, checkpoint, fixture.prompt.length, "f32");
    const rows = await runner.logits(fixture.prompt);
    const [logits, original] = [Float64Array.from(rows.flatMap((row) => [...row])), fixture.logits];
    const dot = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
      Array.from(a).reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
    const cosine = dot(logits, original) / Math.sqrt(dot(logits, logits) * dot(original, original));
    assert.ok(cosine > 0.99 && cosine < 1 - 1e-6, `cosine ${cosine}`);
  });

  test(`${name} by texts or as GGUF is refused by name`, async () => {
    const out = join(scratch, "none");
    const written = quantize(fixtureCheckpoint(name), { method: "gguf:Q8_0", out });
    await assert.rejects(written, { code: "artifact_unsupported", message: /GGUF files are written for/ });
    const ignored = ["lm_head", "re:.*(down_proj|per_layer_projection)"];
    const calibrated = { calibration: texts, numSamples: 6, sampleTokens: 48, numThreads: 1 } as const;
    const run = quantize(fixtureCheckpoint(name), {
      method: "int8",
      ignore: ignored,
      ...calibrated,
      out,
    });
    await assert.rejects(run, { code: "artifact_unsupported", message: refusal });
  });
}
