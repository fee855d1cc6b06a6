import type { ActiveFault, Fault, FaultControl } from "@octavo/engine";

/** Keeps the faults that were added, and does nothing. */
export class FakeFaults implements FaultControl {
  active: ActiveFault[] = [];
  #lastId = 0;

  add(fault: Fault): ActiveFault {
    this.#lastId += 1;
    const added = { id: this.#lastId, fault, numInjected: 0, remainingMs: fault.durationMs };
    this.active.push(added);
    return added;
  }

  clear(id?: number): number {
    const before = this.active.length;
    this.active = id === undefined ? [] : this.active.filter((fault) => fault.id !== id);
    return before - this.active.length;
  }
}
