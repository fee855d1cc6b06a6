import { availableMemoryBytes, createCpuBackend, type Backend, type StepPlan } from "@octavo/kernels";
import type { Hardware } from "./hardware.js";

const hiddenSize = 1024;
/** Far more bytes than any cache holds, so that a step of one token reads memory. */
const numMatrices = 96;
const prefillTokens = 64;
const repetitions = 3;

/**
 * This machine as our own kernels see it: memory from the system, bandwidth from reading 192 MiB of bf16 weights for one
 * token, operations from multiplying the same weights with 64 tokens. The best of three runs each; takes about a second.
 * @throws OctavoError `native_unavailable`
 */
export async function measureCpu(numThreads?: number): Promise<Hardware> {
  const backend = createCpuBackend({ kernels: "auto", ...(numThreads !== undefined && { numThreads }) });
  try {
    return await measure(backend);
  } finally {
    backend[Symbol.dispose]();
  }
}

async function measure(backend: Backend): Promise<Hardware> {
  const matrix = (name: string, rows: number) =>
    backend.createMatrix([
      {
        type: "bf16",
        rows,
        cols: hiddenSize,
        bytes: { data: new Uint8Array(rows * hiddenSize * 2) },
        name,
      },
    ]);
  using embedding = await matrix("embedding", 32);
  const layers = await Promise.all(
    Array.from({ length: numMatrices }, (_, i) => matrix(`layer ${i}`, hiddenSize)),
  );
  using program = backend.compile({
    buffers: [hiddenSize, hiddenSize, hiddenSize],
    ops: [
      { op: "embedding", weight: embedding, out: { buffer: 0 } },
      ...layers.map((weight, i) => ({
        op: "linear" as const,
        in: { buffer: i % 2 },
        weight,
        out: { buffer: (i + 1) % 2 },
      })),
      { op: "gather", in: { buffer: numMatrices % 2 }, out: { buffer: 2 } },
    ],
    hidden: { buffer: 2 },
    head: { weight: embedding },
    maxTokens: prefillTokens,
  });
  using cache = backend.createKvCache({
    layers: [{ numKvHeads: 1, headDim: 8 }],
    numBlocks: prefillTokens / 16,
    blockSize: 16,
    dtype: "f32",
  });
  for (const layer of layers) layer[Symbol.dispose]();
  const fastestSeconds = async (numTokens: number): Promise<number> => {
    let best = Infinity;
    // The first run warms up threads and pages.
    for (let run = 0; run <= repetitions; run++) {
      const { computeMs } = await backend.execute(program, cache, planOf(numTokens));
      if (run > 0) best = Math.min(best, computeMs / 1000);
    }
    return best;
  };
  const weights = numMatrices * hiddenSize * hiddenSize;
  const { instructionSet, features } = backend.info;
  const bandwidth = (weights * 2) / (await fastestSeconds(1));
  const bf16 = (2 * weights * prefillTokens) / (await fastestSeconds(prefillTokens));
  return {
    name: `this machine: ${[instructionSet, ...features].join(" + ")} on ${backend.info.numThreads} threads`,
    memoryBytes: availableMemoryBytes(),
    bandwidth,
    flops: { bf16 },
    source: "measured now with Octavo's own kernels; memory as this process may use it",
  };
}

function planOf(numTokens: number): StepPlan {
  const count = Int32Array.from({ length: numTokens }, (_, i) => i);
  const numBlocks = Math.ceil(numTokens / 16);
  return {
    numTokens,
    numSequences: 1,
    tokenIds: new Int32Array(numTokens),
    positions: count,
    slots: count,
    queryStarts: Int32Array.of(0, numTokens),
    contextLengths: Int32Array.of(numTokens),
    blockTables: Int32Array.from({ length: numBlocks }, (_, i) => i),
    blockTableStarts: Int32Array.of(0, numBlocks),
    outputTokens: Int32Array.of(numTokens - 1),
    outputs: [{ kind: "hidden" }],
  };
}
