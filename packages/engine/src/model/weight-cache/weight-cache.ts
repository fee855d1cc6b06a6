import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, stat, statfs, unlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Backend, MappedFile, Matrix, PackedForm, PackedWeights } from "@octavo/kernels";
import type { MatrixPlan } from "@octavo/artifacts/program/model-plan";
import { type CachedMatrix, type CacheIndex, readCacheIndex, writeCacheFile } from "./cache-file.js";
import { type CacheKey, cacheKey } from "./cache-key.js";
import { isKnownSound, leaveMark, markSuffix, stateOf, tickMs } from "./file-state.js";

export interface WeightCacheOptions {
  /** Made when it is missing. */
  readonly folder: string;
  /** Bytes of all files together; beyond, those that were not used for longest go. */
  readonly maxBytes?: number;
  readonly onWarning?: ((message: string) => void) | undefined;
  /** Bytes that the folder's disk has left; asked of the system when absent. */
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined;
}

type PackingBackend = Pick<Backend, "packedWeights" | "mapFile">;

/** A matrix as it was packed. */
export interface KeptMatrix {
  readonly form: PackedForm;
  readonly matrix: Matrix;
}

const defaultMaxBytes = 64 * 2 ** 30;
/** A disk is not filled to its last byte. */
const spareFactor = 1.1;
const suffix = ".octavo-weights";
const draftSuffix = ".octavo-draft";
/** Drafts this old were left by a process that died. */
const abandonedMs = 3_600_000;

/**
 * Packed weights of earlier starts, one file for each set of source files and layout. Whatever is not exactly what would be
 * packed now is not used; checksums are looked at once for each state of a file and start of the machine; a model of which some matrix has no packed bytes is not kept; whatever goes wrong costs the time of packing and a warning, never the start. For one model's start.
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

  /** The matrices of `plans`, in their order, mapped and verified; undefined when they have to be packed. */
  async load(
    backend: PackingBackend,
    plans: readonly MatrixPlan[],
    dtype: string | undefined,
  ): Promise<Matrix[] | undefined> {
    const packed = backend.packedWeights;
    if (packed === undefined || !isCacheable(plans)) return undefined;
    // Small reads, made at once: between two turns of the event loop lies all that a start does meanwhile.
    const key = cacheKey(plans, packed.layout, dtype);
    this.#wanted = key;
    const path = this.#pathOf(key);
    // Taken before anything is read, so that it is not that of later bytes.
    const state = stateOf(path);
    const index = readIndex(path, key);
    const isSound = state !== undefined && isKnownSound(path, state);
    if (index === undefined || !fits(index.matrices, plans)) return undefined;
    using file = backend.mapFile(path);
    const matrices = await mapAll(packed, file, index.matrices, isSound);
    if (matrices === undefined) {
      this.#onWarning(`${path} is damaged; the weights are packed anew.`);
      await remove(path);
      return undefined;
    }
    await leaveMark(path, state);
    return matrices;
  }

  /** After `load` had nothing: writes what was packed for the next start. Never fails: what could not be written is a warning. */
  async save(
    backend: PackingBackend,
    plans: readonly MatrixPlan[],
    dtype: string | undefined,
    kept: readonly KeptMatrix[],
  ): Promise<void> {
    const packed = backend.packedWeights;
    if (packed === undefined || !isCacheable(plans)) return;
    try {
      // Taken at once: the arrays keep the bytes when the model is disposed meanwhile.
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
      this.#onWarning(`The packed weights could not be kept in ${this.#folder}: ${reasonOf(error)}`);
    }
  }

  async #write(key: CacheKey, matrices: Parameters<typeof writeCacheFile>[2]): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
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
    const draft = `${path}.${randomUUID()}${draftSuffix}`;
    try {
      await writeCacheFile(draft, key.digest, matrices);
      await rename(draft, path);
    } catch (error) {
      await unlink(draft).catch(() => undefined);
      throw error;
    }
    const state = stateOf(path);
    await delay(2 * tickMs);
    await leaveMark(path, state);
  }

  /** Earlier states of the same files, abandoned drafts, and the least recently used until `byteLength` more fit. */
  async #removeOthers(key: CacheKey, byteLength: number): Promise<void> {
    const names = await readdir(this.#folder);
    const files = await Promise.all(
      names
        .filter((name) => name.endsWith(suffix) || name.endsWith(draftSuffix))
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
      const isDraft = file.name.endsWith(draftSuffix);
      if (!isDraft) total += file.byteLength;
      const goes = isDraft
        ? Date.now() - file.usedMs > abandonedMs
        : file.name.startsWith(`${key.place}-`) || total > this.#maxBytes;
      if (goes) await remove(join(this.#folder, file.name));
    }
  }

  #pathOf({ place, digest }: CacheKey): string {
    return join(this.#folder, `${place}-${digest.slice(0, 32)}${suffix}`);
  }
}

/** Undefined, too, for what cannot be read. */
function readIndex(path: string, { digest }: CacheKey): CacheIndex | undefined {
  try {
    return readCacheIndex(path, digest);
  } catch {
    return undefined;
  }
}

/** Matrices that are put together from several tensors are not named by the bytes of one range. */
function isCacheable(plans: readonly MatrixPlan[]): boolean {
  return plans.every((plan) => plan.sources.every((tensor) => tensor.recipe === undefined));
}

function fits(matrices: readonly CachedMatrix[], plans: readonly MatrixPlan[]): boolean {
  return (
    matrices.length === plans.length &&
    matrices.every(({ form }, i) => form.rows === plans[i]?.rows && form.cols === plans[i]?.cols)
  );
}

/** A file and the mark beside it. */
async function remove(path: string): Promise<void> {
  await Promise.all([path, path + markSuffix].map((one) => unlink(one).catch(() => undefined)));
}

/** All or none; every mapping is awaited, so that none is born after the others were given back. */
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

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EDQUOT" ? "the disk is full" : (message ?? String(error));
}
