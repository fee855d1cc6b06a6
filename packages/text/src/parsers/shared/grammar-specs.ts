import type { GrammarSpec } from "../../structured/grammar.js";

export function literalSpec(text: string): GrammarSpec {
  return { kind: "literal", text };
}

export function regexSpec(pattern: string): GrammarSpec {
  return { kind: "regex", pattern };
}

export function inSequence(...parts: readonly GrammarSpec[]): GrammarSpec {
  return { kind: "sequence", parts };
}

export function eitherOf(...options: readonly GrammarSpec[]): GrammarSpec {
  return { kind: "any_of", options };
}

export function anyNumberOf(item: GrammarSpec, separator = ""): GrammarSpec {
  return { kind: "repeat", item, separator };
}

export function atMostOne(item: GrammarSpec): GrammarSpec {
  return { kind: "repeat", item, min: 0, max: 1 };
}
