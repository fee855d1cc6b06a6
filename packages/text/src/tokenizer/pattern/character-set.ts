const pageBits = 12;
const pageSize = 1 << pageBits;
const pageMask = pageSize - 1;

/**
 * A set of Unicode code points given by a predicate. Answers are remembered in pages of 4096 code points,
 * so that `has` costs one array read after the first look at a code point.
 */
export class CharacterSet {
  readonly #predicate: (codePoint: number) => boolean;
  /** Per code point: 0 not asked yet, 1 outside, 2 inside. */
  readonly #pages: (Uint8Array | undefined)[] = [];

  constructor(predicate: (codePoint: number) => boolean) {
    this.#predicate = predicate;
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

  static range(first: number, last: number): CharacterSet {
    return new CharacterSet((codePoint) => codePoint >= first && codePoint <= last);
  }

  static union(sets: readonly CharacterSet[]): CharacterSet {
    if (sets.length === 1) return sets[0]!;
    return new CharacterSet((codePoint) => sets.some((set) => set.has(codePoint)));
  }

  static intersection(sets: readonly CharacterSet[]): CharacterSet {
    if (sets.length === 1) return sets[0]!;
    return new CharacterSet((codePoint) => sets.every((set) => set.has(codePoint)));
  }

  static complement(set: CharacterSet): CharacterSet {
    return new CharacterSet((codePoint) => !set.has(codePoint));
  }

  /** The set closed under simple case folding. */
  static ignoringCase(set: CharacterSet): CharacterSet {
    return new CharacterSet((codePoint) => caseVariants(codePoint).some((variant) => set.has(variant)));
  }

  /** What a JavaScript `u` regular expression for one code point matches, such as `\p{L}`. */
  static matching(source: string): CharacterSet {
    const expression = new RegExp(`^(?:${source})$`, "u");
    return new CharacterSet((codePoint) => expression.test(String.fromCodePoint(codePoint)));
  }
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

const named = new Map<string, CharacterSet>();

/** A set shared by every pattern that names it. */
function shared(source: string): CharacterSet {
  let set = named.get(source);
  if (set === undefined) {
    set = CharacterSet.matching(source);
    named.set(source, set);
  }
  return set;
}

/** Unicode White_Space; unlike JavaScript's `\s` it has U+0085 and lacks U+FEFF. */
export const whitespace = shared("\\p{White_Space}");
const posixWordCharacters = shared("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]");
/** Oniguruma's `\w`: Alphabetic, marks, decimal numbers, connector punctuation, and six numbers of Latin-1. */
export const wordCharacters = shared("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\u00b2\u00b3\u00b9\u00bc-\u00be]");
/** Rust's `regex` crate adds Join_Control to `\w`. */
export const rustWordCharacters = shared("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]");
/** Rust's `char::is_numeric`: Nd, Nl and No. */
export const numeric = shared("\\p{N}");
const posixPunctuation = shared("[\\p{P}\\p{S}]");
/** ASCII punctuation and the Unicode P categories, as the Punctuation pre-tokenizer has it. */
export const punctuation = shared("[\\p{P}$+<=>^`|~]");
export const combiningMarks = shared("\\p{M}");
export const decimalDigits = shared("\\p{Nd}");
export const hexDigits = shared("[0-9a-fA-F]");

/** Names of Oniguruma's that JavaScript lacks or means differently. */
const onigurumaNames = new Map<string, CharacterSet>([
  ["alnum", shared("[\\p{Alphabetic}\\p{Nd}]")],
  ["alpha", shared("\\p{Alphabetic}")],
  ["any", CharacterSet.range(0, 0x10ffff)],
  ["ascii", CharacterSet.range(0, 0x7f)],
  ["blank", shared("[\\p{Zs}\\t]")],
  ["cntrl", shared("\\p{Cc}")],
  ["digit", decimalDigits],
  ["graph", shared("[^\\p{White_Space}\\p{Cc}\\p{Cn}\\p{Cs}]")],
  ["lower", shared("\\p{Lowercase}")],
  ["print", shared("(?:[^\\p{White_Space}\\p{Cc}\\p{Cn}\\p{Cs}]|\\p{Zs})")],
  ["punct", shared("\\p{P}")],
  ["space", whitespace],
  ["upper", shared("\\p{Uppercase}")],
  ["word", wordCharacters],
  ["xdigit", hexDigits],
]);

/** The set that `[:name:]` stands for inside brackets, undefined for an unknown name. */
export function posixSet(name: string): CharacterSet | undefined {
  if (name === "word") return posixWordCharacters;
  if (name === "punct") return posixPunctuation;
  return onigurumaNames.get(name);
}

/** The set a `\p{name}` stands for, undefined for an unknown name. */
export function namedSet(name: string): CharacterSet | undefined {
  const plain = name.replace(/[\s_-]/g, "").toLowerCase();
  const known = onigurumaNames.get(plain);
  if (known !== undefined) return known;
  if (!/^[A-Za-z][A-Za-z_ =-]*$/.test(name)) return undefined;
  const canonical = name.trim().replace(/[\s-]/g, "_");
  const capitalized = canonical
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())
    .join("_");
  for (const spelled of new Set([canonical, capitalized])) {
    for (const source of [`\\p{${spelled}}`, `\\p{Script=${spelled}}`]) {
      try {
        return shared(source);
      } catch {
        // not a name in this position
      }
    }
  }
  return undefined;
}
