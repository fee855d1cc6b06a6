import { OctavoError } from "@octavo/protocol/errors";
import type { GrammarSpec } from "../grammar.js";
import { jsonWriting, plainWriting } from "../json-schema/json-text.js";
import { all, type Node, not, sequence, text } from "../node.js";
import type { RuleBuilder } from "../rule-builder.js";
import { parseGbnf } from "./gbnf.js";
import { parseLark } from "./lark.js";
import { lowerExpressions } from "./lower-expressions.js";

const maxLength = 256 * 1024;

/** A grammar written in GBNF (rules with `::=`) or Lark (rules with `:`). Throws `invalid_request` with line and reason. */
export function compileGrammarText(
  { source, inString = false, without }: Omit<Extract<GrammarSpec, { kind: "grammar" }>, "kind">,
  rules: RuleBuilder,
  special: ReadonlySet<string>,
): Node {
  if (source.length > maxLength)
    throw new OctavoError("invalid_request", `The grammar is longer than ${maxLength} characters.`);
  const parsed = /^\s*[\w.-]+\s*::=/m.test(source) ? parseGbnf(source) : parseLark(source);
  const writing = inString ? jsonWriting : plainWriting;
  if (without === undefined)
    return lowerExpressions(parsed, writing, inString ? new Set() : special, { rules });
  const { anything } = writing;
  const absent = without.map((part) => not(sequence(anything, text(writing.write(part)), anything)));
  return all(lowerExpressions(parsed, writing, new Set(), "in place"), ...absent);
}
