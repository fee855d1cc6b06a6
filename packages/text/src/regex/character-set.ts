import {
  anyCodePoint,
  type CodeSet,
  complement,
  intersect,
  lastCodePoint,
  pairs,
  unite,
} from "./code-points.js";

const pageBits = 12;
const pageSize = 1 << pageBits;
const pageMask = pageSize - 1;

/**
 * A set of Unicode code points, asked in two ways: `has` for matching, remembered in pages of 4096 code points so that it
 * costs one array read after the first look at a code point, and `ranges` for building automata.
 */
export class CharacterSet {
  readonly #predicate: (codePoint: number) => boolean;
  readonly #findRanges: () => CodeSet;
  #ranges: CodeSet | undefined;
  /** Per code point: 0 not asked yet, 1 outside, 2 inside. */
  readonly #pages: (Uint8Array | undefined)[] = [];

  private constructor(predicate: (codePoint: number) => boolean, findRanges?: () => CodeSet) {
    this.#predicate = predicate;
    this.#findRanges = findRanges ?? (() => scan(predicate));
  }

  has(codePoint: number): boolean {
    const page = this.#pages[codePoint >> pageBits];
    if (page !== undefined) {
      const answer = page[codePoint & pageMask]!;
      if (answer !== 0) return answer === 2;
    }
    return this.#ask(codePoint);
  }

  #ask(codePoint: number): boolean {
    const page = (this.#pages[codePoint >> pageBits] ??= new Uint8Array(pageSize));
    const inside = this.#predicate(codePoint);
    page[codePoint & pageMask] = inside ? 2 : 1;
    return inside;
  }

  get ranges(): CodeSet {
    this.#ranges ??= this.#findRanges();
    return this.#ranges;
  }

  static of(ranges: CodeSet): CharacterSet {
    const [first = 0, last = -1] = ranges;
    return new CharacterSet(
      ranges.length <= 2
        ? (codePoint) => codePoint >= first && codePoint <= last
        : (codePoint) => pairs(ranges).some(([from, to]) => codePoint >= from && codePoint <= to),
      () => ranges,
    );
  }

  static union(sets: readonly CharacterSet[]): CharacterSet {
    if (sets.length === 1) return sets[0]!;
    return new CharacterSet(
      (codePoint) => sets.some((set) => set.has(codePoint)),
      () => unite(...sets.map((set) => set.ranges)),
    );
  }

  static intersection(sets: readonly CharacterSet[]): CharacterSet {
    if (sets.length === 1) return sets[0]!;
    return new CharacterSet(
      (codePoint) => sets.every((set) => set.has(codePoint)),
      () => sets.map((set) => set.ranges).reduce(intersect),
    );
  }

  static complement(set: CharacterSet): CharacterSet {
    return new CharacterSet(
      (codePoint) => !set.has(codePoint),
      () => complement(set.ranges),
    );
  }

  /** The set closed under simple case folding. */
  static ignoringCase(set: CharacterSet): CharacterSet {
    return new CharacterSet((codePoint) => caseVariants(codePoint).some((variant) => set.has(variant)));
  }

  /** What a JavaScript `u` regular expression for one code point matches, such as `\p{L}`; one set for each source. */
  static matching(source: string): CharacterSet {
    let set = matched.get(source);
    if (set === undefined) {
      const expression = new RegExp(`^(?:${source})$`, "u");
      set = new CharacterSet((codePoint) => expression.test(String.fromCodePoint(codePoint)));
      matched.set(source, set);
    }
    return set;
  }
}

const matched = new Map<string, CharacterSet>();

function scan(predicate: (codePoint: number) => boolean): CodeSet {
  const ranges: number[] = [];
  let isInside = false;
  for (let codePoint = 0; codePoint <= lastCodePoint + 1; codePoint += 1) {
    const matches = codePoint <= lastCodePoint && predicate(codePoint);
    if (matches === isInside) continue;
    ranges.push(matches ? codePoint : codePoint - 1);
    isInside = matches;
  }
  return ranges;
}

/** Letters whose simple folding reaches another letter without lower/upper mapping there and back. */
const foldedTogether: readonly (readonly number[])[] = [
  [0x73, 0x53, 0x17f],
  [0x6b, 0x4b, 0x212a],
  [0xe5, 0xc5, 0x212b],
];

function caseVariants(codePoint: number): number[] {
  const character = String.fromCodePoint(codePoint);
  const lower = character.toLowerCase();
  const upper = character.toUpperCase();
  const variants = [codePoint];
  for (const text of [lower, upper, upper.toLowerCase(), lower.toUpperCase()]) {
    const variant = text.codePointAt(0)!;
    if (text.length === (variant > 0xffff ? 2 : 1)) variants.push(variant);
  }
  for (const group of foldedTogether) if (group.includes(codePoint)) variants.push(...group);
  return variants;
}

/** Unicode White_Space; unlike JavaScript's `\s` it has U+0085 and lacks U+FEFF. */
export const whitespace = CharacterSet.matching("\\p{White_Space}");
/** Oniguruma's `\w`: Alphabetic, marks, decimal numbers, connector punctuation, and six numbers of Latin-1. */
export const wordCharacters = CharacterSet.matching(
  "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\u00b2\u00b3\u00b9\u00bc-\u00be]",
);
/** Rust's `regex` crate adds Join_Control to `\w`. */
export const rustWordCharacters = CharacterSet.matching(
  "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]",
);
/** Rust's `char::is_numeric`: Nd, Nl and No. */
export const numeric = CharacterSet.matching("\\p{N}");
/** ASCII punctuation and the Unicode P categories, as the Punctuation pre-tokenizer has it. */
export const punctuation = CharacterSet.matching("[\\p{P}$+<=>^`|~]");
export const combiningMarks = CharacterSet.matching("\\p{M}");
export const decimalDigits = CharacterSet.matching("\\p{Nd}");
export const hexDigits = CharacterSet.matching("[0-9a-fA-F]");

export const anything = CharacterSet.of(anyCodePoint);
