import { randomUUID } from "node:crypto";
import { readdir, rename, stat, statfs, unlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { systemProblem } from "@octavo/protocol/errors";
import { makeFolder } from "@octavo/protocol/make-folder";
import type { Backend, MappedFile, Matrix, PackedForm, PackedWeights } from "@octavo/kernels";
import type { MatrixPlan } from "@octavo/artifacts/program/model-plan";
import { type CachedMatrix, type CacheIndex, readCacheIndex, writeCacheFile } from "./cache-file.js";
import { type CacheKey, cacheKey } from "./cache-key.js";
import { isKnownSound, leaveMark, markSuffix, stateOf, tickMs } from "./file-state.js";

export interface WeightCacheOptions {
  /** Created if missing. */
  readonly folder: string;
  /** Bytes of all files together; the least recently used are removed beyond. */
  readonly maxBytes?: number;
  readonly onWarning?: ((message: string) => void) | undefined;
  /** Free bytes of the folder's disk; default as reported by the system. */
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined;
}

type PackingBackend = Pick<Backend, "packedWeights" | "mapFile">;

/** A packed matrix. */
export interface KeptMatrix {
  readonly form: PackedForm;
  readonly matrix: Matrix;
}

const defaultMaxBytes = 64 * 2 ** 30;
/** Free space required, as a multiple of the file. */
const spareFactor = 1.1;
const suffix = ".octavo-weights";
const partialSuffix = ".octavo-draft";
/** Partial files this old were left by a process that died. */
const abandonedMs = 3_600_000;

/**
 * Packed weights of earlier starts, one file for each set of source files and layout. A file is used only if it is exactly what
 * would be packed now; its checksums are verified once per state of the file and boot of the machine. Models with
 * matrices that have no packed bytes are not cached. Any failure costs the time of packing and a warning, never the start. One
 * instance serves one model's start.
 */
export class WeightCache {
  readonly #folder: string;
  readonly #maxBytes: number;
  readonly #onWarning: (message: string) => void;
  readonly #freeBytes: (folder: string) => Promise<number>;
  #wanted: CacheKey | undefined;

  constructor({ folder, maxBytes = defaultMaxBytes, onWarning, freeBytes }: WeightCacheOptions) {
    this.#freeBytes = freeBytes ?? freeBytesOf;
    this.#folder = folder;
    this.#maxBytes = maxBytes;
    this.#onWarning = onWarning ?? (() => undefined);
  }

  /** The matrices of `plans`, in their order, mapped and verified; undefined if they must be packed. */
  async load(
    backend: PackingBackend,
    plans: readonly MatrixPlan[],
    dtype: string | undefined,
  ): Promise<Matrix[] | undefined> {
    const packed = backend.packedWeights;
    if (packed === undefined || !isCacheable(plans)) return undefined;
    // Small synchronous reads: a turn of the event loop would wait for everything else that a start does.
    const key = cacheKey(plans, packed.layout, dtype);
    this.#wanted = key;
    const path = this.#pathOf(key);
    // Taken before reading, so that it does not describe later bytes.
    const state = stateOf(path);
    const index = readIndex(path, key);
    const isSound = state !== undefined && isKnownSound(path, state);
    if (index === undefined || !fits(index.matrices, plans)) return undefined;
    using file = backend.mapFile(path);
    const matrices = await mapAll(packed, file, index.matrices, isSound);
    if (matrices === undefined) {
      this.#onWarning(`${path} is damaged; the weights are packed again.`);
      await remove(path);
      return undefined;
    }
    await leaveMark(path, state);
    return matrices;
  }

  /** Writes the packed weights for the next start, if `load` found none. Never fails: errors become warnings. */
  async save(
    backend: PackingBackend,
    plans: readonly MatrixPlan[],
    dtype: string | undefined,
    kept: readonly KeptMatrix[],
  ): Promise<void> {
    const packed = backend.packedWeights;
    if (packed === undefined || !isCacheable(plans)) return;
    try {
      // Taken now: the arrays keep the bytes even if the model is disposed meanwhile.
      const views = kept.flatMap(({ form, matrix }) => {
        const bytes = packed.bytesOf(matrix);
        return bytes === undefined ? [] : [{ form, matrix, bytes }];
      });
      if (views.length < kept.length) return;
      const matrices = await Promise.all(
        views.map(async ({ form, matrix, bytes }) => ({
          form,
          bytes,
          checksum: await packed.checksumOf(matrix),
        })),
      );
      const key = cacheKey(plans, packed.layout, dtype);
      // Files that changed since `load` may have changed while they were packed.
      if (key.digest === this.#wanted?.digest) await this.#write(key, matrices);
    } catch (error) {
      this.#onWarning(`The packed weights could not be kept in ${this.#folder}: ${systemProblem(error)}`);
    }
  }

  async #write(key: CacheKey, matrices: Parameters<typeof writeCacheFile>[2]): Promise<void> {
    makeFolder(this.#folder);
    const path = this.#pathOf(key);
    const byteLength = matrices.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
    if (byteLength > this.#maxBytes) return;
    await this.#removeOthers(key, byteLength);
    const free = await this.#freeBytes(this.#folder);
    if (free < byteLength * spareFactor) {
      this.#onWarning(
        `The packed weights (${byteLength} bytes) are not kept: ${this.#folder} has ${free} bytes free.`,
      );
      return;
    }
    const partial = `${path}.${randomUUID()}${partialSuffix}`;
    try {
      await writeCacheFile(partial, key.digest, matrices);
      await rename(partial, path);
    } catch (error) {
      await unlink(partial).catch(() => undefined);
      throw error;
    }
    const state = stateOf(path);
    await delay(2 * tickMs);
    await leaveMark(path, state);
  }

  /** Removes older versions of the same files, abandoned partial files, and the least recently used until `byteLength` more fit. */
  async #removeOthers(key: CacheKey, byteLength: number): Promise<void> {
    const names = await readdir(this.#folder);
    const files = await Promise.all(
      names
        .filter((name) => name.endsWith(suffix) || name.endsWith(partialSuffix))
        .map(async (name) => {
          const path = join(this.#folder, name);
          const [facts, mark] = await Promise.all(
            [path, path + markSuffix].map((one) => stat(one).catch(() => undefined)),
          );
          const usedMs = Math.max(facts?.mtimeMs ?? 0, mark?.mtimeMs ?? 0);
          return { name, usedMs, byteLength: facts?.size ?? 0 };
        }),
    );
    let total = byteLength;
    for (const file of files.toSorted((a, b) => b.usedMs - a.usedMs)) {
      const isPartial = file.name.endsWith(partialSuffix);
      if (!isPartial) total += file.byteLength;
      const isRemoved = isPartial
        ? Date.now() - file.usedMs > abandonedMs
        : file.name.startsWith(`${key.source}-`) || total > this.#maxBytes;
      if (isRemoved) await remove(join(this.#folder, file.name));
    }
  }

  #pathOf({ source, digest }: CacheKey): string {
    return join(this.#folder, `${source}-${digest.slice(0, 32)}${suffix}`);
  }
}

/** Also undefined for a file that cannot be read. */
function readIndex(path: string, { digest }: CacheKey): CacheIndex | undefined {
  try {
    return readCacheIndex(path, digest);
  } catch {
    return undefined;
  }
}

/** Assembled matrices have no single byte range that could identify them. */
function isCacheable(plans: readonly MatrixPlan[]): boolean {
  return plans.every((plan) => plan.sources.every((tensor) => tensor.recipe === undefined));
}

function fits(matrices: readonly CachedMatrix[], plans: readonly MatrixPlan[]): boolean {
  return (
    matrices.length === plans.length &&
    matrices.every(({ form }, i) => form.rows === plans[i]?.rows && form.cols === plans[i]?.cols)
  );
}

/** Removes a file and the mark beside it. */
async function remove(path: string): Promise<void> {
  await Promise.all([path, path + markSuffix].map((one) => unlink(one).catch(() => undefined)));
}

/** Maps all or none; awaits every mapping, so that none is created after the others were disposed. */
async function mapAll(
  packed: PackedWeights,
  file: MappedFile,
  matrices: readonly CachedMatrix[],
  isSound: boolean,
): Promise<Matrix[] | undefined> {
  const mapped = await Promise.all(
    matrices.map(({ form, offset, checksum }) =>
      packed.map(form, file, offset, isSound ? undefined : checksum).catch(() => undefined),
    ),
  );
  const sound = mapped.filter((matrix) => matrix !== undefined);
  if (sound.length === matrices.length) return sound;
  for (const matrix of sound) matrix[Symbol.dispose]();
  return undefined;
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
