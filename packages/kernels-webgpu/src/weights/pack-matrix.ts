import type { MatrixSource, TensorBytes } from "@octavo/kernels";
import type { Gpu } from "../device/gpu.js";
import { expectHandle, GpuMappedFile, type MatrixPart, type MatrixStorage, Memory } from "../handles.js";
import { chunkColumns, columnUnit, type MatrixForm, superColumns, tileRows } from "../wgsl/matrix-forms.js";
import { halfPair } from "./half.js";
import { type RowCoder, rowCoder, type RowTarget } from "./row-coders.js";

/** Bytes of codes that are packed between two turns of the event loop. */
const batchBytes = 4 << 20;

/** Sizes of a packed matrix, or of one of its parts. */
export interface PackedShape {
  readonly chunks: number;
  readonly groups: number;
  readonly supers: number;
}

export function packedShape(form: MatrixForm, cols: number): PackedShape {
  const padded = Math.ceil(cols / columnUnit) * columnUnit;
  return {
    chunks: padded / chunkColumns(form.codes),
    groups: form.scales === "none" ? 0 : Math.ceil(padded / form.group),
    supers: form.scales === "levels" ? Math.ceil(padded / superColumns) : 0,
  };
}

export function bytesOf(
  owner: object,
  bytes: TensorBytes,
): (offset: number, byteLength: number) => Uint8Array {
  if ("data" in bytes) return (offset, byteLength) => bytes.data.subarray(offset, offset + byteLength);
  const file = expectHandle(bytes.file, GpuMappedFile, "mapped file").contentFor(owner);
  return (offset, byteLength) => file.read(bytes.offset + offset, byteLength);
}

function floatsOf(owner: object, bytes: TensorBytes | undefined): Float32Array | undefined {
  if (bytes === undefined) return undefined;
  const length = "data" in bytes ? bytes.data.byteLength : bytes.byteLength;
  return new Float32Array(bytesOf(owner, bytes)(0, length).slice().buffer);
}

/** A source that rows are read from. */
interface OpenSource {
  readonly rows: number;
  readonly coder: RowCoder;
  readonly read: (offset: number, byteLength: number) => Uint8Array;
}

/**
 * Packs sources, stacked along rows, into buffers: parts of whole tiles where one binding cannot hold all. Gives the event loop a turn every
 * few megabytes. Rejects with `artifact_invalid` or `out_of_memory`.
 */
export async function packMatrix(
  gpu: Gpu,
  owner: object,
  sources: readonly MatrixSource[],
): Promise<MatrixStorage> {
  const name = sources[0]?.name ?? "";
  const cols = sources[0]?.cols ?? 0;
  const opened = sources.map((source): OpenSource => {
    const arrays = { scales: floatsOf(owner, source.scales), zeros: floatsOf(owner, source.zeros) };
    return { rows: source.rows, coder: rowCoder(source, arrays), read: bytesOf(owner, source.bytes) };
  });
  const form = commonForm(opened.map(({ coder }) => coder.form));
  const rows = opened.reduce((sum, source) => sum + source.rows, 0);
  const shape = packedShape(form, cols);
  const tileBytes = shape.chunks * tileRows * 16;
  const tiles = Math.ceil(rows / tileRows);
  const scaleWords = (shape.groups * (form.scales === "floats" ? 2 : 1) + shape.supers) * tileRows;
  const tilesEach = Math.min(tiles, Math.floor(gpu.mostBytes / Math.max(tileBytes, scaleWords * 4)));
  const parts = await gpu.allocate(name, () => {
    const made: MatrixPart[] = [];
    for (let tile = 0; tile < tiles; tile += Math.max(1, tilesEach)) {
      const count = Math.min(Math.max(1, tilesEach), tiles - tile);
      made.push({
        firstRow: tile * tileRows,
        rows: Math.min(rows, (tile + count) * tileRows) - tile * tileRows,
        codes: gpu.buffer(count * tileBytes, `Tensor ${name}`),
        scales: scaleWords === 0 ? undefined : gpu.buffer(count * scaleWords * 4, `Scales of ${name}`),
      });
    }
    return made;
  });
  const memory = new Memory(
    parts.flatMap(({ codes, scales }) => (scales === undefined ? [codes] : [codes, scales])),
  );
  try {
    for (const part of parts) await packPart(gpu, form, shape, part, opened);
  } catch (error) {
    memory.release();
    throw error;
  }
  return { form, rows, cols, parts, memory };
}

/** Sources share a type; those with scales may differ in whether f16 holds them. */
function commonForm(forms: readonly MatrixForm[]): MatrixForm {
  const floats = forms.find(({ scales }) => scales === "floats");
  return floats ?? forms[0] ?? { codes: "f32", scales: "none", group: columnUnit };
}

async function packPart(
  gpu: Gpu,
  form: MatrixForm,
  shape: PackedShape,
  part: MatrixPart,
  sources: readonly OpenSource[],
): Promise<void> {
  const paddedRows = Math.ceil(part.rows / tileRows) * tileRows;
  const scales = new Uint32Array(
    (shape.groups * (form.scales === "floats" ? 2 : 1) + shape.supers) * paddedRows,
  );
  const tileWords = shape.chunks * tileRows * 4;
  const tilesAtOnce = Math.max(1, Math.floor(batchBytes / (tileWords * 4)));
  const target: RowTarget = {
    words: new Uint32Array(shape.chunks * 4),
    codes: new Int8Array(shape.chunks * chunkColumns(form.codes)),
    pairs: new Float32Array(2 * shape.groups),
    supers: new Float32Array(2 * shape.supers),
  };
  const writer = new RowWriter(form, shape, paddedRows, scales, target);
  for (let tile = 0; tile * tileRows < part.rows; tile += tilesAtOnce) {
    const count = Math.min(tilesAtOnce, Math.ceil(part.rows / tileRows) - tile);
    const words = new Uint32Array(count * tileWords);
    const firstRow = tile * tileRows;
    const endRow = Math.min(part.rows, firstRow + count * tileRows);
    eachRow(sources, part.firstRow + firstRow, part.firstRow + endRow, (row, bytes, sourceRow, coder) => {
      coder.code(bytes, sourceRow, target);
      const local = row - part.firstRow;
      writer.write(words, local - firstRow, local);
    });
    gpu.upload(part.codes, tile * tileWords * 4, words);
    await new Promise<void>((resume) => setImmediate(resume));
  }
  if (part.scales !== undefined) gpu.upload(part.scales, 0, scales);
}

/** Calls with each of the stacked rows and its bytes, read a few megabytes at a time. */
function eachRow(
  sources: readonly OpenSource[],
  firstRow: number,
  endRow: number,
  take: (row: number, bytes: Uint8Array, sourceRow: number, coder: RowCoder) => void,
): void {
  let before = 0;
  for (const { rows, coder, read } of sources) {
    const from = Math.max(firstRow, before) - before;
    const to = Math.min(endRow, before + rows) - before;
    if (from < to) {
      const bytes = read(from * coder.rowBytes, (to - from) * coder.rowBytes);
      for (let row = from; row < to; row++) {
        const at = (row - from) * coder.rowBytes;
        take(before + row, bytes.subarray(at, at + coder.rowBytes), row, coder);
      }
    }
    before += rows;
  }
}

/** Puts a coded row where the kernels look for it. */
class RowWriter {
  readonly #form: MatrixForm;
  readonly #shape: PackedShape;
  readonly #paddedRows: number;
  readonly #scales: Uint32Array;
  readonly #target: RowTarget;
  readonly #bytesAsWords: Uint32Array;

  constructor(
    form: MatrixForm,
    shape: PackedShape,
    paddedRows: number,
    scales: Uint32Array,
    target: RowTarget,
  ) {
    this.#form = form;
    this.#shape = shape;
    this.#paddedRows = paddedRows;
    this.#scales = scales;
    this.#target = target;
    this.#bytesAsWords = form.codes === "int8" ? new Uint32Array(target.codes.buffer) : target.words;
  }

  /** `row` of the words of a batch, `partRow` of the part's scales. */
  write(words: Uint32Array, row: number, partRow: number): void {
    const { codes, words: packed, pairs, supers } = this.#target;
    const { chunks, groups } = this.#shape;
    if (this.#form.codes === "int4") packNibbles(codes, packed);
    const from = this.#bytesAsWords;
    let to = (Math.floor(row / tileRows) * chunks * tileRows + (row % tileRows)) * 4;
    for (let at = 0; at < chunks * 4; at += 4, to += tileRows * 4) {
      words[to] = from[at] ?? 0;
      words[to + 1] = from[at + 1] ?? 0;
      words[to + 2] = from[at + 2] ?? 0;
      words[to + 3] = from[at + 3] ?? 0;
    }
    if (this.#form.scales === "floats") {
      const floats = new Float32Array(this.#scales.buffer);
      for (let group = 0; group < groups; group++) {
        const at = 2 * (group * this.#paddedRows + partRow);
        floats[at] = pairs[2 * group] ?? 0;
        floats[at + 1] = pairs[2 * group + 1] ?? 0;
      }
      return;
    }
    this.#writePairs(pairs, 0, partRow);
    this.#writePairs(supers, groups, partRow);
  }

  #writePairs(pairs: Float32Array, firstGroup: number, partRow: number): void {
    for (let group = 0; 2 * group < pairs.length; group++) {
      this.#scales[(firstGroup + group) * this.#paddedRows + partRow] = halfPair(
        pairs[2 * group] ?? 0,
        pairs[2 * group + 1] ?? 0,
      );
    }
  }
}

function packNibbles(codes: Int8Array, words: Uint32Array): void {
  for (let word = 0; word < words.length; word++) {
    let packed = 0;
    for (let i = 0; i < 8; i++) packed |= (codes[word * 8 + i] ?? 0) << (4 * i);
    words[word] = packed;
  }
}
