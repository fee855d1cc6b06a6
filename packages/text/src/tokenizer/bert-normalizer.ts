import { CharacterSet } from "../regex/character-set.js";
import { normalizeUnicode } from "./unicode-normalization.js";

/** What BERT's normaliser does beside lower case. Source: Hugging Face's tokenizers, normalizers/bert.rs. */
export interface BertNormalization {
  readonly cleanText: boolean;
  readonly separateIdeographs: boolean;
  readonly stripAccents: boolean;
}

const dropped = CharacterSet.matching("[\\p{Cc}\\p{Cf}\\p{Co}\\uFFFD]");
const spaces = CharacterSet.matching("\\p{White_Space}");
const accents = CharacterSet.matching("\\p{Mn}");
/** Its blocks of ideographs; the gap in the sixth is the source's. */
const ideographs = CharacterSet.of([
  0x3400, 0x4dbf, 0x4e00, 0x9fff, 0xf900, 0xfaff, 0x2_0000, 0x2_a6df, 0x2_a700, 0x2_b81f, 0x2_b920, 0x2_ceaf,
  0x2_f800, 0x2_fa1f,
]);

export function normalizeForBert(text: string, steps: BertNormalization): string {
  let result = text;
  if (steps.cleanText) result = mapCharacters(result, cleaned);
  if (steps.separateIdeographs)
    result = mapCharacters(result, (character, code) =>
      ideographs.has(code) ? ` ${character} ` : character,
    );
  if (steps.stripAccents)
    result = mapCharacters(normalizeUnicode(result, "NFD"), (character, code) =>
      accents.has(code) ? "" : character,
    );
  return result;
}

function cleaned(character: string, code: number): string {
  if (code === 0x09 || code === 0x0a || code === 0x0d) return " ";
  if (dropped.has(code)) return "";
  return spaces.has(code) ? " " : character;
}

/** Leaves runs of printable ASCII as they are: no step changes them. */
function mapCharacters(text: string, map: (character: string, code: number) => string): string {
  return text.replaceAll(/[^\x20-\x7e]/gu, (character) => map(character, character.codePointAt(0) ?? 0));
}
