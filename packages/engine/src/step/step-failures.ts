import type { ActiveRequest } from "../requests/active-request.js";
import type { Sequence } from "../scheduler/sequence.js";

/** Consecutive failed steps from which on the backend is to blame. */
const maxInARow = 4;

/**
 * Tells requests that fail steps from a backend that is broken. Every request in a failed step is a suspect and is computed
 * alone, up to where that step would have brought it: one that fails again is at fault, the others go on. If steps do nothing
 * but fail, the backend is at fault.
 */
export class StepFailures {
  /** By sequence: the token up to which it is computed alone. */
  readonly #suspects = new Map<ActiveRequest, ReadonlyMap<Sequence, number>>();
  #inARow = 0;

  /** Too many steps failed in a row: the backend is broken. */
  get isHopeless(): boolean {
    return this.#inARow >= maxInARow;
  }

  /** The suspect to compute alone in the next step. */
  get nextSuspect(): ActiveRequest | undefined {
    for (const [request, extents] of this.#suspects) {
      if (!request.isOver && [...extents].some(([sequence, end]) => isBefore(sequence, end))) return request;
      this.#suspects.delete(request);
    }
    return undefined;
  }

  /** Records a failed step, before its sequences' `numScheduled` is cleared. Returns the request at fault, if it is known. */
  noteFailure(
    sequences: readonly Sequence[],
    requestOf: (sequence: Sequence) => ActiveRequest,
  ): ActiveRequest | undefined {
    this.#inARow += 1;
    const requests = new Map<ActiveRequest, Map<Sequence, number>>();
    for (const sequence of sequences) {
      const request = requestOf(sequence);
      const extents = requests.get(request) ?? new Map<Sequence, number>();
      extents.set(sequence, sequence.numComputed + sequence.numScheduled);
      requests.set(request, extents);
    }
    const [only] = requests.keys();
    if (requests.size === 1 && only !== undefined && this.#suspects.delete(only)) return only;
    for (const [request, extents] of requests) this.#suspects.set(request, extents);
    return undefined;
  }

  noteSuccess(): void {
    this.#inARow = 0;
  }
}

function isBefore(sequence: Sequence, end: number): boolean {
  return sequence.status !== "finished" && sequence.numComputed < end;
}
