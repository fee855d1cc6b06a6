import { open, type FileHandle } from "node:fs/promises";
import * as zlib from "node:zlib";
import {
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  snappyUncompress,
} from "hyparquet";
import { OctavoError, systemProblem } from "@octavo/protocol";
import type { FieldRecord } from "./fields.js";
import { invalidFile, invalidRecord } from "./place.js";

/** A row group is decoded whole; larger ones are refused before anything of them is read. */
const maxRowGroupBytes = 2 ** 31 - 1;
const maxRowGroupRows = 4 * 1024 * 1024;
/** Pages claim what they decompress to; writers keep them near a mebibyte, HLE's images make larger ones. */
const maxPageBytes = 512 * 1024 * 1024;

/** A Parquet file, read one row group at a time. */
export class ParquetFile {
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #buffer: AsyncBuffer;
  readonly #metadata: FileMetaData;

  private constructor(path: string, handle: FileHandle, buffer: AsyncBuffer, metadata: FileMetaData) {
    this.path = path;
    this.#handle = handle;
    this.#buffer = buffer;
    this.#metadata = metadata;
  }

  /** @throws OctavoError `dataset_invalid` */
  static async open(path: string): Promise<ParquetFile> {
    let handle: FileHandle;
    try {
      handle = await open(path);
    } catch (error) {
      throw invalidFile(path, `cannot be read: ${systemProblem(error)}`, error);
    }
    try {
      const { size } = await handle.stat();
      const buffer: AsyncBuffer = {
        byteLength: size,
        slice: (start, end = size) => readSlice(handle, start, Math.min(end, size)),
      };
      if (size < 12) throw new OctavoError("dataset_invalid", "it is too short");
      return new ParquetFile(path, handle, buffer, await parquetMetadataAsync(buffer));
    } catch (error) {
      await handle.close();
      throw invalidFile(path, `is no readable Parquet file: ${messageOf(error)}`, error);
    }
  }

  get numRows(): number {
    return this.#metadata.row_groups.reduce((sum, group) => sum + Number(group.num_rows), 0);
  }

  /** Names of the top-level columns. */
  get columns(): readonly string[] {
    return parquetSchema(this.#metadata).children.map(({ element }) => element.name);
  }

  /**
   * Rows of the row groups, one group in memory at a time. Whole numbers beyond 2^53 stay bigints.
   * @param columns those to read; others are never decoded
   */
  async *rowGroups(columns: readonly string[]): AsyncGenerator<readonly FieldRecord[]> {
    let rowStart = 0;
    for (const [index, group] of this.#metadata.row_groups.entries()) {
      const rows = Number(group.num_rows);
      const bytes = Number(group.total_byte_size);
      if (rows > maxRowGroupRows || bytes > maxRowGroupBytes) {
        throw invalidFile(
          this.path,
          `has a row group (number ${index + 1}) of ${rows} rows and ${bytes} bytes; groups of up to ${maxRowGroupRows} rows and ${maxRowGroupBytes} bytes are read. Write the file with smaller row groups.`,
        );
      }
      const rowEnd = rowStart + rows;
      let records: readonly Record<string, unknown>[];
      try {
        records = await parquetReadObjects({
          file: this.#buffer,
          metadata: this.#metadata,
          columns: [...columns],
          rowStart,
          rowEnd,
          compressors,
        });
      } catch (error) {
        throw invalidRecord(
          { path: this.path, unit: "row", number: rowStart + 1 },
          undefined,
          `begins a row group that cannot be decoded: ${messageOf(error)}`,
          error,
        );
      }
      if (records.length !== rows) {
        throw invalidFile(
          this.path,
          `has ${records.length} rows in row group ${index + 1}, which says ${rows}`,
        );
      }
      yield records.map((record) =>
        Object.fromEntries(Object.entries(record).map(([name, value]) => [name, plainValue(value)])),
      );
      rowStart = rowEnd;
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

async function readSlice(handle: FileHandle, start: number, end: number): Promise<ArrayBuffer> {
  if (start < 0 || end < start) throw new OctavoError("dataset_invalid", "it points outside itself");
  const buffer = new ArrayBuffer(end - start);
  let filled = 0;
  while (filled < buffer.byteLength) {
    const view = new Uint8Array(buffer, filled);
    const { bytesRead } = await handle.read(view, 0, view.length, start + filled);
    if (bytesRead === 0) throw new OctavoError("dataset_invalid", "it ends before its data does");
    filled += bytesRead;
  }
  return buffer;
}

const compressors: Compressors = {
  SNAPPY: (input, length) => {
    const output = new Uint8Array(checkedLength(length));
    snappyUncompress(input, output);
    return output.subarray(0, length);
  },
  GZIP: (input, length) => zlib.gunzipSync(input, { maxOutputLength: checkedLength(length) }),
  BROTLI: (input, length) => zlib.brotliDecompressSync(input, { maxOutputLength: checkedLength(length) }),
  ZSTD: (input, length) => {
    const decompress: unknown = Reflect.get(zlib, "zstdDecompressSync");
    if (typeof decompress !== "function") {
      throw new OctavoError(
        "dataset_invalid",
        "it is compressed with Zstandard, which needs Node 22.15 or newer",
      );
    }
    const output: unknown = Reflect.apply(decompress, zlib, [
      input,
      { maxOutputLength: checkedLength(length) },
    ]);
    return output as Uint8Array;
  },
};

/** The length that a page claims for itself; zlib takes no limit of zero. */
function checkedLength(length: number): number {
  if (length <= maxPageBytes) return Math.max(1, length);
  throw new OctavoError(
    "dataset_invalid",
    `a page says it holds ${length} bytes; up to ${maxPageBytes} are read`,
  );
}

/** Values as JSON has them: whole numbers as numbers, dates as text, lists and structs all the way down. */
function plainValue(value: unknown): unknown {
  if (typeof value === "bigint") {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    return Array.from(value as unknown as Iterable<unknown>, plainValue);
  }
  if (Array.isArray(value)) return value.map(plainValue);
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plainValue(inner)]));
  }
  return value;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
