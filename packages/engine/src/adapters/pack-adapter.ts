import type {
  Adapter,
  AdapterPart,
  AdapterSite,
  Backend,
  Matrix,
  MatrixSource,
  Program,
} from "@octavo/kernels";
import { modelFamily } from "@octavo/artifacts/program/registry";
import { OctavoError } from "@octavo/protocol/errors";
import { convertFloats } from "@octavo/artifacts/program/float-conversion";
import type { Checkpoint, TensorInfo } from "@octavo/artifacts/checkpoint/checkpoint";
import { readTensor } from "@octavo/artifacts/checkpoint/read-tensor";
import { type FloatType, isFloatType } from "@octavo/artifacts/checkpoint/tensor-storage";
import type { AdapterModule } from "@octavo/artifacts/adapters/read-adapter";

/** The program that adapters are packed for, and how its checkpoint stores queries and keys. */
export interface AdapterTarget {
  readonly backend: Backend;
  readonly program: Program;
  /**
   * Set if the rows of q_proj and k_proj are interleaved (pairs of one frequency side by side instead of in two halves), as in GGUF
   * files of the llama architecture: an adapter's rows are reordered alike.
   */
  readonly interleavedHeadDim?: number | undefined;
}

/** `AdapterTarget.interleavedHeadDim` of a checkpoint. */
export function interleavedHeadDimOf({ format, config }: Checkpoint): number | undefined {
  const { gguf } = modelFamily(config.architecture);
  const isPermuted =
    format === "gguf" && gguf?.ropeLayout === "interleaved" && gguf.isInterleavedAsTrained !== true;
  return isPermuted ? config.headDim : undefined;
}

export interface PackedAdapter {
  readonly handle: Adapter;
  readonly byteLength: number;
}

/** Packs an adapter's matrices, stacking those that share an input. */
export async function packAdapter(
  target: AdapterTarget,
  modules: readonly AdapterModule[],
  signal?: AbortSignal,
): Promise<PackedAdapter> {
  const { backend, program } = target;
  if (backend.createAdapter === undefined) {
    throw new OctavoError("not_implemented", `The ${backend.info.name} backend has no LoRA adapters.`);
  }
  const bySite = new Map<number, AdapterModule[]>();
  for (const module of modules) {
    const { site } = module.target;
    bySite.set(site, [...(bySite.get(site) ?? []), module]);
  }
  const made: Matrix[] = [];
  const pack = async (sources: readonly MatrixSource[]): Promise<Matrix> => {
    signal?.throwIfAborted();
    const matrix = await backend.createMatrix(sources);
    made.push(matrix);
    return matrix;
  };
  const sites: AdapterSite[] = [];
  try {
    for (const [site, members] of bySite) {
      const type = commonType(members.map(({ down }) => down));
      const down = await pack(await Promise.all(members.map((member) => matrixSource(member.down, type))));
      const parts: AdapterPart[] = [];
      for (const member of members) {
        const up = await pack([await upSource(member, target.interleavedHeadDim)]);
        parts.push({ column: member.target.column, up, scale: member.scale });
      }
      sites.push({ site, down, parts });
    }
    const byteLength = made.reduce((sum, matrix) => sum + matrix.byteLength, 0);
    return { handle: backend.createAdapter(program, sites), byteLength };
  } finally {
    // The adapter keeps its own references.
    for (const matrix of made) matrix[Symbol.dispose]();
  }
}

async function matrixSource(tensor: TensorInfo, type: FloatType): Promise<MatrixSource> {
  const [rows = 0, cols = 0] = tensor.shape;
  const stored = await readTensor(tensor);
  const data = tensor.type === type ? stored : convertFloats(stored, floatType(tensor), type);
  return { type, rows, cols, name: tensor.name, bytes: { data } };
}

async function upSource({ name, up }: AdapterModule, headDim: number | undefined): Promise<MatrixSource> {
  const source = await matrixSource(up, floatType(up));
  if (headDim === undefined || !/\.[qk]_proj$/.test(name) || !("data" in source.bytes)) return source;
  return { ...source, bytes: { data: interleaveHeads(source.bytes.data, source.rows, headDim) } };
}

/** Rows i and i + d/2 of every head become rows 2i and 2i + 1. */
function interleaveHeads(data: Uint8Array, rows: number, headDim: number): Uint8Array {
  const rowBytes = data.byteLength / rows;
  const half = headDim / 2;
  const moved = new Uint8Array(data.byteLength);
  for (let row = 0; row < rows; row++) {
    const within = row % headDim;
    const to = row - within + (within < half ? 2 * within : 2 * (within - half) + 1);
    moved.set(data.subarray(row * rowBytes, (row + 1) * rowBytes), to * rowBytes);
  }
  return moved;
}

/** The type of matrices that are stacked. */
function commonType(tensors: readonly TensorInfo[]): FloatType {
  const types = new Set(tensors.map(floatType));
  const [only] = types;
  return only !== undefined && types.size === 1 ? only : "f32";
}

function floatType({ name, type }: TensorInfo): FloatType {
  if (isFloatType(type)) return type;
  throw new OctavoError("artifact_unsupported", `Tensor ${name} of an adapter is stored as ${type}.`);
}
