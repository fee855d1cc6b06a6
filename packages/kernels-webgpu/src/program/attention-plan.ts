import type { BufferRef, KvDtype, Op, RopeSpec, Vector } from "@octavo/kernels";
import type { Gpu } from "../device/gpu.js";
import { type AttentionKind, attentionShader, type ChunkCode, combineShader } from "../wgsl/attention.js";
import { laneChunks } from "../wgsl/lane-attention.js";
import { matrixAttentionOf, matrixChunks } from "../wgsl/matrix-attention.js";
import { kvHeadWords, kvStoreShader } from "../wgsl/kv-cache.js";
import type { Shader } from "../wgsl/shader.js";
import type { Arena } from "./arena.js";
import type { DispatchPlan, StepCounts } from "./dispatch.js";
import type { FusedAttention } from "./lowered-op.js";

export type AttentionOp = Extract<Op, { op: "attention" }>;

/** What attention needs beside its op. */
export interface AttentionMemory {
  readonly dtype: KvDtype;
  readonly blockSize: number;
  readonly keys: GPUBuffer;
  readonly values: GPUBuffer;
  readonly sinks: GPUBuffer;
  /** Scratch memory of segments, for so many rows times segments. */
  readonly parts: GPUBuffer;
  readonly partSlots: number;
  readonly nothing: GPUBuffer;
  readonly vector: (vector: Vector) => GPUBuffer;
  /** The number of a table of cosines and sines. */
  readonly ropeTable: (rope: RopeSpec) => number;
}

/** Workgroups from which on segments are not worth workgroups of their own. */
const enoughGroups = 128;

type Heads = Pick<AttentionOp, "numHeads" | "numKvHeads" | "headDim" | "valueDim">;

/** The code of a layer's chunks. It is the same for prompts and for single tokens: both give a token the same bits. */
function chunksOf(gpu: Gpu, kind: AttentionKind): ChunkCode {
  const { maxComputeWorkgroupStorageSize: shared } = gpu.device.limits;
  const form = matrixAttentionOf(gpu.matrixUnit, kind, shared);
  return form === undefined ? laneChunks(kind) : matrixChunks(kind, form);
}

function kindOf({ headDim, valueDim }: Heads, dtype: KvDtype): AttentionKind {
  return { dtype, headDim, valueDim: valueDim ?? headDim, hasValues: valueDim === undefined, isSplit: false };
}

/** Rows of a sequence that share the keys a workgroup reads. */
export function rowsPerTile(gpu: Gpu, op: Heads): number {
  const { queries } = chunksOf(gpu, kindOf(op, "f32"));
  return Math.max(1, Math.floor(queries / (op.numHeads / op.numKvHeads)));
}

/** Floats of one row's part of one segment. */
export function partFloats({
  numHeads,
  headDim,
  valueDim = headDim,
}: Pick<AttentionOp, "numHeads" | "headDim" | "valueDim">): number {
  return numHeads * (valueDim + 2);
}

/** Writes keys and values to the cache, attends, and folds segments where they were taken apart. */
export function planAttention(
  gpu: Gpu,
  op: FusedAttention,
  arena: Arena,
  memory: AttentionMemory,
): DispatchPlan[] {
  const { numHeads, numKvHeads } = op;
  const { dtype, partSlots } = memory;
  const [q, out] = [arena.of(op.q), arena.of(op.out)];
  const kind = kindOf(op, dtype);
  const chunks = chunksOf(gpu, kind);
  const heads = Math.min(numHeads / numKvHeads, chunks.queries);
  const groupsY = numKvHeads * Math.ceil(numHeads / numKvHeads / heads);
  const whole = attentionShader(kind, chunks);
  const split = attentionShader({ ...kind, isSplit: true }, chunks);
  const combine = combineShader(kind.valueDim);
  const splits = ({ tokens, tiles, segments }: StepCounts): boolean =>
    segments > 1 && tiles * groupsY < enoughGroups && tokens * segments <= partSlots;
  const params = {
    q: q.at,
    qStride: q.stride,
    to: out.at,
    toStride: out.stride,
    numHeads,
    numKvHeads,
    blockSize: memory.blockSize,
    heads,
    window: op.slidingWindow ?? 0,
    period: op.chunk ?? 0,
    ahead: Math.min(op.lookAhead ?? 0, 2 ** 30),
    hasSinks: op.sinks === undefined ? 0 : 1,
    scale: op.scale,
    softCap: op.softCap ?? 0,
  };
  const { keys, values, sinks, parts } = memory;
  const attend: DispatchPlan = {
    shader: whole,
    params,
    buffers: [keys, values, sinks, parts],
    launch: (counts) =>
      splits(counts)
        ? { shader: split, size: [counts.tiles, groupsY, counts.segments] }
        : { shader: whole, size: [counts.tiles, groupsY, 1] },
  };
  const fold: DispatchPlan = {
    shader: combine,
    params,
    buffers: [sinks, parts],
    launch: (counts) =>
      splits(counts) ? { shader: combine, size: [numHeads, counts.tokens, 1] } : undefined,
  };
  const { k } = op;
  return k === undefined ? [attend, fold] : [planStore({ ...op, k }, arena, memory), attend, fold];
}

/** Also normalises and turns queries and keys, where that was fused. Latent attention has no values to store. */
function planStore(
  op: FusedAttention & { readonly k: BufferRef },
  arena: Arena,
  memory: AttentionMemory,
): DispatchPlan {
  const { headDim, numKvHeads, heads } = op;
  const { dtype, keys, values, nothing, vector, ropeTable } = memory;
  const { qNorm, kNorm, rope } = heads ?? {};
  const [q, k, v] = [arena.of(op.q), arena.of(op.k), arena.of(op.v ?? op.k)];
  const numHeads = heads === undefined ? 0 : op.numHeads;
  const shader: Shader = kvStoreShader(dtype, headDim);
  return {
    shader,
    params: {
      words: kvHeadWords(dtype, headDim),
      numHeads,
      numKvHeads,
      q: q.at,
      qStride: q.stride,
      k: k.at,
      kStride: k.stride,
      v: v.at,
      vStride: v.stride,
      pairs: rope?.inverseFrequencies.length ?? 0,
      table: rope === undefined ? 0 : ropeTable(rope),
      isNeox: rope?.layout === "neox" ? 1 : 0,
      hasQNorm: qNorm === undefined ? 0 : 1,
      hasKNorm: kNorm === undefined ? 0 : 1,
      qEps: qNorm?.eps ?? 0,
      kEps: kNorm?.eps ?? 0,
      qOffset: qNorm?.weightOffset ?? 0,
      kOffset: kNorm?.weightOffset ?? 0,
    },
    buffers: [
      keys,
      values,
      qNorm === undefined ? nothing : vector(qNorm.weight),
      kNorm === undefined ? nothing : vector(kNorm.weight),
    ],
    launch: ({ tokens }) => ({
      shader,
      size: [numHeads + (op.v === undefined ? 1 : 2) * numKvHeads, tokens, 1],
    }),
  };
}
