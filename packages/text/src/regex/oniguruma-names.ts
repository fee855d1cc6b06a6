import {
  anything,
  CharacterSet,
  decimalDigits,
  hexDigits,
  whitespace,
  wordCharacters,
} from "./character-set.js";

/** Names of Oniguruma's that JavaScript lacks or means differently. */
const onigurumaNames = new Map<string, CharacterSet>([
  ["alnum", CharacterSet.matching("[\\p{Alphabetic}\\p{Nd}]")],
  ["alpha", CharacterSet.matching("\\p{Alphabetic}")],
  ["any", anything],
  ["ascii", CharacterSet.of([0, 0x7f])],
  ["blank", CharacterSet.matching("[\\p{Zs}\\t]")],
  ["cntrl", CharacterSet.matching("\\p{Cc}")],
  ["digit", decimalDigits],
  ["graph", CharacterSet.matching("[^\\p{White_Space}\\p{Cc}\\p{Cn}\\p{Cs}]")],
  ["lower", CharacterSet.matching("\\p{Lowercase}")],
  ["print", CharacterSet.matching("(?:[^\\p{White_Space}\\p{Cc}\\p{Cn}\\p{Cs}]|\\p{Zs})")],
  ["punct", CharacterSet.matching("\\p{P}")],
  ["space", whitespace],
  ["upper", CharacterSet.matching("\\p{Uppercase}")],
  ["word", wordCharacters],
  ["xdigit", hexDigits],
]);

/** The set that `[:name:]` stands for inside brackets, undefined for an unknown name. */
export function posixSet(name: string): CharacterSet | undefined {
  if (name === "word") return CharacterSet.matching("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]");
  if (name === "punct") return CharacterSet.matching("[\\p{P}\\p{S}]");
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
        return CharacterSet.matching(source);
      } catch {
        // not a name in this position
      }
    }
  }
  return undefined;
}
