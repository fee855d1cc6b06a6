import { conversationRubrics } from "./rubrics/conversation.js";
import { groundingRubrics } from "./rubrics/grounding.js";
import type { Rubric } from "./rubrics/rubric.js";
import { safetyRubrics } from "./rubrics/safety.js";
import { styleRubrics } from "./rubrics/style.js";
import { taskRubrics } from "./rubrics/task.js";

/** Everything that judges are asked by name. A new judged evaluator is a row in one of these lists. */
export const rubrics: readonly Rubric[] = [
  ...groundingRubrics,
  ...taskRubrics,
  ...styleRubrics,
  ...safetyRubrics,
  ...conversationRubrics,
];
