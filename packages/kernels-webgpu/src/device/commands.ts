import type { OpTime } from "@octavo/kernels";
import { millisecondsBetween, type Timestamps } from "./timestamps.js";

/**
 * Commands that are submitted at once. All dispatches go into one compute pass; where ops are timed, into one for each run of ops of a kind, which
 * costs time of its own.
 */
export class Commands {
  readonly encoder: GPUCommandEncoder;
  readonly #clock: Timestamps | undefined;
  #pass: GPUComputePassEncoder | undefined;
  #op = "";
  /** The op and the dispatches of each pass so far. */
  readonly #passes: { readonly op: string; count: number }[] = [];

  constructor(encoder: GPUCommandEncoder, clock?: Timestamps) {
    this.encoder = encoder;
    this.#clock = clock;
    clock?.begin();
  }

  /** The pass that an op's next dispatch goes into. */
  pass(op: string): GPUComputePassEncoder {
    if (this.#clock === undefined) return (this.#pass ??= this.encoder.beginComputePass());
    if (this.#pass === undefined || op !== this.#op) {
      this.endPass();
      this.#op = op;
      this.#passes.push({ op, count: 0 });
      this.#pass = this.encoder.beginComputePass({ timestampWrites: this.#clock.pass() });
    }
    const last = this.#passes.at(-1);
    if (last !== undefined) last.count += 1;
    return this.#pass;
  }

  /** To be called before what is no dispatch. */
  endPass(): void {
    this.#pass?.end();
    this.#pass = undefined;
  }

  /** What is to be called once the commands are submitted: resolves to what each kind of op took. Undefined where ops are not timed. */
  endTimes(): (() => Promise<readonly OpTime[]>) | undefined {
    if (this.#clock === undefined) return undefined;
    const read = this.#clock.end(this.encoder);
    return async () => {
      const times = await read();
      const kinds = new Map<string, { count: number; milliseconds: number }>();
      for (const [index, { op, count }] of this.#passes.entries()) {
        const kind = kinds.get(op) ?? { count: 0, milliseconds: 0 };
        kind.count += count;
        kind.milliseconds += millisecondsBetween(times[2 * index], times[2 * index + 1]);
        kinds.set(op, kind);
      }
      return [...kinds].map(([op, kind]) => ({ op, ...kind }));
    };
  }
}
