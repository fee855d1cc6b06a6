import type { EvalCase } from "../cases/eval-case.js";

/** Cases in a fixed order, streamed: a dataset of a million cases is never in memory. */
export interface Dataset {
  readonly name: string;
  /** Undefined where it is known only at the end. */
  readonly size: number | undefined;
  /** @throws OctavoError `dataset_invalid` that names the file, the line or row, and the field */
  cases(): AsyncIterable<EvalCase>;
}
