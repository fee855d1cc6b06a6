import { combiningMarks, whitespace } from "../regex/character-set.js";
import { normalizeForBert } from "./bert-normalizer.js";
import { createReplacer } from "./replacer.js";
import { toByteAlphabet } from "./byte-alphabet.js";
import { PrecompiledCharsMap } from "./precompiled-chars-map.js";
import type { NormalizerSpecification } from "./specification.js";
import { normalizeUnicode } from "./unicode-normalization.js";

export type Normalize = (text: string) => string;

/** The function that a normaliser of tokenizer.json describes. */
export function createNormalizer(specification: NormalizerSpecification): Normalize {
  switch (specification.kind) {
    case "sequence": {
      const steps = specification.items.map(createNormalizer);
      return (text) => steps.reduce((current, step) => step(current), text);
    }
    case "unicode": {
      const { form } = specification;
      return (text) => normalizeUnicode(text, form);
    }
    case "lowercase":
      // by character, as Rust's `char::to_lowercase`: no special final sigma
      return (text) => text.replaceAll("\u03a3", "\u03c3").toLowerCase();
    case "bert":
      return (text) => normalizeForBert(text, specification);
    case "strip-accents":
      return (text) =>
        isAscii(text)
          ? text
          : Array.from(text)
              .filter((character) => !combiningMarks.has(character.codePointAt(0)!))
              .join("");
    case "strip": {
      const { left, right } = specification;
      return (text) =>
        text.slice(left ? leadingWhitespace(text) : 0, right ? trailingWhitespaceStart(text) : text.length);
    }
    case "prepend":
      return (text) => (text === "" ? text : specification.text + text);
    case "replace":
      return createReplacer(specification.pattern, specification.content);
    case "byte-level":
      return toByteAlphabet;
    case "precompiled": {
      const map = new PrecompiledCharsMap(specification.charsMap);
      return specification.by === "cluster"
        ? (text) => map.normalizeClusters(text)
        : (text) => map.normalizeLongest(text);
    }
  }
}

function isAscii(text: string): boolean {
  return !/[\u0080-\uffff]/.test(text);
}

/** Length of the white space (Unicode White_Space) at the start. */
export function leadingWhitespace(text: string, from = 0): number {
  let index = from;
  while (index < text.length && whitespace.has(text.charCodeAt(index))) index++;
  return index;
}

/** Offset where the white space before `to` starts. */
export function trailingWhitespaceStart(text: string, to = text.length): number {
  let index = to;
  while (index > 0 && whitespace.has(text.charCodeAt(index - 1))) index--;
  return index;
}
