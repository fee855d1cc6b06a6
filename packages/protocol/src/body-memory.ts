import { OctavoError } from "./errors.js";

/** A request asked to come again because of the bodies of others waits this long. */
const retryAfterSeconds = 1;

/** Bytes of request bodies in memory, of all requests together: from their first byte until their request is over. */
export class BodyMemory {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A share that grows with one body. */
  share(): BodyShare {
    let held = 0;
    let isOver = false;
    return {
      grow: (bytes) => {
        // what still arrives then would be held for ever
        if (isOver) throw new OctavoError("request_cancelled", "the request is over");
        if (this.#bytes + bytes > this.#maxBytes) {
          const message = `the request bodies being read and answered hold all of the ${this.#maxBytes} bytes that this server has for them; try again later`;
          throw new OctavoError("overloaded", message, { retryAfterSeconds });
        }
        this.#bytes += bytes;
        held += bytes;
      },
      release: () => {
        isOver = true;
        this.#bytes -= held;
        held = 0;
      },
    };
  }
}

export interface BodyShare {
  /** Throws `overloaded` when there is no room, and `request_cancelled` once it is released. */
  grow(bytes: number): void;
  /** For good: what of the request still runs is told to stop when it next grows. */
  release(): void;
}
