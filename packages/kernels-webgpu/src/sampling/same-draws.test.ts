import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Backend, createCpuBackend, type OutputRow, type RowResult } from "@octavo/kernels";
import { matrix, promptPlan, smallestCache } from "@octavo/kernels/testing/op-harness";
import { SeededRandom } from "@octavo/kernels/testing/seeded-random";
import { openTestGpu } from "../testing/software-gpu.js";
import { createWebGpuBackend } from "../webgpu-backend.js";

const gpu = await openTestGpu();

/** More where somebody looks for what is wrong: OCTAVO_TEST_SEEDS=FROM-TO. */
const [from, to] = (process.env["OCTAVO_TEST_SEEDS"] ?? "0-11").split("-").map(Number);
const numTokens = 6;

/** Rows pick a column of the head each, so that logits are the same numbers on both, and so must be what is sampled of them. */
describe(
  "a GPU samples what the CPU samples of the same logits",
  { skip: typeof gpu === "string" && gpu },
  () => {
    if (typeof gpu === "string") return;
    for (let seed = from ?? 0; seed <= (to ?? 0); seed++) {
      const random = new SeededRandom(seed);
      const vocab = random.pick([1, 2, 3, 5, 31, 33, 127, 128, 129, 130, 255, 257, random.integer(1, 3000)]);
      test(`${seed}: of ${vocab} tokens`, async () => {
        const values = logitsOf(random, vocab);
        const outputs = Array.from({ length: numTokens }, () => randomRow(random, vocab));
        const state = stateOf(random, vocab);
        const run = async (backend: Backend): Promise<readonly RowResult[]> => {
          const identity = Float32Array.from({ length: numTokens ** 2 }, (_, i) =>
            i % (numTokens + 1) === 0 ? 1 : 0,
          );
          using program = backend.compile({
            buffers: [numTokens],
            ops: [
              {
                op: "embedding",
                weight: await matrix(backend, numTokens, numTokens, identity),
                out: { buffer: 0 },
              },
            ],
            hidden: { buffer: 0 },
            head: { weight: await matrix(backend, vocab, numTokens, values) },
            maxTokens: numTokens,
          });
          using cache = backend.createKvCache(smallestCache);
          const rows = outputs.map(({ usesState, row }): OutputRow =>
            row.kind === "sample" && usesState
              ? { ...row, sampling: { ...row.sampling, state: backend.createSamplerState(state) } }
              : row,
          );
          const tokens = Array.from({ length: numTokens }, (_, token) => token);
          return (await backend.execute(program, cache, promptPlan(tokens, rows))).rows;
        };
        using cpu = createCpuBackend({ numThreads: 1 });
        using onGpu = createWebGpuBackend(gpu);
        const expected = await run(cpu);
        for (const [index, found] of (await run(onGpu)).entries()) {
          const wanted = expected[index];
          const what = JSON.stringify({ index, row: outputs[index]?.row }, (_, value: unknown) =>
            typeof value === "bigint" ? String(value) : value,
          );
          assert.equal(found.error, wanted?.error, what);
          assert.equal(found.token, wanted?.token, what);
          assert.deepEqual(found.topTokens, wanted?.topTokens, what);
          assert.equal(found.rank, wanted?.rank, what);
          if (wanted?.logprob !== undefined)
            assert.ok(Math.abs((found.logprob ?? Number.NaN) - wanted.logprob) < 1e-4, what);
        }
      });
    }
  },
);

/** Of each row, some with many equal logits, some with few values far apart. */
function logitsOf(random: SeededRandom, vocab: number): Float32Array {
  const values = new Float32Array(vocab * numTokens);
  for (let token = 0; token < numTokens; token++) {
    const kind = random.integer(0, 3);
    for (let id = 0; id < vocab; id++)
      values[id * numTokens + token] =
        kind === 0
          ? random.normal()
          : kind === 1
            ? random.integer(-2, 2)
            : kind === 2
              ? 1
              : random.normal() * 30;
  }
  return values;
}

function randomRow(
  random: SeededRandom,
  vocab: number,
): { readonly row: OutputRow; readonly usesState: boolean } {
  if (random.integer(0, 7) === 0)
    return {
      row: { kind: "score", target: random.integer(0, vocab - 1), numLogprobs: Math.min(vocab, 2) },
      usesState: false,
    };
  const words = Math.ceil(vocab / 32);
  const mask =
    random.integer(0, 3) === 0
      ? Uint32Array.from({ length: words }, () => random.integer(0, 2 ** 32 - 1))
      : undefined;
  return {
    row: {
      kind: "sample",
      sampling: {
        temperature: random.pick([0, 0.1, 0.7, 1, 5]),
        topP: random.pick([1, 1, 0.9, 0.3, 0.001]),
        topK: random.pick([0, 0, 1, 2, 7, 63, 64, 65, 200]),
        minP: random.pick([0, 0, 0.1, 0.9]),
        seed: BigInt(random.integer(0, 2 ** 31)),
        index: random.integer(0, 5000),
        mask,
      },
      numLogprobs: random.integer(0, 3) === 0 ? Math.min(vocab, random.integer(0, 5)) : undefined,
    },
    usesState: random.integer(0, 3) === 0,
  };
}

function stateOf(random: SeededRandom, vocab: number) {
  const ids = (length: number): Int32Array => Int32Array.from({ length }, () => random.integer(0, vocab - 1));
  return {
    promptTokens: ids(4),
    outputTokens: ids(3),
    repetitionPenalty: random.pick([1, 1.3]),
    frequencyPenalty: random.pick([0, 0.5]),
    presencePenalty: random.pick([0, -0.5]),
    logitBias: { ids: Int32Array.of(vocab - 1), values: Float32Array.of(random.pick([-100, 3])) },
  };
}
