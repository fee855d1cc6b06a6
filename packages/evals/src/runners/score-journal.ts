import { z } from "zod";
import type { Evaluator, Sample, Score } from "../evaluators/evaluator.js";
import { Journal } from "../journal/journal.js";
import { ContentKeys } from "./content-key.js";
import type { ScoredCase } from "./runner.js";
import { keptScoreSchema } from "./scoring-task.js";

const scoredCase = z.object({ caseId: z.string(), evaluator: z.string(), score: keptScoreSchema });

/** Scores on disk by the content they were made of. Failed scores are not kept, so that resuming tries them again. */
export class ScoreJournal {
  readonly #journal: Journal<ScoredCase>;
  readonly #keys = new ContentKeys();

  private constructor(journal: Journal<ScoredCase>) {
    this.#journal = journal;
  }

  /**
   * Opens or begins a journal.
   * @throws OctavoError `invalid_option` where the file cannot be opened or is something else
   */
  static async open(path: string): Promise<ScoreJournal> {
    const journal = await Journal.open<ScoredCase>(path, {
      header: '{"journal":"octavo-scores","version":1}',
      rows: "scores",
      parse: (fields) => scoredCase.safeParse(fields).data as ScoredCase | undefined,
    });
    return new ScoreJournal(journal);
  }

  /** Rows that need not be scored again. */
  get size(): number {
    return this.#journal.size;
  }

  keyOf(sample: Sample, evaluator: Evaluator): string {
    return this.#keys.of(sample, evaluator);
  }

  async read(key: string): Promise<Score | undefined> {
    return (await this.#journal.read(key))?.score;
  }

  /**
   * Resolves when there is room for more; `flush` waits for the disk.
   * @throws OctavoError `disk_full` once a write has failed
   */
  async append(key: string, row: ScoredCase): Promise<void> {
    if (row.score.status !== "failed") await this.#journal.append(key, row);
  }

  flush(): Promise<void> {
    return this.#journal.flush();
  }

  close(): Promise<void> {
    return this.#journal.close();
  }
}
