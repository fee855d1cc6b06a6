import { OctavoError } from "@octavo/protocol/errors";
import type { Node } from "../node.js";
import type { RuleBuilder } from "../rule-builder.js";
import { parseGbnf } from "./gbnf.js";
import { parseLark } from "./lark.js";
import { lowerExpressions } from "./lower-expressions.js";

const maxLength = 256 * 1024;

/** A grammar written in GBNF (rules with `::=`) or Lark (rules with `:`). Throws `invalid_request` with line and reason. */
export function compileGrammarText(source: string, rules: RuleBuilder, special: ReadonlySet<string>): Node {
  if (source.length > maxLength)
    throw new OctavoError("invalid_request", `The grammar is longer than ${maxLength} characters.`);
  const parsed = /^\s*[\w.-]+\s*::=/m.test(source) ? parseGbnf(source) : parseLark(source);
  return lowerExpressions(parsed, rules, special);
}
