import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend } from "@octavo/kernels";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import {
  ChangedCheckpoint,
  type ModelFixture,
  readModelFixtures,
} from "@octavo/artifacts/testing/model-fixtures";
import { ModelRunner } from "./model-runner.js";

/** Relative to the largest logit of a row: f32 and f16 products are summed in f32; bf16 kernels may round activations to bf16 first. */
const TOLERANCE = { f32: 2e-5, f16: 1e-4, bf16: 2e-2 } as const;

/** Limit of a step and of a sequence. */
const MAX_TOKENS = 400;

/**
 * Compares every model family on a backend with what transformers computed from the same weights. `quantized` says how the
 * backend multiplies quantised weights: with f32 activations, or with activations rounded to bf16.
 */
export function modelOracleSuite(
  name: string,
  openBackend: () => Backend,
  quantized: keyof typeof TOLERANCE = "f32",
): void {
  describe(`models on the ${name} backend against transformers`, () => {
    for (const fixture of readModelFixtures()) {
      test(fixture.name, async () => {
        using backend = openBackend();
        using folder = new ChangedCheckpoint(fixture.checkpoint, fixture.config);
        const checkpoint = await openCheckpoint(folder.path);
        const dtype = checkpoint.config.dtype === "quantized" ? quantized : checkpoint.config.dtype;
        using runner = await ModelRunner.load(backend, checkpoint, MAX_TOKENS, "f32");
        await compareLogits(runner, fixture, checkpoint.config.vocabSize, TOLERANCE[dtype]);
        if (dtype === "f32") await compareGreedy(runner, fixture);
        else await compareChoices(runner, fixture, TOLERANCE[dtype]);
        await compareLongPrompt(runner, fixture, TOLERANCE[dtype]);
        await comparePooled(runner, fixture, TOLERANCE[dtype]);
      });
    }
  });
}

export async function compareLogits(
  runner: ModelRunner,
  fixture: Pick<ModelFixture, "prompt" | "logits">,
  vocabSize: number,
  tolerance: number,
): Promise<void> {
  runner.reset();
  const rows = await runner.logits(fixture.prompt);
  for (const [position, row] of rows.entries()) {
    const expected = fixture.logits.subarray(position * vocabSize, (position + 1) * vocabSize);
    const difference = relativeDifference(row, expected);
    assert.ok(difference <= tolerance, `logits at position ${position} differ by ${difference}`);
  }
}

/** Token by token through the KV cache. */
export async function compareGreedy(
  runner: ModelRunner,
  fixture: Pick<ModelFixture, "prompt" | "greedy">,
): Promise<void> {
  runner.reset();
  assert.deepEqual(await runner.greedy(fixture.prompt, fixture.greedy.length), fixture.greedy);
}

/**
 * Half-precision weights may choose another token where the oracle's margin is smaller than their error: given the oracle's own
 * tokens, its choice must be within twice the tolerance of the best at every step.
 */
export async function compareChoices(
  runner: ModelRunner,
  fixture: Pick<ModelFixture, "prompt" | "greedy">,
  tolerance: number,
): Promise<void> {
  runner.reset();
  const rows = await runner.logits([...fixture.prompt, ...fixture.greedy]);
  for (const [step, token] of fixture.greedy.entries()) {
    const row = rows[fixture.prompt.length - 1 + step] ?? new Float32Array();
    const best = row.reduce((most, logit) => Math.max(most, logit), -Infinity);
    const largest = row.reduce((most, logit) => Math.max(most, Math.abs(logit)), 0);
    const gap = (best - (row[token] ?? -Infinity)) / largest;
    assert.ok(
      gap <= 2 * tolerance,
      `step ${step}: the oracle's choice is ${gap} of the largest logit below the best`,
    );
  }
}

/** In unequal chunks through the KV cache, like chunked prefill. */
async function compareLongPrompt(
  runner: ModelRunner,
  fixture: ModelFixture,
  tolerance: number,
): Promise<void> {
  runner.reset();
  const { prompt, logits } = fixture.long;
  let rows: Float32Array[] = [];
  for (const [start, end] of [
    [0, 150],
    [150, 151],
    [151, prompt.length],
  ] as const) {
    rows = await runner.logits(prompt.slice(start, end));
  }
  const difference = relativeDifference(rows.at(-1) ?? new Float32Array(), logits);
  assert.ok(difference <= tolerance, `logits after ${prompt.length} tokens differ by ${difference}`);
}

async function comparePooled(runner: ModelRunner, fixture: ModelFixture, tolerance: number): Promise<void> {
  runner.reset();
  const rows = await runner.hidden(fixture.prompt);
  const mean = Float32Array.from(
    fixture.pooled.mean,
    (_, column) => rows.reduce((sum, row) => sum + (row[column] ?? 0), 0) / rows.length,
  );
  const last = rows.at(-1) ?? new Float32Array();
  assert.ok(relativeDifference(last, fixture.pooled.last) <= tolerance, "last hidden state");
  assert.ok(relativeDifference(mean, fixture.pooled.mean) <= tolerance, "mean hidden state");
}

/** Largest difference over the largest value; NaN counts as infinite. */
export function relativeDifference(found: ArrayLike<number>, expected: ArrayLike<number>): number {
  assert.equal(found.length, expected.length);
  let difference = 0;
  let largest = 0;
  for (let i = 0; i < expected.length; i++) {
    const gap = Math.abs((found[i] ?? Number.NaN) - (expected[i] ?? Number.NaN));
    if (!(gap <= difference)) difference = Number.isNaN(gap) ? Infinity : gap;
    largest = Math.max(largest, Math.abs(expected[i] ?? 0));
  }
  return difference / largest;
}
