import { z } from "zod";
import { scopeFields } from "../limits/scope.js";
import { budgetPeriods } from "./budget-period.js";

const part = z.number().gt(0).max(1);

export const budgetSchema = z
  .strictObject({
    name: z.string().regex(/^[\w.-]{1,64}$/, "expected letters, digits, dots, dashes and underscores"),
    ...scopeFields,
    period: z.enum(budgetPeriods).default("month"),
    /** The hard ceiling: what calls may cost together in a period. */
    dollars: z.number().gt(0).max(1e6).optional(),
    /** The hard ceiling in seconds during which targets work on calls. */
    gpu_seconds: z.number().gt(0).max(1e9).optional(),
    /** Only for `gpu_seconds`: the most that one call can take. */
    gpu_seconds_per_call: z.number().gt(0).default(60),
    /** Part of the ceiling from which the log warns. */
    soft: part.default(0.8),
    /** Part of the ceiling from which calls are slowed down to `medium_requests_per_minute`. */
    medium: part.optional(),
    medium_requests_per_minute: z.number().gt(0).default(6),
    /** Calls of models without a price: refused, or not counted. */
    unpriced: z.enum(["refuse", "free"]).default("refuse"),
  })
  .refine(
    ({ dollars, gpu_seconds }) => (dollars === undefined) !== (gpu_seconds === undefined),
    "give either dollars or gpu_seconds",
  )
  .refine(({ soft, medium }) => medium === undefined || soft <= medium, {
    message: "is below soft",
    path: ["medium"],
  });

export const budgetsSchema = z
  .array(budgetSchema)
  .max(200)
  .superRefine((budgets, context) => {
    const names = budgets.map(({ name }) => name);
    for (const [index, name] of names.entries())
      if (names.indexOf(name) < index)
        context.addIssue({ code: "custom", message: `there are two budgets ${name}`, path: [index, "name"] });
  });

export type BudgetConfig = z.output<typeof budgetSchema>;
