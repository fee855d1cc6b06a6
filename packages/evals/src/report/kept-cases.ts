import type { CaseRow } from "../run/case-row.js";
import { type CaseState, caseState, caseStates } from "./case-state.js";

/** The cases most worth seeing of a run, in bounded memory: those that got worse before those that stayed as they were. */
export class KeptCases {
  readonly #most: number;
  #rows: { readonly row: CaseRow; readonly state: CaseState }[] = [];
  #numSeen = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get numSeen(): number {
    return this.#numSeen;
  }

  get rows(): readonly CaseRow[] {
    this.#cut();
    return this.#rows.map(({ row }) => row);
  }

  add(row: CaseRow): void {
    this.#numSeen += 1;
    if (this.#most === 0) return;
    this.#rows.push({ row, state: caseState(row) });
    if (this.#rows.length >= 2 * this.#most + 64) this.#cut();
  }

  #cut(): void {
    this.#rows.sort((a, b) => caseStates.indexOf(a.state) - caseStates.indexOf(b.state));
    this.#rows = this.#rows.slice(0, this.#most);
  }
}
