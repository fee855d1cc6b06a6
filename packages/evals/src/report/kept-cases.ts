import { clip } from "@octavo/report";
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
    this.#rows.push({ row: slim(row), state: caseState(row) });
    if (this.#rows.length >= 2 * this.#most + 64) this.#cut();
  }

  #cut(): void {
    this.#rows.sort((a, b) => caseStates.indexOf(a.state) - caseStates.indexOf(b.state));
    this.#rows = this.#rows.slice(0, this.#most);
  }
}

/** Characters of a text that are kept; journals have the whole. */
const mostCharacters = 20_000;

/** A row without what only checks and measurements read: times of single pieces, tokens, serving records. */
function slim(row: CaseRow): CaseRow {
  return {
    ...row,
    input: clip(row.input, mostCharacters),
    expected: row.expected === undefined ? undefined : clip(row.expected, mostCharacters),
    answers: Object.fromEntries(
      Object.entries(row.answers).map(([name, { answer, scores }]) => {
        const { tokens: _, logitsDigests: __, ...rest } = answer;
        return [
          name,
          {
            scores,
            answer: {
              ...rest,
              text: clip(answer.text, mostCharacters),
              reasoning: answer.reasoning === undefined ? undefined : clip(answer.reasoning, mostCharacters),
              timing: { ...answer.timing, pieceMs: answer.timing.pieceMs.slice(0, 1) },
              serving: undefined,
              headers: {},
            },
          },
        ];
      }),
    ),
  };
}
