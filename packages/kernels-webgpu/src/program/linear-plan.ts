import type { Activation, Op } from "@octavo/kernels";
import type { Gpu } from "../device/gpu.js";
import type { MatrixPart, MatrixStorage } from "../handles.js";
import { packedShape } from "../weights/pack-matrix.js";
import { embeddingShader, fewRowsShader, manyRowsShader, manyRowsTile } from "../wgsl/linear.js";
import type { LinearKind } from "../wgsl/linear-inputs.js";
import { matrixLinearShader, matrixTileRows } from "../wgsl/matrix-linear.js";
import { chunkColumns, columnUnit, numSlices, tileRows } from "../wgsl/matrix-forms.js";
import { type Shader, stepIndex } from "../wgsl/shader.js";
import { isAligned, type ArenaPlace } from "./arena.js";
import type { DispatchPlan, Phase, StepCounts } from "./dispatch.js";

interface LinearNorm {
  readonly weight: GPUBuffer;
  readonly eps: number;
  readonly weightOffset: number;
}

export interface LinearRequest {
  readonly matrix: MatrixStorage;
  readonly bias?: GPUBuffer | undefined;
  readonly from: ArenaPlace;
  readonly to: ArenaPlace;
  readonly phase: Phase;
  /** Index of the row count in `step`. */
  readonly rowsAt: number;
  /** Rows of this dispatch, where they are not those of the phase. */
  readonly rows?: (counts: StepCounts) => number;
  readonly accumulates?: boolean;
  readonly norm?: LinearNorm | undefined;
  /** The norm of a block's output, which is added to the input before it is normalised; the sum goes to `stream`. */
  readonly post?: (LinearNorm & { readonly update: ArenaPlace; readonly stream: ArenaPlace }) | undefined;
  readonly activation?: Activation | undefined;
  /** Each row's weight, in the first column of `at`, and what it multiplies. */
  readonly rowWeights?: { readonly at: ArenaPlace; readonly weighs: NonNullable<LinearKind["weighs"]> };
}

/** More rows than these are multiplied through shared memory. */
const mostFewRows = 32;

/** Dispatches of out = in * matrix^T: one for each part of the matrix. */
export function planLinear(gpu: Gpu, request: LinearRequest): DispatchPlan[] {
  const { matrix, from, to, activation, post } = request;
  const kind: LinearKind = {
    form: matrix.form,
    isAligned: isAligned(from) && matrix.cols % columnUnit === 0,
    hasNorm: request.norm !== undefined,
    hasPost: post !== undefined,
    subgroupSize: gpu.subgroupSize,
    activation,
    weighs: request.rowWeights?.weighs,
  };
  const { few, many, manyTile } = variantsOf(gpu, kind);
  return matrix.parts.map((part) => {
    const outRows = activation === undefined ? part.rows : part.rows / 2;
    const tiles = Math.ceil(outRows / tileRows);
    const launch = linearLaunch({ few, many, manyTile }, tiles, activation === undefined ? 2 : 1);
    const rows = request.rows ?? ((counts: StepCounts) => counts[request.phase]);
    return {
      shader: many,
      params: {
        ...matrixParams(matrix, part),
        rowsAt: request.rowsAt,
        src: from.at,
        srcStride: from.stride,
        to: to.at + part.firstRow,
        toStride: to.stride,
        outRows,
        tiles,
        hasBias: request.bias === undefined ? 0 : 1,
        bias: part.firstRow,
        accumulates: request.accumulates === true ? 1 : 0,
        upTiles: activation === undefined ? 0 : tiles,
        eps: request.norm?.eps ?? 0,
        weightOffset: request.norm?.weightOffset ?? 0,
        mask: request.rowWeights?.at.at ?? 0,
        maskStride: request.rowWeights?.at.stride ?? 0,
        update: (post?.update.at ?? 0) - from.at,
        stream: (post?.stream.at ?? 0) - from.at,
        postEps: post?.eps ?? 0,
        postOffset: post?.weightOffset ?? 0,
      },
      buffers: [
        part.codes,
        part.scales ?? gpu.nothing,
        request.bias ?? gpu.nothing,
        request.norm?.weight ?? gpu.nothing,
        ...(post === undefined ? [] : [post.weight]),
      ],
      launch: (counts) => launch(rows(counts)),
    };
  });
}

interface LinearVariants {
  readonly few: readonly { readonly rows: number; readonly shader: Shader; readonly tilesAtOnce?: number }[];
  readonly many: Shader;
  readonly manyTile: number;
}

/** Kernels of a linear, by rows. All of them give a row the same bits: it is multiplied on matrix units always or never. */
function variantsOf({ matrixUnit }: Gpu, kind: LinearKind): LinearVariants {
  const isOnUnit =
    matrixUnit !== undefined && kind.isAligned && kind.form.codes !== "f32" && kind.weighs === undefined;
  if (!isOnUnit) {
    const few = [1, 4, 8].map((rows) => ({ rows, shader: fewRowsShader(kind, rows) }));
    return { few, many: manyRowsShader(kind), manyTile: manyRowsTile };
  }
  const { few, many } = matrixTileRows(matrixUnit);
  const tilesAtOnce = kind.activation === undefined ? 2 : 1;
  return {
    few: [{ rows: few, shader: matrixLinearShader(kind, matrixUnit, few), tilesAtOnce }],
    many: matrixLinearShader(kind, matrixUnit, many),
    manyTile: many,
  };
}

function linearLaunch(
  { few, many, manyTile }: LinearVariants,
  tiles: number,
  tilesAtOnce: number,
): (rows: number) => ReturnType<DispatchPlan["launch"]> {
  return (rows) => {
    if (rows === 0) return undefined;
    if (rows > mostFewRows)
      return { shader: many, size: [Math.ceil(tiles / tilesAtOnce), Math.ceil(rows / manyTile), 1] };
    const fits = few.find((variant) => rows <= variant.rows) ?? few.at(-1);
    if (fits === undefined) return undefined;
    return {
      shader: fits.shader,
      size: [Math.ceil(tiles / (fits.tilesAtOnce ?? 1)), Math.ceil(rows / fits.rows), 1],
    };
  };
}

function matrixParams(matrix: MatrixStorage, part: MatrixPart): Record<string, number> {
  const { chunks, groups } = packedShape(matrix.form, matrix.cols);
  const unitChunks = columnUnit / chunkColumns(matrix.form.codes);
  return {
    cols: matrix.cols,
    outRows: part.rows,
    tiles: Math.ceil(part.rows / tileRows),
    chunks,
    sliceChunks: Math.ceil(chunks / unitChunks / numSlices) * unitChunks,
    paddedRows: Math.ceil(part.rows / tileRows) * tileRows,
    groups,
  };
}

/** Whether gates and ups of a matrix lie in whole tiles of one part, as a fused activation needs. */
export function canFuseActivation({ rows, parts }: MatrixStorage): boolean {
  return parts.length === 1 && rows % (2 * tileRows) === 0;
}

/** Dispatches that look rows up by the step's token ids. */
export function planEmbedding(
  gpu: Gpu,
  matrix: MatrixStorage,
  to: ArenaPlace,
  { scale = 1, of, offset = 0 }: Pick<Extract<Op, { op: "embedding" }>, "scale" | "of" | "offset">,
): DispatchPlan[] {
  const index = stepIndex(of === "position" ? "positions" : of === "type" ? "tokenTypes" : "tokenIds");
  const shader = embeddingShader(matrix.form);
  return matrix.parts.map((part) => {
    const params = matrixParams(matrix, part);
    const x = Math.ceil((params["chunks"] ?? 0) / 64);
    return {
      shader,
      params: { ...params, to: to.at, toStride: to.stride, firstRow: part.firstRow, index, offset, scale },
      buffers: [part.codes, part.scales ?? gpu.nothing, gpu.nothing, gpu.nothing],
      launch: ({ tokens }) => ({ shader, size: [x, tokens, 1] }),
    };
  });
}
