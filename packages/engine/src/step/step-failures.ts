import type { Sequence } from "../scheduler/sequence.js";

/** A request as the failures of steps concern it. */
export interface SuspectRequest {
  readonly sequences: readonly Sequence[];
  readonly isOver: boolean;
}

/** Failed steps in a row, each of one request alone, that say more of the backend than of the requests. */
const mostInARow = 4;

/**
 * Tells requests that break steps from a backend that is broken. Whoever was in a failed step is suspect, and is computed
 * alone as far as that step would have brought it: what fails again is at fault, everybody else goes on. When nothing but
 * failures comes of it, the backend is.
 */
export class StepFailures<Request extends SuspectRequest> {
  /** By sequence: up to which token its trial goes. */
  readonly #suspects = new Map<Request, ReadonlyMap<Sequence, number>>();
  #inARow = 0;

  /** The backend has failed too often to be believed in. */
  get isHopeless(): boolean {
    return this.#inARow >= mostInARow;
  }

  /** The suspect to be computed alone in the next step. */
  get onTrial(): Request | undefined {
    for (const [request, extents] of this.#suspects) {
      if (!request.isOver && [...extents].some(([sequence, end]) => isBefore(sequence, end))) return request;
      this.#suspects.delete(request);
    }
    return undefined;
  }

  /** Takes note of a failed step, while its sequences still say what it was to compute. Returns who is at fault, if that is known. */
  noteFailure(
    sequences: readonly Sequence[],
    requestOf: (sequence: Sequence) => Request,
  ): Request | undefined {
    this.#inARow += 1;
    const requests = new Map<Request, Map<Sequence, number>>();
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
