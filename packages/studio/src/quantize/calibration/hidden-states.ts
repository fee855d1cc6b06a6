import { existsSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { OctavoError } from "@octavo/protocol";
import { guardDisk } from "../output/work-folder.js";
import { viewBytes } from "../output/output-tensor.js";

/** What flows between layers for one sequence: values `[tokens, width]` by the plan's buffer. */
export type SequenceState = ReadonlyMap<number, Float32Array>;

/**
 * The calibration sequences' states between two layers, in a file, since they may not fit in memory.
 */
export class HiddenStates {
  readonly path: string;
  readonly #file: FileHandle;
  readonly #widths: readonly (readonly [buffer: number, width: number])[];
  readonly #lengths: readonly number[];

  private constructor(
    path: string,
    file: FileHandle,
    widths: readonly (readonly [buffer: number, width: number])[],
    lengths: readonly number[],
  ) {
    this.path = path;
    this.#file = file;
    this.#widths = widths;
    this.#lengths = lengths;
  }

  /** @param widths buffers that are kept, with their columns; @param lengths tokens of each sequence */
  static async open(
    path: string,
    widths: readonly (readonly [buffer: number, width: number])[],
    lengths: readonly number[],
  ): Promise<HiddenStates> {
    const file = await guardDisk(path, () => open(path, existsSync(path) ? "r+" : "w+"));
    return new HiddenStates(path, file, widths, lengths);
  }

  async write(sequence: number, state: SequenceState): Promise<void> {
    let at = this.#offsetOf(sequence);
    for (const [buffer] of this.#widths) {
      const bytes = viewBytes(state.get(buffer) ?? new Float32Array());
      // A write to a full disk may be short; the error comes with the next one.
      for (let done = 0; done < bytes.byteLength;) {
        const start = done;
        const { bytesWritten } = await guardDisk(this.path, () =>
          this.#file.write(bytes, start, bytes.byteLength - start, at + start),
        );
        done += bytesWritten;
      }
      at += bytes.byteLength;
    }
  }

  async read(sequence: number): Promise<SequenceState> {
    let at = this.#offsetOf(sequence);
    const state = new Map<number, Float32Array>();
    for (const [buffer, width] of this.#widths) {
      const values = new Float32Array(width * (this.#lengths[sequence] ?? 0));
      const bytes = viewBytes(values);
      for (let done = 0; done < bytes.byteLength;) {
        const { bytesRead } = await this.#file.read(bytes, done, bytes.byteLength - done, at + done);
        if (bytesRead === 0) {
          throw new OctavoError(
            "artifact_invalid",
            `${this.path} was cut short while the run needed it. Remove the folder it is in, and run the command again.`,
          );
        }
        done += bytesRead;
      }
      state.set(buffer, values);
      at += bytes.byteLength;
    }
    return state;
  }

  async close(): Promise<void> {
    await guardDisk(this.path, () => this.#file.sync());
    await this.#file.close();
  }

  #offsetOf(sequence: number): number {
    const width = this.#widths.reduce((sum, [, columns]) => sum + columns, 0);
    return 4 * width * this.#lengths.slice(0, sequence).reduce((sum, length) => sum + length, 0);
  }
}
