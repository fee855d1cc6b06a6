import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, ExpertWeights, KvDtype, MatrixSource, Program, WeightType } from "../../backend.js";
import { toBf16Bits } from "../half-floats.js";
import { assertSameBits, floatBytes, vector } from "../op-harness.js";
import { RandomSchedule } from "../random-schedule.js";
import { SeededRandom } from "../seeded-random.js";

const hiddenSize = 64;
const numHeads = 8;
const numKvHeads = 2;
const headDim = 16;
const innerSize = 96;
const numLayers = 2;
const numExperts = 5;
const usualLengths = [150, 1, 37, 64, 12];
/** For backends whose steps are slow where they are tested. */
const fewLengths = [12, 1, 4];
const mostTokens = usualLengths.reduce((sum, length) => sum + length, 0);

/** A row's bits depend on its own sequence alone: not on neighbours, chunking, blocks or threads. */
export function determinismConformance(open: (numThreads: number) => Backend, hasFewSteps = false): void {
  describe("the same bits under any schedule", () => {
    for (const weights of ["f32", "bf16", "q8_0", "int8"] as const) {
      for (const dtype of ["f32", "bf16", "int8"] as const) {
        if ((hasFewSteps || weights === "int8") && pairOf[weights] !== dtype) continue;
        test(`${weights} weights, ${dtype} cache`, async () => {
          const lengths = hasFewSteps ? fewLengths : usualLengths;
          const numTokens = lengths.reduce((sum, length) => sum + length, 0);
          const once = { numThreads: 1, blockSize: 16, seed: undefined };
          const alone = await runAll(open, weights, dtype, lengths, once);
          const variants = [
            { numThreads: 2, blockSize: 16, seed: 1 },
            { numThreads: 3, blockSize: 7, seed: 2 },
            { numThreads: 2, blockSize: 64, seed: 3 },
            { numThreads: 1, blockSize: 1, seed: 4 },
          ];
          for (const variant of hasFewSteps ? variants.slice(1, 2) : variants) {
            const batched = await runAll(open, weights, dtype, lengths, variant);
            for (let token = 0; token < numTokens; token++) {
              assertSameBits(batched[token], alone[token], `token ${token} under ${JSON.stringify(variant)}`);
            }
          }
        });
      }
    }
  });
}

/** The caches that weights are tried with where steps are few. */
const pairOf: Readonly<Partial<Record<WeightType, KvDtype>>> = {
  f32: "f32",
  bf16: "bf16",
  q8_0: "int8",
  int8: "f32",
};

/** Logits of every token of every sequence; without a seed each sequence runs alone, token by token. */
async function runAll(
  open: (numThreads: number) => Backend,
  weights: WeightType,
  dtype: KvDtype,
  lengths: readonly number[],
  options: { readonly numThreads: number; readonly blockSize: number; readonly seed: number | undefined },
): Promise<Float32Array[]> {
  using backend = open(options.numThreads);
  using program = await transformer(backend, weights);
  const { blockSize, seed } = options;
  const logits: Float32Array[] = [];
  const run = async (schedule: RandomSchedule): Promise<void> => {
    using cache = backend.createKvCache({
      layers: Array.from({ length: numLayers }, () => ({ numKvHeads, headDim })),
      numBlocks: schedule.numBlocks,
      blockSize,
      dtype,
    });
    for (let step = schedule.next(); step !== undefined; step = schedule.next()) {
      const outputs = step.rows.map(() => ({ kind: "score", target: 0, numLogprobs: 0 }) as const);
      const { rows } = await backend.execute(program, cache, { ...step.plan, outputs, wantLogits: true });
      for (const [index, row] of rows.entries())
        logits[step.plan.tokenIds[index] ?? 0] = row.logits ?? new Float32Array();
    }
  };
  if (seed !== undefined) {
    await run(new RandomSchedule(new SeededRandom(seed), lengths, blockSize));
    return logits;
  }
  let firstId = 0;
  for (const length of lengths) {
    await run(new RandomSchedule(new SeededRandom(0), [length], blockSize, { firstId, mostPerStep: 1 }));
    firstId += length;
  }
  assert.equal(logits.length, firstId);
  return logits;
}

/** A small decoder with every op, whose token ids number the test's tokens. */
async function transformer(backend: Backend, weights: WeightType): Promise<Program> {
  const random = new SeededRandom(9);
  const matrix = (rows: number, cols: number): ReturnType<Backend["createMatrix"]> =>
    backend.createMatrix([storedMatrix(weights, rows, cols, random)]);
  const norm = (length: number): ReturnType<Backend["createVector"]> =>
    vector(backend, random.floats(length));
  const qWidth = numHeads * headDim;
  const kvWidth = numKvHeads * headDim;
  const [stream, normed, qkv, attended, gateUp, activated, last] = [0, 1, 2, 3, 4, 5, 6].map((buffer) => ({
    buffer,
  }));
  const mixed = { buffer: 8 };
  const embedding = await matrix(mostTokens, hiddenSize);
  const layers = [];
  for (let layer = 0; layer < numLayers; layer++) {
    layers.push(
      {
        op: "rms_norm",
        in: layer === 0 ? stream! : normed!,
        ...(layer > 0 && { residual: stream! }),
        weight: norm(hiddenSize),
        out: normed!,
        eps: 1e-5,
      } as const,
      {
        op: "linear",
        in: normed!,
        weight: await matrix(qWidth + 2 * kvWidth, hiddenSize),
        bias: norm(qWidth + 2 * kvWidth),
        out: qkv!,
      } as const,
      {
        op: "rope",
        on: { buffer: 2, column: 0, width: qWidth + kvWidth },
        headDim,
        rope: {
          inverseFrequencies: Float32Array.of(1, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4),
          attentionFactor: 1,
          layout: "neox",
        },
      } as const,
      {
        op: "attention",
        q: { buffer: 2, column: 0, width: qWidth },
        k: { buffer: 2, column: qWidth, width: kvWidth },
        v: { buffer: 2, column: qWidth + kvWidth },
        out: attended!,
        layer,
        numHeads,
        numKvHeads,
        headDim,
        scale: 0.25,
        ...(layer === 1 && { slidingWindow: 48, softCap: 20 }),
      } as const,
      { op: "linear", in: attended!, weight: await matrix(hiddenSize, qWidth), out: normed! } as const,
      {
        op: "rms_norm",
        in: normed!,
        residual: stream!,
        weight: norm(hiddenSize),
        out: normed!,
        eps: 1e-5,
      } as const,
    );
    if (layer === 0) {
      layers.push(
        { op: "linear", in: normed!, weight: await matrix(2 * innerSize, hiddenSize), out: gateUp! } as const,
        { op: "gated_activation", in: gateUp!, out: activated!, activation: "silu" } as const,
        { op: "linear", in: activated!, weight: await matrix(hiddenSize, innerSize), out: normed! } as const,
      );
      continue;
    }
    const experts: ExpertWeights[] = [];
    while (experts.length < numExperts) {
      const [gate, down] = [await matrix(2 * innerSize, hiddenSize), await matrix(hiddenSize, innerSize)];
      experts.push({ gate, down });
    }
    const scores = { buffer: 7, column: 0, width: numExperts };
    layers.push(
      {
        op: "linear",
        in: normed!,
        weight: await matrix(numExperts + 1, hiddenSize),
        out: { buffer: 7 },
      } as const,
      {
        op: "experts",
        in: normed!,
        scores,
        out: mixed,
        experts,
        topK: 2,
        softmaxOver: "all",
        activation: "silu",
      } as const,
      { op: "sigmoid_gate", in: { buffer: 7, column: numExperts }, on: normed! } as const,
      { op: "add", in: mixed, out: normed! } as const,
    );
  }
  return backend.compile({
    buffers: [
      hiddenSize,
      hiddenSize,
      qWidth + 2 * kvWidth,
      qWidth,
      2 * innerSize,
      innerSize,
      hiddenSize,
      numExperts + 1,
      hiddenSize,
    ],
    ops: [
      { op: "embedding", weight: embedding, out: stream! },
      ...layers,
      { op: "add", in: normed!, out: stream! },
      { op: "gather", in: stream!, out: last! },
      { op: "rms_norm", in: last!, weight: norm(hiddenSize), out: last!, eps: 1e-5 },
    ],
    hidden: last!,
    head: { weight: await matrix(200, hiddenSize), softCap: 30 },
    maxTokens: mostTokens,
  });
}

function storedMatrix(type: WeightType, rows: number, cols: number, random: SeededRandom): MatrixSource {
  const values = random.floats(rows * cols, 0.2);
  const shape = { type, rows, cols, name: "test.matrix" };
  if (type === "bf16")
    return { ...shape, bytes: { data: new Uint8Array(Uint16Array.from(values, toBf16Bits).buffer) } };
  if (type === "f32") return { ...shape, bytes: floatBytes(values) };
  if (type === "int8") {
    const bytes = { data: new Uint8Array(Int8Array.from(values, (value) => Math.round(value * 256)).buffer) };
    return { ...shape, bytes, scales: floatBytes(new Float32Array(rows).fill(2 ** -8)), groupSize: cols };
  }
  // q8_0: per 32 columns an f16 scale, then signed bytes. 0x1c00 is 2^-8.
  const data = new Uint8Array((values.length / 32) * 34);
  for (let block = 0; block < values.length / 32; block++) {
    data[34 * block + 1] = 0x1c;
    for (let i = 0; i < 32; i++) {
      data[34 * block + 2 + i] = Math.max(
        -127,
        Math.min(127, Math.round((values[32 * block + i] ?? 0) * 256)),
      );
    }
  }
  return { ...shape, bytes: { data } };
}
