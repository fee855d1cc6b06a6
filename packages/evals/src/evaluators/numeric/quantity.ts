import { unitOf } from "./units.js";

export interface Quantity {
  readonly value: number;
  /** As it is written; undefined where no known unit follows. */
  readonly unit: string | undefined;
}

/** Which mark parts whole numbers from fractions: the other one, spaces and apostrophes group thousands. */
export type DecimalMark = "." | ",";

/** A number begins where no other does, so that `7-8` is two numbers and `x4` none. */
const numberPatterns: Readonly<Record<DecimalMark, RegExp>> = {
  ".": numberPattern("\\.", ","),
  ",": numberPattern(",", "\\."),
};

function numberPattern(decimal: string, group: string): RegExp {
  const grouped = `\\d{1,3}(?:[${group}'\u2019\u00a0\u202f\u2009_ ]\\d{3})+(?!\\d)`;
  const whole = `(?:${grouped}|\\d+)(?:${decimal}\\d+)?|${decimal}\\d+`;
  return new RegExp(
    `(?<![\\p{L}\\p{N}_.,])([-+\u2212]?)([$€£¥]?)(${whole})(?:[eE]([-+]?\\d{1,3}))?(?:[ \u00a0\u202f]?([\\p{L}%°µμ]{1,12}))?`,
    "gu",
  );
}

/** The numbers in a text, in order, with the units that follow them. */
export function quantitiesIn(text: string, decimal: DecimalMark): Quantity[] {
  return Array.from(text.matchAll(numberPatterns[decimal]), (match) => {
    const [, sign, , digits = "", exponent, word] = match;
    const plain = digits.replaceAll(decimal === "." ? /[^\d.]/g : /[^\d,]/g, "").replace(",", ".");
    const value = Number(exponent === undefined ? plain : `${plain}e${exponent}`);
    const isNegative = sign === "-" || sign === "\u2212";
    return {
      value: isNegative ? -value : value,
      unit: word !== undefined && unitOf(word) !== undefined ? word : undefined,
    };
  });
}
