import { Random } from "@octavo/statistics";
import type { RulerTask } from "./ruler-task.js";
import { drawLetters, drawWords, numWords } from "./words.js";

const numCommon = 10;
/** Below this length RULER's thirty repeats leave no room for other words. */
const shortTokens = 4096;

/** RULER's common words: ten of them thirty times each, among others that come three times, after a short example. */
export const commonWords: RulerTask = {
  name: "cwe",
  answerTokens: 120,
  match: "all",
  needs: "nothing",
  draw({ random, lengthTokens }) {
    const isShort = lengthTokens < shortTokens;
    const repeats = isShort ? { common: 10, other: 1 } : { common: 30, other: 3 };
    const exampleRandom = random.fork(1);
    const exampleWords = drawWords(exampleRandom, numCommon + 10);
    const example = wordList(exampleRandom, exampleWords, 10, { common: 4, other: 1 });
    const shown = `${example}\n${exampleWords.slice(0, numCommon).join(" ")}\n\n`;
    const shuffleSeed = random.integer(0, 2 ** 31);
    const pool = drawUnalike(random, Math.min(numWords, Math.ceil(lengthTokens / repeats.other)));
    return {
      references: pool.slice(0, numCommon),
      minSize: 1,
      maxSize: pool.length - numCommon,
      prompt: (size) => shown + wordList(new Random(shuffleSeed), pool, size, repeats),
    };
  },
};

/** Words of which the common ones are no part of any other: an answer is searched for them. */
function drawUnalike(random: Random, numOthers: number): string[] {
  const words = drawWords(random, numOthers + 2 * numCommon);
  const common: string[] = [];
  for (const word of words) {
    if (common.length === numCommon) break;
    if (!words.some((other) => other !== word && other.includes(word))) common.push(word);
  }
  const chosen = new Set(common);
  return [...common, ...words.filter((word) => !chosen.has(word))].slice(0, numOthers + numCommon);
}

function wordList(
  random: Random,
  words: readonly string[],
  numOthers: number,
  repeats: { readonly common: number; readonly other: number },
): string {
  const list = words
    .slice(0, numCommon + numOthers)
    .flatMap((word, index) => Array<string>(index < numCommon ? repeats.common : repeats.other).fill(word));
  const numbered = random.shuffle(list).map((word, index) => `${index + 1}. ${word}`);
  return [
    "Below is a numbered list in which some words come more often than others. Find those that come most often.",
    "",
    numbered.join(" "),
    "",
    `Which ${numCommon} words come most often in the list? Name them and nothing else.`,
  ].join("\n");
}

const zipfExponent = 2;
const wordLength = 6;
/** From here on the words of ranks two to four are apart from each other and from the rest. */
const minCodedWords = 100;
const vocabularySize = 400;
const noise = "...";

/** RULER's frequent words: invented words by a zeta distribution of exponent 2, the most frequent of which is dots. */
export const frequentWords: RulerTask = {
  name: "fwe",
  answerTokens: 50,
  match: "all",
  needs: "nothing",
  draw({ random }) {
    const vocabulary = new Set([noise]);
    while (vocabulary.size < vocabularySize) {
      vocabulary.add(drawLetters(random, "abcdefghijklmnopqrstuvwxyz", wordLength));
    }
    const ranked = [...vocabulary];
    const shuffleSeed = random.integer(0, 2 ** 31);
    return {
      references: ranked.slice(1, 4),
      minSize: minCodedWords,
      maxSize: Infinity,
      prompt(size) {
        const words = ranked.flatMap((word, index) => Array<string>(zipfCount(index + 1, size)).fill(word));
        return [
          "Below is text in an invented language. Watch how often each of its words comes; dots are no word.",
          "",
          new Random(shuffleSeed).shuffle(words).join(" "),
          "",
          "Which three words come most often in the text? Name them and nothing else.",
        ].join("\n");
      },
    };
  },
};

/** How often the word of a rank comes among `size` words; Riemann's zeta(2) is pi^2 / 6. */
function zipfCount(rank: number, size: number): number {
  return Math.floor(size / (rank ** zipfExponent * (Math.PI ** 2 / 6)));
}
