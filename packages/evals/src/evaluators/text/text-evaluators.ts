import type { EvaluatorEntry } from "../registry.js";
import { matchingEvaluators } from "./matching.js";
import { readabilityEvaluator } from "./readability.js";
import { regexEvaluator } from "./regex.js";
import { shapeEvaluators } from "./shape.js";

/** What can be said of an output's text alone or beside expected texts. */
export const textEvaluators: readonly EvaluatorEntry[] = [
  ...matchingEvaluators,
  regexEvaluator,
  ...shapeEvaluators,
  readabilityEvaluator,
];
