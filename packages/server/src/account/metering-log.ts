import { appendFile, type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder } from "@octavo/protocol/make-folder";
import { OctavoError, systemProblem, type MachineRecord, type MeteringRecord } from "@octavo/protocol";

export interface MeteringLogOptions {
  readonly path: string;
  /** Most lines waiting for the disk; more are dropped and counted. Default 16384. */
  readonly maxWaiting?: number;
  /** Lines are written this often. Default 1000. */
  readonly writeEveryMs?: number;
  /** Called with the first failure. */
  readonly onProblem?: (message: string) => void;
}

/**
 * Appends records to a file, one JSON object per line. The file is reopened for every write, so that it can be rotated at any
 * time; a slow or full disk only loses whole records, which are counted.
 */
export class MeteringLog {
  readonly #options: Required<Omit<MeteringLogOptions, "onProblem">> & Pick<MeteringLogOptions, "onProblem">;
  #waiting: string[] = [];
  #writing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #hasReported = false;
  written = 0;
  dropped = 0;

  private constructor(options: MeteringLogOptions) {
    this.#options = { maxWaiting: 16_384, writeEveryMs: 1000, ...options };
  }

  /** Throws `invalid_option` if the file cannot be written. */
  static async open(options: MeteringLogOptions): Promise<MeteringLog> {
    try {
      makeFolder(dirname(options.path));
      await appendFile(options.path, "");
    } catch (cause) {
      const why = `meteringLog: ${options.path} cannot be written: ${systemProblem(cause)}`;
      throw new OctavoError("invalid_option", why, {
        param: "meteringLog",
        cause,
      });
    }
    return new MeteringLog(options);
  }

  add(record: MeteringRecord | MachineRecord): void {
    if (this.#waiting.length >= this.#options.maxWaiting) {
      this.dropped += 1;
      return;
    }
    this.#waiting.push(`${JSON.stringify(record)}\n`);
    this.#timer ??= setTimeout(() => void this.flush(), this.#options.writeEveryMs).unref();
  }

  /** Resolves when everything added so far was written or dropped. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    const lines = this.#waiting;
    if (lines.length === 0) return;
    this.#waiting = [];
    const { written, failure } = await appendWhole(this.#options.path, lines);
    this.written += written;
    this.dropped += lines.length - written;
    if (failure === undefined || this.#hasReported) return;
    this.#hasReported = true;
    const { message } = OctavoError.from(failure);
    this.#options.onProblem?.(`the metering log ${this.#options.path} cannot be written: ${message}`);
  }
}

/**
 * Appends as many of the lines as the disk takes, each whole or not at all. What a full disk took of a line is cut off again, unless
 * another process has appended meanwhile; then, and after a process that died while it wrote, the next line begins on a line of its own.
 */
async function appendWhole(
  path: string,
  lines: readonly string[],
): Promise<{ readonly written: number; readonly failure?: unknown }> {
  let written = 0;
  try {
    await using file = await open(path, "a+");
    const { size } = await file.stat();
    const bytes = Buffer.from(((await endsInsideLine(file, size)) ? "\n" : "") + lines.join(""));
    let done = 0;
    try {
      while (done < bytes.length) done += (await file.write(bytes, done)).bytesWritten;
      written = lines.length;
    } catch (failure) {
      const taken = bytes.subarray(0, done);
      const whole = taken.lastIndexOf("\n") + 1;
      for (const byte of taken.subarray(bytes[0] === newline ? 1 : 0, whole))
        if (byte === newline) written += 1;
      if (whole < done && (await file.stat()).size === size + done) await file.truncate(size + whole);
      return { written, failure };
    }
    return { written };
  } catch (failure) {
    return { written, failure };
  }
}

const newline = 0x0a;

async function endsInsideLine(file: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return false;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return bytesRead === 1 && buffer[0] !== newline;
}
