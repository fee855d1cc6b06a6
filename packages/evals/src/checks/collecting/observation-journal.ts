import { z } from "zod";
import { Journal, journalKey } from "../../journal/journal.js";
import type { Observation } from "../observation.js";

/** What makes a row one of ours; the rest of an observation is as it was written, and absent fields were undefined. */
const keptObservations = z.object({
  observations: z.array(
    z.looseObject({
      caseId: z.string(),
      condition: z.string(),
      tags: z.array(z.string()),
      scheduledEpochMs: z.number(),
      durationMs: z.number(),
      gapsMs: z.array(z.number()),
      scores: z.record(z.string(), z.number().nullable()),
    }),
  ),
});

interface KeptObservations {
  readonly observations: readonly Observation[];
}

/** Observations of whole cases on disk, keyed by the plan: an interrupted check resumes from it. */
export class ObservationJournal implements AsyncDisposable {
  readonly #journal: Journal<KeptObservations>;
  readonly #context: string;

  private constructor(journal: Journal<KeptObservations>, context: string) {
    this.#journal = journal;
    this.#context = context;
  }

  /**
   * Opens or begins a journal.
   * @param context what affects answers besides the plan, such as the targets' URLs and models; as JSON
   * @throws OctavoError `invalid_option` where the file cannot be opened or is something else
   */
  static async open(path: string, context: unknown = null): Promise<ObservationJournal> {
    const journal = await Journal.open<KeptObservations>(path, {
      header: '{"journal":"octavo-observations","version":1}',
      rows: "observations",
      parse: (fields) => keptObservations.safeParse(fields).data as KeptObservations | undefined,
    });
    return new ObservationJournal(journal, JSON.stringify(context) ?? "");
  }

  get size(): number {
    return this.#journal.size;
  }

  async get(key: string): Promise<readonly Observation[] | undefined> {
    return (await this.#journal.read(this.#rowKey(key)))?.observations;
  }

  /** @throws OctavoError `disk_full` where it cannot be written */
  async append(key: string, observations: readonly Observation[]): Promise<void> {
    await this.#journal.append(this.#rowKey(key), { observations });
    await this.#journal.flush();
  }

  #rowKey(key: string): string {
    return journalKey(`${this.#context}\n${key}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#journal.close();
  }
}
