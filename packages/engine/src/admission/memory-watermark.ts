import { availableMemoryBytes } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";

/** Interval between two readings of the machine's memory. */
const readEveryMs = 250;
/** Hysteresis: requests are accepted again once this multiple of the watermark is free. */
const recovery = 1.25;

/** Refuses requests while the machine is short of memory, before the out-of-memory killer ends them all. */
export class MemoryWatermark {
  readonly #minFreeBytes: number;
  readonly #read: () => number;
  #freeBytes = Number.POSITIVE_INFINITY;
  #nextReadMs = Number.NEGATIVE_INFINITY;
  #isLow = false;

  /** 0 bytes sets no watermark. `read` returns the free bytes. */
  constructor(minFreeBytes: number, read: () => number = availableMemoryBytes) {
    this.#minFreeBytes = minFreeBytes;
    this.#read = read;
  }

  /** Throws `overloaded` while less memory is free than the watermark. */
  check(nowMs = performance.now()): void {
    if (this.#minFreeBytes === 0) return;
    if (nowMs >= this.#nextReadMs) {
      this.#nextReadMs = nowMs + readEveryMs;
      this.#freeBytes = this.#read();
      this.#isLow = this.#freeBytes < this.#minFreeBytes * (this.#isLow ? recovery : 1);
    }
    if (!this.#isLow) return;
    throw new OctavoError(
      "overloaded",
      `The machine has ${mebibytes(this.#freeBytes)} of memory left, and accepts requests again from ` +
        `${mebibytes(this.#minFreeBytes * recovery)} on. Try again later.`,
      { retryAfterSeconds: 5 },
    );
  }
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}
