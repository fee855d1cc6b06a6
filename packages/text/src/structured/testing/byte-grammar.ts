import { MaskCache } from "../automaton/mask-cache.js";
import { TermGrammar } from "../automaton/matcher.js";
import { buildVocabulary } from "../automaton/vocabulary.js";
import { compileRules } from "../compile-rules.js";
import type { GrammarSpec, JsonValue } from "../grammar.js";
import { takes } from "./walk.js";

const vocabulary = buildVocabulary(
  Uint8Array.from({ length: 256 }, (_, byte) => byte),
  Int32Array.from({ length: 257 }, (_, start) => start),
);

/** Whether texts are ones that a grammar allows, over a vocabulary of the single bytes. */
export function byteGrammar(spec: GrammarSpec): (text: string) => boolean {
  const grammar = new TermGrammar(compileRules(spec, new Set()), vocabulary, new MaskCache(1 << 20));
  return (text) => takes(grammar.start(), text);
}

export function schemaGrammar(schema: JsonValue): (text: string) => boolean {
  return byteGrammar({ kind: "json_schema", schema });
}
