import { z } from "zod";
import type { Exchange } from "../exchange/exchange.js";

/** Whose calls a rule counts, and which calls. */
export const scopeFields = {
  /** One count for each of these; `all` counts everybody's together. */
  per: z.enum(["key", "tenant", "model", "tag", "all"]).default("all"),
  /** Only calls of these; none given means of all. */
  tenants: z.array(z.string().min(1)).optional(),
  keys: z.array(z.string().min(1)).optional(),
  models: z.array(z.string().min(1)).optional(),
  tags: z.array(z.string().min(1)).optional(),
} as const;

const scopeSchema = z.object(scopeFields);
export type RuleScope = z.output<typeof scopeSchema>;

const unknown = "-";

/** Whose counts of a rule a call adds to; none where the rule does not speak of it. Calls without a key share one count. */
export function subjectsOf(scope: RuleScope, { caller, ledger }: Exchange): readonly string[] {
  const { tenants, keys, models, tags } = scope;
  const model = ledger.requestedModel;
  if (tenants !== undefined && !tenants.includes(caller.tenant ?? unknown)) return [];
  if (keys !== undefined && !keys.includes(caller.keyId ?? unknown)) return [];
  if (models !== undefined && !models.includes(model)) return [];
  const matching = tags === undefined ? caller.tags : caller.tags.filter((tag) => tags.includes(tag));
  if (tags !== undefined && matching.length === 0) return [];
  switch (scope.per) {
    case "key":
      return [caller.keyId ?? unknown];
    case "tenant":
      return [caller.tenant ?? unknown];
    case "model":
      return [model];
    case "tag":
      return matching;
    case "all":
      return ["all"];
  }
}
