import { createHash } from "node:crypto";
import { existsSync, lstatSync, readdirSync, readFileSync, rmdirSync, rmSync, type Stats } from "node:fs";
import { open, rename, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { makeFolder } from "@octavo/protocol/make-folder";
import { OctavoError, systemProblem } from "@octavo/protocol";
import { invalidOption } from "../options.js";
import { RunLock } from "./run-lock.js";

/** A quantised matrix as the card lists it. */
export interface ModuleRecord {
  readonly name: string;
  /** E.g. "int4", "Q6_K". */
  readonly type: string;
  /** Squared error relative to the original: of the output on the calibration texts, or of the weights where there are none. */
  readonly error: number;
}

/** What a finished unit wrote into the artifact, with its digest. */
export interface UnitRecord {
  readonly file: string;
  readonly offset: number;
  readonly byteLength: number;
  readonly sha256: string;
  readonly tensors: readonly { readonly name: string; readonly byteLength: number }[];
  readonly modules: readonly ModuleRecord[];
  /** A scratch file that the next unit is made from. */
  readonly state?: { readonly name: string; readonly byteLength: number; readonly sha256: string };
}

export interface UnitToWrite extends Omit<UnitRecord, "byteLength" | "sha256"> {
  readonly chunks: Iterable<Uint8Array>;
}

interface Progress {
  readonly fingerprint: string;
  readonly units: readonly UnitRecord[];
}

const lockName = "lock";

/**
 * Where an artifact grows: `OUT.partial`, beside OUT, of one run at a time. A unit counts once its bytes are on the disk and recorded
 * with their digest, so a run that was killed goes on after its last whole unit. OUT itself appears by one rename of the finished folder.
 */
export class WorkFolder implements Disposable {
  /** The artifact so far. */
  readonly artifact: string;
  readonly #out: string;
  readonly #folder: string;
  readonly #fingerprint: string;
  readonly #units: UnitRecord[] = [];
  /** What stands beside the weights. */
  readonly #files = new Set<string>();
  #lock: RunLock | undefined;

  private constructor(out: string, fingerprint: string) {
    this.#out = resolve(out);
    this.#folder = `${this.#out}.partial`;
    this.#fingerprint = fingerprint;
    this.artifact = join(this.#folder, "artifact");
  }

  /**
   * Begins, or goes on where a run of the same fingerprint stopped.
   * @throws OctavoError `invalid_option` when OUT is taken, OUT.partial holds another run's work, or a run is at it
   */
  static async open(out: string, fingerprint: string): Promise<WorkFolder> {
    const work = new WorkFolder(out, fingerprint);
    try {
      await guardDisk(work.#folder, async () => {
        makeWay(work.#out, out);
        work.#refuseStrangers();
        makeFolder(work.#folder);
        work.#lock = RunLock.take(join(work.#folder, lockName));
        // The run that held it until now may have finished.
        makeWay(work.#out, out);
        await work.#resume();
        makeFolder(work.artifact);
      });
    } catch (error) {
      work[Symbol.dispose]();
      throw error;
    }
    return work;
  }

  /** Releases the folder to other runs; finished units stay. */
  [Symbol.dispose](): void {
    this.#lock?.[Symbol.dispose]();
    this.#lock = undefined;
  }

  get units(): readonly UnitRecord[] {
    return this.#units;
  }

  /** Forgets the units after the first `count`; they are written again. */
  keep(count: number): void {
    this.#units.length = Math.min(this.#units.length, count);
  }

  /** A file of the run that is no part of the artifact. */
  scratch(name: string): string {
    return join(this.#folder, name);
  }

  /** Writes a unit's bytes and records it. */
  async add(unit: UnitToWrite): Promise<void> {
    const { chunks, ...rest } = unit;
    const path = join(this.artifact, unit.file);
    const written = await guardDisk(path, () => writeAt(path, unit.offset, chunks));
    this.#units.push({ ...rest, ...written });
    await this.#save();
  }

  /** A small file beside the weights. */
  async file(name: string, content: string | Uint8Array): Promise<void> {
    const path = join(this.artifact, name);
    this.#files.add(name);
    await guardDisk(path, async () => {
      makeFolder(dirname(path));
      await writeFile(path, content, { flush: true });
    });
  }

  /** Renames the finished artifact to OUT. */
  async publish(): Promise<void> {
    await guardDisk(this.#out, async () => {
      this.#removeStrangers();
      await rename(this.artifact, this.#out);
      this[Symbol.dispose]();
      rmSync(this.#folder, { recursive: true, force: true });
    });
  }

  /** A run with other options that ended before its first unit was recorded may have left files. */
  #removeStrangers(): void {
    const own = new Set([...this.#files, ...this.#units.map(({ file }) => file)]);
    for (const entry of readdirSync(this.artifact, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isDirectory() && !own.has(relative(this.artifact, path))) rmSync(path);
    }
  }

  /** A folder of that name that no run has made is left alone. */
  #refuseStrangers(): void {
    if (!existsSync(this.#folder) || existsSync(this.artifact)) return;
    if (readProgress(join(this.#folder, "progress.json")) !== undefined) return;
    const isFolder = lstatSync(this.#folder).isDirectory();
    if (isFolder && readdirSync(this.#folder).every((name) => name === lockName)) return;
    throw invalidOption("out", `needs ${this.#folder} to work in, which holds something else`);
  }

  async #resume(): Promise<void> {
    const progress = readProgress(join(this.#folder, "progress.json"));
    // Nothing was ever finished there.
    if (progress === undefined) return;
    if (progress.fingerprint !== this.#fingerprint) {
      throw invalidOption(
        "out",
        `has ${this.#folder} beside it, the unfinished work of a run with other options or another model; remove it to start over`,
      );
    }
    for (const unit of progress.units) {
      if ((await digestOf(join(this.artifact, unit.file), unit)) !== unit.sha256) break;
      this.#units.push(unit);
    }
  }

  async #save(): Promise<void> {
    const path = join(this.#folder, "progress.json");
    const progress: Progress = { fingerprint: this.#fingerprint, units: this.#units };
    await guardDisk(path, async () => {
      await writeFile(`${path}.new`, JSON.stringify(progress), { flush: true });
      await rename(`${path}.new`, path);
    });
  }
}

/** File system errors, such as a full disk, as OctavoErrors. */
export async function guardDisk<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof OctavoError || code === undefined) throw error;
    if (code === "ENOSPC" || code === "EDQUOT") {
      throw new OctavoError(
        "disk_full",
        `The disk is full: ${path} could not be written. Make room and run the command again; it goes on where it stopped.`,
        { cause: error },
      );
    }
    throw new OctavoError("invalid_option", `${path} cannot be written: ${systemProblem(error)}.`, {
      param: "out",
      cause: error,
    });
  }
}

async function writeAt(
  path: string,
  offset: number,
  chunks: Iterable<Uint8Array>,
): Promise<{ byteLength: number; sha256: string }> {
  const hash = createHash("sha256");
  const file = await open(path, existsSync(path) ? "r+" : "w");
  try {
    if ((await file.stat()).size > offset) await file.truncate(offset);
    let at = offset;
    for (const chunk of chunks) {
      hash.update(chunk);
      for (let done = 0; done < chunk.byteLength;) {
        const { bytesWritten } = await file.write(chunk, done, chunk.byteLength - done, at + done);
        done += bytesWritten;
      }
      at += chunk.byteLength;
    }
    await file.sync();
    return { byteLength: at - offset, sha256: hash.digest("hex") };
  } finally {
    await file.close();
  }
}

/** SHA-256 of a range of a file; undefined where there is none, or it ends too soon. */
export async function digestOf(
  path: string,
  range: { offset: number; byteLength: number },
): Promise<string | undefined> {
  if (!existsSync(path)) return undefined;
  const hash = createHash("sha256");
  const file = await open(path);
  try {
    const buffer = new Uint8Array(Math.min(range.byteLength, 4 << 20));
    for (let done = 0; done < range.byteLength;) {
      const wanted = Math.min(buffer.byteLength, range.byteLength - done);
      const { bytesRead } = await file.read(buffer, 0, wanted, range.offset + done);
      if (bytesRead === 0) return undefined;
      hash.update(buffer.subarray(0, bytesRead));
      done += bytesRead;
    }
    return hash.digest("hex");
  } finally {
    await file.close();
  }
}

/** Progress that cannot be read, after a crash or an edit, counts as none. */
function readProgress(path: string): Progress | undefined {
  try {
    const progress = JSON.parse(readFileSync(path, "utf8")) as Partial<Progress> | null;
    if (typeof progress?.fingerprint !== "string" || !Array.isArray(progress.units)) return undefined;
    const broken = progress.units.findIndex((unit: unknown) => !isUnitRecord(unit));
    const units = broken === -1 ? progress.units : progress.units.slice(0, broken);
    return { fingerprint: progress.fingerprint, units };
  } catch {
    return undefined;
  }
}

function isUnitRecord(value: unknown): value is UnitRecord {
  const unit = (value ?? {}) as Partial<UnitRecord>;
  const isCount = (count: unknown): boolean => Number.isSafeInteger(count) && Number(count) >= 0;
  return (
    typeof unit.file === "string" &&
    isCount(unit.offset) &&
    isCount(unit.byteLength) &&
    typeof unit.sha256 === "string" &&
    Array.isArray(unit.tensors) &&
    Array.isArray(unit.modules)
  );
}

/**
 * Checks before any work that the last rename will succeed: OUT must not exist. An empty folder is removed, which fails at once for
 * one that cannot be replaced, such as a mount.
 */
function makeWay(path: string, out: string): void {
  const found: Stats | undefined = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isDirectory() || !isEmptyFolder(path)) {
    throw invalidOption("out", `is ${out}, which exists already; name another folder or remove it`);
  }
  try {
    rmdirSync(path);
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    throw invalidOption(
      "out",
      `is ${out}, an empty folder that cannot be replaced (${code}); name a folder in it, or one that does not exist`,
    );
  }
}

function isEmptyFolder(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}
