import { stringMatchEvaluator } from "../generators/ruler/string-match.js";
import { cascadeEvaluator } from "../judges/cascade.js";
import { judgedEvaluators } from "../judges/judged-evaluators.js";
import { multipleChoiceEvaluator } from "./choice/multiple-choice.js";
import { functionCallingEvaluators } from "./function-calling/function-calling-evaluators.js";
import { groundingEvaluators } from "./grounding/grounding-evaluators.js";
import { jsonEvaluators } from "./json/json-evaluators.js";
import { markupEvaluators } from "./markup/markup-evaluators.js";
import { numericEvaluators } from "./numeric/numeric-evaluators.js";
import { overlapEvaluators } from "./overlap/overlap-evaluators.js";
import { rankingEvaluator } from "./ranking/ranking-evaluator.js";
import { EvaluatorTable } from "./registry.js";
import { safetyEvaluators } from "./safety/safety-evaluators.js";
import { servingEvaluators } from "./serving/serving-evaluators.js";
import { textEvaluators } from "./text/text-evaluators.js";

/** Every evaluator there is. A new one is a row in one of these lists. */
export const evaluatorTable: EvaluatorTable = new EvaluatorTable([
  ...jsonEvaluators,
  ...functionCallingEvaluators,
  ...textEvaluators,
  ...numericEvaluators,
  ...overlapEvaluators,
  ...markupEvaluators,
  multipleChoiceEvaluator,
  rankingEvaluator,
  ...groundingEvaluators,
  ...safetyEvaluators,
  ...servingEvaluators,
  stringMatchEvaluator,
  ...judgedEvaluators,
  cascadeEvaluator(() => evaluatorTable),
]);
