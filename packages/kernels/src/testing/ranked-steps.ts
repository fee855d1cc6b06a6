import { OctavoError } from "@octavo/protocol/errors";
import type { Backend, Op, ProgramSpec, StepPlan, StepResult } from "../index.js";
import { matrix } from "./op-harness.js";

/** Rows full of the rank's number, of whose columns each rank then gets those of the other, again and again. */
export async function sharedRows(backend: Backend, rank: number): Promise<ProgramSpec> {
  const weight = await matrix(backend, 64, 32, new Float32Array(64 * 32).fill(rank));
  const exchange: Op = { op: "exchange", on: { buffer: 0 }, from: "parts" };
  return {
    buffers: [32],
    ops: [{ op: "embedding", weight, out: { buffer: 0 } }, ...Array.from({ length: 200 }, () => exchange)],
    hidden: { buffer: 0 },
    maxTokens: 64,
  };
}

/** Many steps of ranks, under way. */
export async function rankedSteps(backend: Backend, count: number): Promise<Promise<StepResult>[]> {
  const { ranks = [] } = backend;
  const specs = await Promise.all(ranks.map((rank, index) => sharedRows(rank, index)));
  const program = backend.compileRanks?.(specs);
  if (program === undefined) throw new OctavoError("internal_error", "The backend has no ranks.");
  const cache = backend.createKvCache({
    layers: [{ numKvHeads: 2, headDim: 16 }],
    numBlocks: 1,
    blockSize: 64,
    dtype: "f32",
  });
  const tokens = Int32Array.from({ length: 64 }, (_, index) => index);
  const plan: StepPlan = {
    numTokens: 64,
    numSequences: 1,
    tokenIds: tokens,
    positions: tokens,
    slots: tokens,
    queryStarts: Int32Array.of(0, 64),
    contextLengths: Int32Array.of(64),
    blockTables: Int32Array.of(0),
    blockTableStarts: Int32Array.of(0, 1),
    outputTokens: Int32Array.of(0),
    outputs: [{ kind: "hidden" }],
  };
  return Array.from({ length: count }, () => backend.execute(program, cache, plan));
}
