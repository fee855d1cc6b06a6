import type { Sequence } from "../scheduler/sequence.js";
import type { RequestFaults } from "./fault.js";

interface Due {
  /** Ascending; those that are not met yet. */
  preempt: readonly number[];
  evict: readonly number[];
}

/** Which of the faults that came with requests are due, by sequence; of those that leave nothing is kept. */
export class RequestFaultSchedule {
  readonly #due = new WeakMap<Sequence, Due>();

  /** Whether what is cached of a sequence's prompt must go as long as it has not been admitted, and whether it is the first time. */
  evictsPrompt(sequence: Sequence, faults: RequestFaults): { readonly isFirst: boolean } | undefined {
    if (sequence.cachedTokens !== undefined || faults.evictAtTokens?.includes(0) !== true) return undefined;
    const due = this.#dueOf(sequence, faults);
    const isFirst = due.evict[0] === 0;
    if (isFirst) due.evict = due.evict.filter((token) => token > 0);
    return { isFirst };
  }

  /** Takes what a running sequence has come to; eviction wins over preemption, which is part of it. */
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
