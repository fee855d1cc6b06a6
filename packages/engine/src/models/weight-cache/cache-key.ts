import { createHash } from "node:crypto";
import { open, realpath } from "node:fs/promises";
import type { MatrixPlan } from "../model-plan.js";

/** Enough of a file's beginning to tell another one: headers lie there. */
const headBytes = 256 * 1024;

export interface CacheKey {
  /** The same for every state of these files under this layout and type. */
  readonly place: string;
  /** Changes with anything that the packed bytes depend on. */
  readonly digest: string;
}

/**
 * Names what would be packed: the source files by place, size, time of change and head, which of their bytes go into which
 * matrix, the type they are converted to, and the layout of the packed form.
 */
export async function cacheKey(
  plans: readonly MatrixPlan[],
  layout: string,
  dtype: string | undefined,
): Promise<CacheKey> {
  const paths = [...new Set(plans.flatMap((plan) => plan.sources.map((tensor) => tensor.path)))];
  const files = await Promise.all(paths.map(describeFile));
  const matrices = plans.map(({ rows, cols, sources }) => [
    rows,
    cols,
    sources.map(({ name, type, shape, path, offset }) => [name, type, shape, paths.indexOf(path), offset]),
  ]);
  const place = JSON.stringify([layout, dtype ?? "", files.map((file) => file.path)]);
  return {
    place: digestOf(place).slice(0, 16),
    digest: digestOf(JSON.stringify([place, files, matrices])),
  };
}

interface FileFacts {
  readonly path: string;
  readonly byteLength: number;
  readonly changed: string;
  readonly head: string;
}

async function describeFile(path: string): Promise<FileFacts> {
  const real = await realpath(path);
  const file = await open(real);
  try {
    const { size, mtimeNs } = await file.stat({ bigint: true });
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    const head = digestOf(buffer.subarray(0, bytesRead));
    return { path: real, byteLength: Number(size), changed: String(mtimeNs), head };
  } finally {
    await file.close();
  }
}

function digestOf(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
