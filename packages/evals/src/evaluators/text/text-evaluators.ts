import type { EvaluatorEntry } from "../registry.js";
import { matchingEvaluators } from "./matching.js";

/** What can be said of an output's text alone or beside expected texts. */
export const textEvaluators: readonly EvaluatorEntry[] = [...matchingEvaluators];
