import type { Condition, SimpleCondition } from "../config/condition.js";
import type { RoutingFacts } from "./request-facts.js";

/** Whether a request is one of those that a route or a lane is for. */
export function holds(condition: Condition, facts: RoutingFacts): boolean {
  if ("any" in condition) return condition.any.some((one) => allHold(one, facts));
  if ("not" in condition) return !allHold(condition.not, facts);
  return allHold(condition, facts);
}

function allHold(condition: SimpleCondition, facts: RoutingFacts): boolean {
  const { tags, tenants, metadata, stream, has_tools, has_images } = condition;
  const { min_prompt_tokens, max_prompt_tokens, min_complexity, max_complexity } = condition;
  return (
    (tags === undefined || tags.some((tag) => facts.tags.includes(tag))) &&
    (tenants === undefined || (facts.tenant !== undefined && tenants.includes(facts.tenant))) &&
    (metadata === undefined ||
      Object.entries(metadata).every(([name, wanted]) => {
        const value = Object.hasOwn(facts.metadata, name) ? facts.metadata[name] : undefined;
        return (
          typeof value === "string" && (Array.isArray(wanted) ? wanted.includes(value) : wanted === value)
        );
      })) &&
    (stream === undefined || stream === facts.isStream) &&
    (has_tools === undefined || has_tools === facts.hasTools) &&
    (has_images === undefined || has_images === facts.hasImages) &&
    (min_prompt_tokens === undefined || facts.promptTokens >= min_prompt_tokens) &&
    (max_prompt_tokens === undefined || facts.promptTokens <= max_prompt_tokens) &&
    (min_complexity === undefined || facts.complexity() >= min_complexity) &&
    (max_complexity === undefined || facts.complexity() <= max_complexity)
  );
}
