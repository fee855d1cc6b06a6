import { toByteAlphabet } from "./byte-alphabet.js";
import {
  CharacterSet,
  numeric,
  punctuation,
  rustWordCharacters,
  whitespace,
} from "../regex/character-set.js";
import { TokenizerPattern } from "./pattern/pattern.js";
import type { PatternSpecification, PreTokenizerSpecification, SplitBehavior } from "./specification.js";

/** Receives a piece; `atTextStart` says that it begins where the whole input begins. */
type EmitPiece = (piece: string, atTextStart: boolean) => void;
type PreTokenize = (text: string, atTextStart: boolean, emit: EmitPiece) => void;

/** GPT-2's pattern, which the ByteLevel pre-tokenizer applies. */
export const gpt2Pattern =
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

export interface PreTokenizerPlan {
  readonly preTokenize: PreTokenize;
  /** The pieces are plain text: the model maps them to the byte alphabet itself, so that its piece cache covers that step. */
  readonly byteAlphabetPending: boolean;
}

/** The functions that a pre-tokenizer of tokenizer.json describes, each piece emitted as soon as it is cut. */
export function createPreTokenizer(specification: PreTokenizerSpecification | undefined): PreTokenizerPlan {
  const steps = specification === undefined ? [] : flatten(specification);
  const byteAlphabetPending = steps.at(-1)?.kind === "byte-level";
  const functions = steps.map((step, index) =>
    createStep(step, byteAlphabetPending && index === steps.length - 1),
  );
  const whole: PreTokenize = (text, atTextStart, emit) => emit(text, atTextStart);
  const preTokenize = functions.reduceRight<PreTokenize>(
    (following, step) => (following === whole ? step : chain(step, following)),
    whole,
  );
  return { preTokenize, byteAlphabetPending };
}

function chain(first: PreTokenize, second: PreTokenize): PreTokenize {
  return (text, atTextStart, emit) =>
    first(text, atTextStart, (piece, atStart) => second(piece, atStart, emit));
}

type StepSpecification = Exclude<PreTokenizerSpecification, { kind: "sequence" }>;

function flatten(specification: PreTokenizerSpecification): StepSpecification[] {
  return specification.kind === "sequence" ? specification.items.flatMap(flatten) : [specification];
}

function createStep(step: StepSpecification, leaveBytes: boolean): PreTokenize {
  switch (step.kind) {
    case "byte-level":
      return byteLevel(step.addPrefixSpace, step.useRegex, leaveBytes);
    case "split":
      return splitBy(findPattern(step.pattern), step.behavior, step.invert);
    case "metaspace":
      return metaspace(step.replacement, step.prepend, step.split);
    case "digits":
      return splitBy(findCharacters(numeric), step.individual ? "isolated" : "contiguous", false);
    case "punctuation":
      return splitBy(findCharacters(punctuation), step.behavior, false);
    case "whitespace-split":
      return splitBy(findCharacters(whitespace), "removed", false);
    case "whitespace":
      return splitBy(findWordsAndSymbols, "removed", true);
    case "character-delimiter": {
      const code = step.delimiter.codePointAt(0)!;
      return splitBy(findCharacters(CharacterSet.of([code, code])), "removed", false);
    }
  }
}

function byteLevel(addPrefixSpace: boolean, useRegex: boolean, leaveBytes: boolean): PreTokenize {
  const split: PreTokenize = useRegex
    ? splitBy(findPattern({ regex: gpt2Pattern }), "isolated", false)
    : (text, atTextStart, emit) => emit(text, atTextStart);
  return (text, atTextStart, emit) => {
    const prefixed = addPrefixSpace && !text.startsWith(" ") ? ` ${text}` : text;
    split(
      prefixed,
      atTextStart,
      leaveBytes ? emit : (piece, atStart) => emit(toByteAlphabet(piece), atStart),
    );
  };
}

function metaspace(replacement: string, prepend: "always" | "first" | "never", split: boolean): PreTokenize {
  const code = replacement.codePointAt(0)!;
  const cut = splitBy(findCharacters(CharacterSet.of([code, code])), "merged-with-next", false);
  return (text, atTextStart, emit) => {
    let replaced = text.replaceAll(" ", replacement);
    const prepends = prepend === "always" || (prepend === "first" && atTextStart);
    if (prepends && !replaced.startsWith(replacement)) replaced = replacement + replaced;
    if (split) cut(replaced, atTextStart, emit);
    else if (replaced !== "") emit(replaced, atTextStart);
  };
}

/** Calls with every match in order. */
type Find = (text: string, onMatch: (start: number, end: number) => void) => void;

function findPattern(pattern: PatternSpecification): Find {
  if ("regex" in pattern) {
    const expression = new TokenizerPattern(pattern.regex);
    return (text, onMatch) => expression.forEachMatch(text, onMatch);
  }
  const { literal } = pattern;
  if (literal === "") return () => {};
  return (text, onMatch) => {
    for (let at = text.indexOf(literal); at >= 0; at = text.indexOf(literal, at + literal.length))
      onMatch(at, at + literal.length);
  };
}

function findCharacters(set: CharacterSet): Find {
  return (text, onMatch) => {
    for (let index = 0; index < text.length;) {
      const codePoint = text.codePointAt(index)!;
      const end = index + (codePoint > 0xffff ? 2 : 1);
      if (set.has(codePoint)) onMatch(index, end);
      index = end;
    }
  };
}

/** `\w+|[^\w\s]+` as Rust's `regex` crate reads it. */
const findWordsAndSymbols: Find = (text, onMatch) => {
  const kindAt = (codePoint: number): number =>
    rustWordCharacters.has(codePoint) ? 1 : whitespace.has(codePoint) ? 0 : 2;
  let start = 0;
  let kind = 0;
  for (let index = 0; index < text.length;) {
    const codePoint = text.codePointAt(index)!;
    const here = kindAt(codePoint);
    if (here !== kind) {
      if (kind !== 0) onMatch(start, index);
      start = index;
      kind = here;
    }
    index += codePoint > 0xffff ? 2 : 1;
  }
  if (kind !== 0) onMatch(start, text.length);
};

/**
 * Cuts a text at matches (or at what lies between them, inverted); the behaviours are those of
 * Hugging Face's SplitDelimiterBehavior. Empty pieces are dropped.
 */
function splitBy(find: Find, behavior: SplitBehavior, invert: boolean): PreTokenize {
  if (behavior === "isolated") return splitIsolated(find);
  return (text, atTextStart, emit) => {
    const spans = spansOf(find, text, invert);
    const pieces = joinSpans(spans, behavior);
    for (const { start, end } of pieces)
      if (start < end) emit(text.slice(start, end), atTextStart && start === 0);
  };
}

function splitIsolated(find: Find): PreTokenize {
  return (text, atTextStart, emit) => {
    let previous = 0;
    find(text, (start, end) => {
      if (previous < start) emit(text.slice(previous, start), atTextStart && previous === 0);
      if (start < end) emit(text.slice(start, end), atTextStart && start === 0);
      previous = end;
    });
    if (previous < text.length) emit(text.slice(previous), atTextStart && previous === 0);
  };
}

interface Span {
  readonly start: number;
  readonly end: number;
  readonly isMatch: boolean;
}

function spansOf(find: Find, text: string, invert: boolean): Span[] {
  const spans: Span[] = [];
  let previous = 0;
  find(text, (start, end) => {
    if (previous !== start) spans.push({ start: previous, end: start, isMatch: invert });
    spans.push({ start, end, isMatch: !invert });
    previous = end;
  });
  if (previous !== text.length) spans.push({ start: previous, end: text.length, isMatch: invert });
  return spans;
}

function joinSpans(
  spans: readonly Span[],
  behavior: Exclude<SplitBehavior, "isolated">,
): { start: number; end: number }[] {
  if (behavior === "removed") return spans.filter((span) => !span.isMatch);
  const pieces: { start: number; end: number }[] = [];
  let previousIsMatch = false;
  const forward = behavior !== "merged-with-next";
  for (let index = 0; index < spans.length; index++) {
    const span = spans[forward ? index : spans.length - 1 - index]!;
    const joins =
      behavior === "contiguous" ? span.isMatch === previousIsMatch : span.isMatch && !previousIsMatch;
    const last = pieces.at(-1);
    previousIsMatch = span.isMatch;
    if (!joins || last === undefined) pieces.push({ start: span.start, end: span.end });
    else if (forward) last.end = span.end;
    else last.start = span.start;
  }
  return forward ? pieces : pieces.toReversed();
}
