import { appendFile, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { OctavoError, type MachineRecord, type MeteringRecord } from "@octavo/protocol";

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
 * time; a slow or full disk only loses records, which are counted.
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
      await mkdir(dirname(options.path), { recursive: true });
      await appendFile(options.path, "");
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new OctavoError("invalid_option", `meteringLog: ${options.path} cannot be written: ${reason}`, {
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
    try {
      await appendFile(this.#options.path, lines.join(""));
      this.written += lines.length;
    } catch (thrown) {
      this.dropped += lines.length;
      if (this.#hasReported) return;
      this.#hasReported = true;
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      this.#options.onProblem?.(`the metering log ${this.#options.path} cannot be written: ${reason}`);
    }
  }
}
