import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend } from "@octavo/kernels";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import {
  fixtureGguf,
  type GgufFixture,
  readGgufFixtures,
  readModelFixtures,
} from "@octavo/artifacts/testing/model-fixtures";
import { logSoftmax } from "@octavo/kernels/testing/logit-harness";
import { relativeDifference } from "./model-oracle-suite.js";
import { ModelRunner } from "./model-runner.js";

/** A token ties with llama.cpp's choice if llama.cpp's own log-probabilities put it within half a nat of its best. */
const NEAR_TIE_NATS = 0.5;

/**
 * How far log-probabilities may differ on average: llama.cpp keeps keys and values in f16, rounds activations to bf16 for
 * bf16 weights and to 8 bits for quantised ones.
 */
const MEAN_NATS = { float: 0.03, quantized: 0.12 } as const;

/** Holds every GGUF weight type on a backend against llama.cpp's greedy output on the same file. */
export function ggufOracleSuite(name: string, openBackend: () => Backend): void {
  describe(`GGUF files on the ${name} backend against llama.cpp`, () => {
    for (const fixture of readGgufFixtures()) {
      test(fixture.name, async () => {
        using backend = openBackend();
        const checkpoint = await openCheckpoint(fixture.path);
        using runner = await ModelRunner.load(
          backend,
          checkpoint,
          fixture.prompt.length + fixture.greedy.length,
          "f32",
        );
        await compareGguf(runner, fixture, checkpoint.config.dtype === "quantized" ? "quantized" : "float");
      });
    }
  });

  describe(`GGUF files on the ${name} backend against transformers on the weights they were made of`, () => {
    for (const [file, source, tolerance] of [
      ["llama3-f32", "llama3", 1e-4],
      ["llama3-f16", "llama3", 4e-3],
      ["llama3-bf16", "llama3", 3e-2],
      ["qwen3-f16", "qwen3", 4e-3],
    ] as const) {
      test(file, async () => {
        using backend = openBackend();
        const fixture = readModelFixtures().find((candidate) => candidate.name === source);
        assert.ok(fixture !== undefined);
        const checkpoint = await openCheckpoint(fixtureGguf(file));
        using runner = await ModelRunner.load(backend, checkpoint, fixture.prompt.length, "f32");
        const rows = await runner.logits(fixture.prompt);
        const difference = relativeDifference(
          rows.flatMap((row) => [...row]),
          fixture.logits,
        );
        assert.ok(difference <= tolerance, `logits differ by ${difference}`);
      });
    }
  });
}

/**
 * Greedy output must equal llama.cpp's up to the first near tie. Then, given llama.cpp's own prefix at every step, our choice must be
 * its choice or a near tie, and its best tokens must have about the same log-probabilities here.
 */
export async function compareGguf(
  runner: ModelRunner,
  fixture: Omit<GgufFixture, "name" | "path">,
  weights: keyof typeof MEAN_NATS,
): Promise<void> {
  const own = await runner.greedy(fixture.prompt, fixture.greedy.length);
  const mismatch = own.findIndex((token, step) => token !== fixture.greedy[step]);
  if (mismatch >= 0) assertNearTie(fixture, mismatch, own[mismatch]);

  runner.reset();
  const rows = await runner.logits([...fixture.prompt, ...fixture.greedy.slice(0, -1)]);
  const differences: number[] = [];
  for (const [step, best] of fixture.top.entries()) {
    const logprobs = logSoftmax(rows[fixture.prompt.length - 1 + step] ?? new Float32Array());
    assertNearTie(fixture, step, logprobs.indexOf(logprobs.reduce((most, value) => Math.max(most, value))));
    for (const [token, logprob] of best)
      differences.push(Math.abs((logprobs[token] ?? Number.NaN) - logprob));
  }
  const mean = differences.reduce((sum, value) => sum + value, 0) / differences.length;
  assert.ok(
    mean <= MEAN_NATS[weights],
    `log-probabilities of the best tokens differ by ${mean} nats on average`,
  );
}

function assertNearTie(fixture: Pick<GgufFixture, "top">, step: number, token: number | undefined): void {
  const best = fixture.top[step] ?? [];
  const gap = (best[0]?.[1] ?? 0) - (best.find(([candidate]) => candidate === token)?.[1] ?? -Infinity);
  assert.ok(
    gap <= NEAR_TIE_NATS,
    `step ${step}: chose ${token}, which llama.cpp puts ${gap} nats below ${best[0]?.[0]}`,
  );
}
