import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync, realpathSync } from "node:fs";
import type { MatrixPlan } from "@octavo/artifacts/program/model-plan";

/** Bytes hashed at the start of each file, where headers are. */
const headBytes = 256 * 1024;

export interface CacheKey {
  /** The same for every version of these files under this layout and type. */
  readonly source: string;
  /** Changes with anything that the packed bytes depend on. */
  readonly digest: string;
}

/**
 * Identifies what would be packed: path, size, modification time and head of each source file, which of their bytes go into which
 * matrix, the type they are converted to, and the packed layout. Synchronous, since nothing can be mapped before.
 */
export function cacheKey(plans: readonly MatrixPlan[], layout: string, dtype: string | undefined): CacheKey {
  const paths = [...new Set(plans.flatMap((plan) => plan.sources.map((tensor) => tensor.path)))];
  const files = paths.map(describeFile);
  const matrices = plans.map(({ rows, cols, sources }) => [
    rows,
    cols,
    sources.map(({ name, type, shape, path, offset }) => [name, type, shape, paths.indexOf(path), offset]),
  ]);
  const source = JSON.stringify([layout, dtype ?? "", files.map((file) => file.path)]);
  return {
    source: digestOf(source).slice(0, 16),
    digest: digestOf(JSON.stringify([source, files, matrices])),
  };
}

interface FileFacts {
  readonly path: string;
  readonly byteLength: number;
  readonly changed: string;
  readonly head: string;
}

function describeFile(path: string): FileFacts {
  const real = realpathSync.native(path);
  const file = openSync(real, "r");
  try {
    const { size, mtimeNs } = fstatSync(file, { bigint: true });
    const bytes = Buffer.allocUnsafe(headBytes);
    const head = digestOf(bytes.subarray(0, readSync(file, bytes, 0, headBytes, 0)));
    return { path: real, byteLength: Number(size), changed: String(mtimeNs), head };
  } finally {
    closeSync(file);
  }
}

function digestOf(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
