import { OctavoError } from "@octavo/protocol/errors";
import type { CodeSet } from "../../regex/code-points.js";
import type { Regex } from "../../regex/syntax-tree.js";

/** The right-hand side of a rule. */
export type GrammarExpression =
  | { readonly kind: "text"; readonly text: string; readonly ignoreCase?: boolean }
  | { readonly kind: "set"; readonly set: CodeSet }
  | { readonly kind: "regex"; readonly regex: Regex; readonly ignoreCase?: boolean }
  | { readonly kind: "rule"; readonly name: string; readonly line: number }
  | { readonly kind: "sequence"; readonly items: readonly GrammarExpression[] }
  | { readonly kind: "choice"; readonly items: readonly GrammarExpression[] }
  | { readonly kind: "repeat"; readonly item: GrammarExpression; readonly min: number; readonly max: number };

export interface ParsedGrammar {
  readonly rules: ReadonlyMap<string, GrammarExpression>;
  readonly start: string;
  /** Lark's `%ignore`: what may stand between the parts of a rule. */
  readonly ignored?: readonly GrammarExpression[];
  /** Names of terminals, within which nothing is ignored. */
  readonly terminals?: ReadonlySet<string>;
}

export const maxNesting = 200;
export const maxRepeat = 10_000;

export function grammarError(line: number, what: string): OctavoError {
  return new OctavoError("invalid_request", `The grammar, line ${line}: ${what}.`);
}
