import { TestRandom } from "../../testing/random.js";
import { buildVocabulary, specialMark, type GrammarVocabulary } from "../automaton/vocabulary.js";

const consonants = "bcdfghjklmnprstvwz";
const vowels = "aeiouy";
const scripts: readonly (readonly [number, number])[] = [
  [0x4e00, 0x9f00],
  [0x3040, 0x30f0],
  [0x430, 0x44f],
  [0x5d0, 0x5ea],
  [0xac00, 0xd700],
  [0x1f300, 0x1f5ff],
];
const marks = [
  '"',
  '",',
  '":',
  '": ',
  '", "',
  '":"',
  '"}',
  "},",
  "}}",
  "]}",
  "],",
  "[",
  "[{",
  '{"',
  "{\n",
  "\n\n",
  "\\n",
  "\\u",
  '\\"',
  "\t",
  "--",
  "==",
  "();",
  '="',
  "'s",
  "</",
  "/>",
  ", ",
  ". ",
  ": ",
];

/**
 * A vocabulary in the shape of the large byte-level ones: the 256 bytes, numbers, runs of spaces, words with and
 * without a space before them, words of other scripts (some cut within a character), and JSON's and code's punctuation
 * joined to words. The last token is special.
 */
export function syntheticVocabulary(size: number, seed = 1): GrammarVocabulary {
  const random = new TestRandom(seed);
  const seen = new Set<string>();
  const tokens: Buffer[] = [];
  const add = (bytes: Buffer): void => {
    const key = bytes.toString("latin1");
    if (seen.has(key) || tokens.length >= size - 1) return;
    seen.add(key);
    tokens.push(bytes);
  };
  for (let byte = 0; byte < 256; byte += 1) add(Buffer.of(byte));
  for (let value = 0; value < Math.min(1000, size / 8); value += 1) add(Buffer.from(String(value)));
  for (let length = 2; length <= 64; length += 1) {
    add(Buffer.from(" ".repeat(length)));
    add(Buffer.from(`\n${" ".repeat(length)}`));
  }
  for (const mark of marks) add(Buffer.from(mark));
  while (tokens.length < size - 1) {
    const kind = random.next();
    if (kind < 0.62) add(Buffer.from((random.next() < 0.6 ? " " : "") + word(random)));
    else if (kind < 0.72) add(Buffer.from(capital(word(random))));
    else if (kind < 0.92) add(foreign(random));
    else if (kind < 0.96) add(Buffer.from(word(random) + marks[random.below(marks.length)]!));
    else add(Buffer.from(marks[random.below(marks.length)]! + word(random)));
  }
  const special = Buffer.concat([Buffer.of(specialMark), Buffer.from("<|end|>")]);
  const all = [...tokens, special];
  const starts = new Int32Array(all.length + 1);
  for (const [id, token] of all.entries()) starts[id + 1] = starts[id]! + token.length;
  return buildVocabulary(new Uint8Array(Buffer.concat(all)), starts);
}

function word(random: TestRandom): string {
  let text = "";
  for (let syllables = 1 + random.below(4); syllables > 0; syllables -= 1) {
    text += consonants[random.below(consonants.length)]! + vowels[random.below(vowels.length)]!;
    if (random.next() < 0.4) text += consonants[random.below(consonants.length)]!;
  }
  return text;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function foreign(random: TestRandom): Buffer {
  const [first, last] = scripts[random.below(scripts.length)]!;
  const characters = Array.from({ length: 1 + random.below(4) }, () =>
    String.fromCodePoint(first + random.below(last - first)),
  );
  const bytes = Buffer.from(characters.join(""));
  return random.next() < 0.1 ? bytes.subarray(0, -1) : bytes;
}
