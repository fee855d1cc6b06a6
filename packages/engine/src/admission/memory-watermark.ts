import { availableMemoryBytes } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";

/** Between two looks at the machine's memory. */
const lookEveryMs = 250;
/** As much more than the watermark must be free again before requests are taken. */
const recovery = 1.25;

/** Refuses requests while the machine is short of memory, rather than be killed with all it has. */
export class MemoryWatermark {
  readonly #minFreeBytes: number;
  readonly #read: () => number;
  #freeBytes = Number.POSITIVE_INFINITY;
  #nextLookMs = Number.NEGATIVE_INFINITY;
  #isLow = false;

  /** 0 bytes sets no watermark. `read` says how many bytes are free. */
  constructor(minFreeBytes: number, read: () => number = availableMemoryBytes) {
    this.#minFreeBytes = minFreeBytes;
    this.#read = read;
  }

  /** Throws `overloaded` while less memory is free than there should be. */
  check(nowMs = performance.now()): void {
    if (this.#minFreeBytes === 0) return;
    if (nowMs >= this.#nextLookMs) {
      this.#nextLookMs = nowMs + lookEveryMs;
      this.#freeBytes = this.#read();
      this.#isLow = this.#freeBytes < this.#minFreeBytes * (this.#isLow ? recovery : 1);
    }
    if (!this.#isLow) return;
    throw new OctavoError(
      "overloaded",
      `The machine has ${mebibytes(this.#freeBytes)} of memory left, and takes requests again from ` +
        `${mebibytes(this.#minFreeBytes * recovery)} on. Try again later.`,
      { retryAfterSeconds: 5 },
    );
  }
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}
