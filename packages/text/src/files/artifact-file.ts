import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { OctavoError, systemProblem } from "@octavo/protocol/errors";

/** Names and keys come from the file, which may have put megabytes into one. */
const maxProblemLength = 600;

function describe(path: string, problem: string): string {
  const text = problem.length > maxProblemLength ? `${problem.slice(0, maxProblemLength)}...` : problem;
  return `${path}: ${text}`;
}

/** A model file that breaks its format's rules. The message names the file, so `problem` need not. */
export function artifactInvalid(path: string, problem: string, cause?: unknown): OctavoError {
  return new OctavoError("artifact_invalid", describe(path, problem), cause === undefined ? {} : { cause });
}

/** A well-formed model file that asks for something Octavo does not do. */
export function artifactUnsupported(path: string, problem: string): OctavoError {
  return new OctavoError("artifact_unsupported", describe(path, problem));
}

/**
 * Random access to one model file. Reads are synchronous and of exactly the range asked for: headers are read once, at
 * load time, and weights never pass through here (native code maps them).
 */
export class ArtifactFile implements Disposable {
  readonly path: string;
  readonly byteLength: number;
  readonly #fd: number;

  private constructor(path: string, fd: number, byteLength: number) {
    this.path = path;
    this.#fd = fd;
    this.byteLength = byteLength;
  }

  /** Throws `artifact_not_found` for a missing file and `artifact_invalid` for anything but a readable regular file. */
  static open(path: string): ArtifactFile {
    let fd: number;
    try {
      // Without O_NONBLOCK, opening a FIFO would block until it has a writer.
      fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    } catch (error) {
      throw openFailure(path, error);
    }
    try {
      const stats = fstatSync(fd);
      if (!stats.isFile()) throw artifactInvalid(path, "is not a regular file");
      return new ArtifactFile(path, fd, stats.size);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** The bytes `[offset, offset + length)`; a range that is not all there is `artifact_invalid`. */
  read(offset: number, length: number): Buffer {
    if (offset + length > this.byteLength) {
      throw artifactInvalid(
        this.path,
        `is truncated: bytes ${offset} to ${offset + length} are needed, the file has ${this.byteLength}`,
      );
    }
    const buffer = Buffer.allocUnsafeSlow(length);
    let done = 0;
    while (done < length) {
      let count: number;
      try {
        count = readSync(this.#fd, buffer, done, length - done, offset + done);
      } catch (error) {
        throw artifactInvalid(this.path, `cannot be read: ${systemProblem(error)}`, error);
      }
      if (count === 0) throw artifactInvalid(this.path, "became shorter while it was being read");
      done += count;
    }
    return buffer;
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}

/** A whole small file, or undefined when there is none. More than `maxBytes` is `artifact_invalid`. */
export function readWholeFile(path: string, maxBytes: number): Buffer | undefined {
  let file: ArtifactFile;
  try {
    file = ArtifactFile.open(path);
  } catch (error) {
    if (error instanceof OctavoError && error.code === "artifact_not_found") return undefined;
    throw error;
  }
  try {
    if (file.byteLength > maxBytes) {
      throw artifactInvalid(path, `has ${file.byteLength} bytes; at most ${maxBytes} are accepted here`);
    }
    return file.read(0, file.byteLength);
  } finally {
    file[Symbol.dispose]();
  }
}

function openFailure(path: string, error: unknown): OctavoError {
  const reason = reasonOf(error);
  if (reason === "ENOENT" || reason === "ENOTDIR") {
    return new OctavoError("artifact_not_found", `${path}: no such file`, { cause: error });
  }
  return artifactInvalid(path, `cannot be opened: ${systemProblem(error)}`, error);
}

function reasonOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
