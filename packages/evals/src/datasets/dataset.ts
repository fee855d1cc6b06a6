import type { EvalCase } from "../cases/eval-case.js";

/** Cases in a fixed order, streamed: a dataset of a million cases is never in memory. */
export interface Dataset {
  readonly name: string;
  /** Undefined where it is known only at the end. */
  readonly size: number | undefined;
  /**
   * From the first case each time it is called.
   * @throws OctavoError `dataset_invalid` that names the file, the line or row, and the field
   */
  cases(): AsyncIterable<EvalCase>;
  /** With which prompts a benchmark's cases were asked, as reports say it; whole once `cases` has ended. */
  readonly prompts?: () => readonly string[];
  /** How many cases were left out, by reason; whole once `cases` has ended. Absent where none ever is. */
  readonly skipped?: () => Readonly<Record<string, number>>;
}
