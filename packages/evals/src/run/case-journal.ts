import type { EvalCase } from "../cases/eval-case.js";
import { Journal, journalKey } from "../journal/journal.js";
import type { CaseRow } from "./case-row.js";

interface KeptRow {
  readonly row: CaseRow;
}

/**
 * Rows of a run on disk. The first line says what was asked of whom; rows of other questions are never mixed. A row is kept
 * under everything its case says, so that a case that was edited is asked again. Rows in which an answer or a score failed
 * are not kept: they are tried again.
 */
export class CaseJournal {
  readonly #journal: Journal<KeptRow>;

  private constructor(journal: Journal<KeptRow>) {
    this.#journal = journal;
  }

  /**
   * Opens or begins a journal.
   * @param question whatever decides the rows: targets, parameters, evaluators
   * @throws OctavoError `invalid_option` where the file cannot be opened, is something else, or answers another question
   */
  static async open(path: string, question: unknown): Promise<CaseJournal> {
    const digest = journalKey(JSON.stringify(question));
    const journal = await Journal.open<KeptRow>(path, {
      header: `{"journal":"octavo-cases","version":2,"question":"${digest}"}`,
      rows: "cases",
      // lines are this class's own: what has a row is one
      parse: ({ row }) => (typeof row === "object" && row !== null ? { row: row as CaseRow } : undefined),
    });
    return new CaseJournal(journal);
  }

  /** Rows that need not be asked for again. */
  get size(): number {
    return this.#journal.size;
  }

  async read(dataset: string, evalCase: EvalCase): Promise<CaseRow | undefined> {
    return (await this.#journal.read(keyOf(dataset, evalCase)))?.row;
  }

  /** @throws OctavoError `disk_full` */
  async append(rows: readonly { readonly row: CaseRow; readonly evalCase: EvalCase }[]): Promise<void> {
    for (const { row, evalCase } of rows)
      if (isWhole(row)) await this.#journal.append(keyOf(row.dataset, evalCase), { row });
    await this.#journal.flush();
  }

  close(): Promise<void> {
    return this.#journal.close();
  }
}

function isWhole({ answers }: CaseRow): boolean {
  return Object.values(answers).every(
    ({ answer, scores }) =>
      answer.failure === undefined && Object.values(scores).every(({ status }) => status !== "failed"),
  );
}

/** Hashes everything that a case says: another prompt, gold or parameter makes another case, whatever its id. */
function keyOf(dataset: string, evalCase: EvalCase): string {
  return journalKey(JSON.stringify([dataset, sorted(evalCase)]));
}

/** Fields by their names, so that their order in a file says nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, field]) => [name, sorted(field)]),
  );
}
