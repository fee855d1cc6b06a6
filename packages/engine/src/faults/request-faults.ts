import type { Sequence } from "../scheduler/sequence.js";
import type { RequestFaults } from "./fault.js";

interface Due {
  /** Ascending; triggers still due. */
  preempt: readonly number[];
  evict: readonly number[];
}

/** The due faults of requests, by sequence; dropped with the sequence. */
export class RequestFaultSchedule {
  readonly #due = new WeakMap<Sequence, Due>();

  /** Whether to evict a sequence's cached prompt, until it is admitted, and whether this is the first time. */
  evictsPrompt(sequence: Sequence, faults: RequestFaults): { readonly isFirst: boolean } | undefined {
    if (sequence.cachedTokens !== undefined || faults.evictAtTokens?.includes(0) !== true) return undefined;
    const due = this.#dueOf(sequence, faults);
    const isFirst = due.evict[0] === 0;
    if (isFirst) due.evict = due.evict.filter((token) => token > 0);
    return { isFirst };
  }

  /** Takes the faults that a running sequence has reached; eviction wins over preemption, which it includes. */
  take(sequence: Sequence, faults: RequestFaults): "evict" | "preempt" | undefined {
    const due = this.#dueOf(sequence, faults);
    const { numOutputTokens } = sequence;
    const evicts = due.evict.some((token) => token <= numOutputTokens);
    const preempts = due.preempt.some((token) => token <= numOutputTokens);
    if (!evicts && !preempts) return undefined;
    due.evict = due.evict.filter((token) => token > numOutputTokens);
    due.preempt = due.preempt.filter((token) => token > numOutputTokens);
    return evicts ? "evict" : "preempt";
  }

  #dueOf(sequence: Sequence, { preemptAtTokens = [], evictAtTokens = [] }: RequestFaults): Due {
    let due = this.#due.get(sequence);
    if (due === undefined) {
      due = { preempt: preemptAtTokens, evict: evictAtTokens };
      this.#due.set(sequence, due);
    }
    return due;
  }
}
