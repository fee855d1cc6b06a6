import type { EvaluatorSpec, Sample } from "../../evaluators/evaluator.js";
import type { ScoredCase } from "../runner.js";

/** What a thread is started with. */
export interface ThreadData {
  /** Modules that export `evaluators`, rows of the user's own. */
  readonly modules: readonly string[];
}

/** Scores all of the samples with all of the specs. */
export interface ThreadTask {
  readonly samples: readonly Sample[];
  readonly specs: readonly EvaluatorSpec[];
}

/** A thread says once that it is ready, then answers each task. */
export type ThreadReply =
  | { readonly kind: "ready" }
  | { readonly kind: "rows"; readonly rows: readonly ScoredCase[] }
  | { readonly kind: "refused"; readonly code: string; readonly message: string };
