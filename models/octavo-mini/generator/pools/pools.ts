import type { CaseRandom } from "../random.js";
import { drawInSplit, inSplit, splitOf } from "../split.js";
import type { Split } from "../split.js";
import * as names from "./names.js";
import { vocabularyPieces } from "./vocabulary.js";

const onsets = [
  "b",
  "br",
  "c",
  "ch",
  "d",
  "dr",
  "f",
  "fl",
  "g",
  "gr",
  "h",
  "j",
  "k",
  "kl",
  "l",
  "m",
  "n",
  "p",
  "pr",
  "qu",
  "r",
  "s",
  "sh",
  "sk",
  "st",
  "t",
  "th",
  "tr",
  "v",
  "w",
  "x",
  "y",
  "z",
];
const vowels = ["a", "e", "i", "o", "u", "a", "e", "i", "o", "u", "ai", "ea", "ee", "oo", "ou"];
const codas = ["", "", "", "", "b", "d", "g", "k", "l", "m", "n", "nd", "p", "r", "rk", "s", "st", "t", "x"];
const frequentLetters = "eeeeeaaaaiiiooonnnrrrtttsssllldduucchhmmppggbbyffvwkkzjqx";
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const alphanumerics = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const anyCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/#@+=";

/** The values of one split: closed lists cut by split, and open-ended makers of fresh values. */
export class Pools {
  readonly #split: Split;
  readonly firstNames: readonly string[];
  readonly lastNames: readonly string[];
  readonly cities: readonly string[];
  readonly streetWords: readonly string[];
  readonly productAdjectives: readonly string[];
  readonly productNouns: readonly string[];
  readonly nouns: readonly string[];
  readonly #spelling: readonly string[];
  readonly #pieces: readonly string[];
  readonly #capitalPieces: readonly string[];

  constructor(split: Split) {
    this.#split = split;
    this.firstNames = inSplit(names.firstNames, split);
    this.lastNames = inSplit(names.lastNames, split);
    this.cities = inSplit(names.cities, split);
    this.streetWords = inSplit(names.streetWords, split);
    this.productAdjectives = inSplit(names.productAdjectives, split);
    this.productNouns = inSplit(names.productNouns, split);
    this.nouns = inSplit(names.commonNouns, split);
    this.#spelling = [
      ...this.nouns,
      ...this.productNouns,
      ...this.firstNames,
      ...this.lastNames,
      ...this.cities,
    ].map((name) => name.toLowerCase());
    const pieces = split === "train" ? vocabularyPieces() : [];
    this.#pieces = pieces.filter((piece) => /^[a-z]+$/.test(piece));
    this.#capitalPieces = pieces.filter((piece) => /^[A-Z][a-z]*$/.test(piece));
  }

  #draw(draw: () => string): string {
    return drawInSplit(this.#split, draw);
  }

  /**
   * A made-up lower-case word: mostly of syllables, but also real words spliced
   * and loose letters, so that no sequence of letters looks like a word's end.
   * Training words are often pieces of the vocabulary, each as likely as the
   * next: a piece that no text needs is one that the model never learns to copy.
   */
  word(random: CaseRandom): string {
    if (this.#pieces.length > 0 && random.chance(0.4)) return this.#ofPieces(this.#pieces, random);
    return this.#draw(() => {
      const form = random.unit();
      if (form < 0.55) return syllables(random);
      if (form < 0.85) return splice(random.pick(this.#spelling), random.pick(this.#spelling), random);
      return characters(random, frequentLetters, random.int(3, 8));
    });
  }

  #ofPieces(beginnings: readonly string[], random: CaseRandom): string {
    return this.#draw(() => {
      let text = random.pick(beginnings);
      for (let more = random.pick([0, 1, 1, 1, 2]); more > 0; more--) text += random.pick(this.#pieces);
      return text;
    });
  }

  properWord(random: CaseRandom): string {
    if (this.#capitalPieces.length > 0 && random.chance(0.4))
      return this.#ofPieces(this.#capitalPieces, random);
    const word = this.word(random);
    return word.charAt(0).toUpperCase() + word.slice(1);
  }

  firstName(random: CaseRandom): string {
    return random.chance(0.6) ? random.pick(this.firstNames) : this.properWord(random);
  }

  lastName(random: CaseRandom): string {
    return random.chance(0.6) ? random.pick(this.lastNames) : this.properWord(random);
  }

  person(random: CaseRandom): string {
    return `${this.firstName(random)} ${this.lastName(random)}`;
  }

  city(random: CaseRandom): string {
    return random.chance(0.6) ? random.pick(this.cities) : this.properWord(random);
  }

  street(random: CaseRandom): string {
    const name = random.chance(0.6) ? random.pick(this.streetWords) : this.properWord(random);
    return `${name} ${random.pick(["Street", "Road", "Lane", "Avenue"])}`;
  }

  company(random: CaseRandom): string {
    return `${this.properWord(random)} ${random.pick(["Labs", "Works", "Group", "Foods", "Systems", "Partners"])}`;
  }

  product(random: CaseRandom): string {
    const adjective = random.chance(0.6) ? random.pick(this.productAdjectives) : this.properWord(random);
    return `${adjective} ${random.pick(this.productNouns)}`;
  }

  /** A noun phrase such as a title: two or three words, common or made up. */
  phrase(random: CaseRandom): string {
    const count = random.int(2, 3);
    const parts: string[] = [];
    for (let i = 0; i < count; i++)
      parts.push(random.chance(0.5) ? random.pick(this.nouns) : this.word(random));
    return parts.join(" ");
  }

  email(random: CaseRandom): string {
    const user = random.chance(0.5) ? random.pick(this.firstNames).toLowerCase() : this.word(random);
    return `${user}${random.chance(0.4) ? random.int(1, 99) : ""}@${this.word(random)}.${random.pick(["com", "org", "net", "io"])}`;
  }

  /** An identifier such as `QX-4821`, `7KD2P` or `ord_58213`. */
  code(random: CaseRandom): string {
    return this.#draw(() => {
      const form = random.int(0, 3);
      if (form === 0)
        return `${characters(random, letters, random.int(1, 3))}-${digits(random, random.int(3, 5))}`;
      if (form === 1) return characters(random, alphanumerics, random.int(5, 8));
      if (form === 2) return `${this.word(random)}_${digits(random, random.int(2, 5))}`;
      return `${characters(random, letters, 2)}${digits(random, random.int(3, 6))}`;
    });
  }

  /** A run of printable characters with no pattern at all. */
  noise(random: CaseRandom): string {
    return this.#draw(() => characters(random, anyCharacters, random.int(4, 12)));
  }

  digits(random: CaseRandom, length: number): string {
    return length < 4 ? digits(random, length) : this.#draw(() => digits(random, length));
  }

  phone(random: CaseRandom): string {
    return `+${random.int(1, 98)} ${digits(random, 3)} ${this.digits(random, 4)}`;
  }

  date(random: CaseRandom): string {
    return this.#draw(() => `${random.int(1970, 2039)}-${two(random.int(1, 12))}-${two(random.int(1, 28))}`);
  }

  time(random: CaseRandom): string {
    return `${two(random.int(0, 23))}:${two(random.pick([0, 5, 10, 15, 20, 30, 40, 45, 50, 55]))}`;
  }

  integer(random: CaseRandom): number {
    return random.int(1, 10 ** random.int(1, 5));
  }

  decimal(random: CaseRandom): number {
    return Math.round(random.unit() * 10 ** random.int(2, 5)) / 100 + 0.01 * random.int(1, 9);
  }

  price(random: CaseRandom): number {
    return Number(this.decimal(random).toFixed(2));
  }

  /** Any single value as text, for keys, haystacks and copying. */
  value(random: CaseRandom): string {
    switch (random.int(0, 8)) {
      case 0:
      case 1:
        return this.word(random);
      case 2:
        return this.code(random);
      case 3:
        return this.digits(random, random.int(1, 7));
      case 4:
        return random.pick(this.nouns);
      case 5:
        return this.person(random);
      case 6:
        return this.date(random);
      case 7:
        return this.city(random);
      default:
        return this.phrase(random);
    }
  }

  /** `count` different values from a maker. */
  distinct(count: number, draw: () => string): string[] {
    const seen = new Set<string>();
    for (let attempt = 0; seen.size < count && attempt < count * 100; attempt++) seen.add(draw());
    return [...seen];
  }

  /** Whether a combination of templates is this split's to use. */
  owns(combination: string): boolean {
    return splitOf(combination) === this.#split;
  }
}

function syllables(random: CaseRandom): string {
  let text = "";
  const count = random.weighted([
    [1, 1],
    [4, 2],
    [2, 3],
  ] as const);
  for (let i = 0; i < count; i++) text += random.pick(onsets) + random.pick(vowels);
  return text + random.pick(codas);
}

/** The beginning of one word on the end of another. */
function splice(first: string, second: string, random: CaseRandom): string {
  return first.slice(0, random.int(1, first.length - 1)) + second.slice(random.int(1, second.length - 1));
}

function characters(random: CaseRandom, alphabet: string, length: number): string {
  let text = "";
  for (let i = 0; i < length; i++) text += alphabet.charAt(random.int(0, alphabet.length - 1));
  return text;
}

function digits(random: CaseRandom, length: number): string {
  return String(random.int(1, 9)) + characters(random, "0123456789", length - 1);
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
