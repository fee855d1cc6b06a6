import { OctavoError } from "@octavo/protocol";
import { countCharacterNgrams, countNgrams, overlapOf, splitAtSpace, totalOf } from "./ngrams.js";

const characterOrders = 6;
/** Recall counts this many times as much as precision. */
const beta = 2;
/** Stands for a precision or recall that has nothing to be computed from. */
const epsilon = 1e-16;
/** Limit on one text; the rest is not counted, since each character is in six n-grams. */
const maxCharacters = 200_000;
const punctuation = new Set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~");

/** N-grams of one order: in the output, in the reference, and in both. */
type OrderCounts = readonly [output: number, reference: number, matched: number];

/** Counts for each order, characters first. */
type ChrfCounts = readonly OrderCounts[];

/** Words with a leading or trailing mark apart from them. */
function words(text: string): string[] {
  return splitAtSpace(text).flatMap((word) => {
    const own = Array.from(word);
    if (own.length === 1) return [word];
    const last = own.at(-1)!;
    if (punctuation.has(last)) return [own.slice(0, -1).join(""), last];
    return punctuation.has(own[0]!) ? [own[0]!, own.slice(1).join("")] : [word];
  });
}

function ngramsOf(text: string, wordOrders: number): ReadonlyMap<string, number>[] {
  const [letters, parts] = [splitAtSpace(text).join(""), wordOrders === 0 ? [] : words(text)];
  return [
    ...Array.from({ length: characterOrders }, (_, index) => countCharacterNgrams(letters, index + 1)),
    ...Array.from({ length: wordOrders }, (_, index) => countNgrams(parts, index + 1)),
  ];
}

/**
 * One segment against the reference that it is nearest to.
 * @throws OctavoError `payload_too_large` for texts of more than 200,000 characters
 */
export function chrfCounts(output: string, references: readonly string[], wordOrders: number): ChrfCounts {
  const longest = Math.max(output.length, ...references.map((reference) => reference.length));
  if (longest > maxCharacters) {
    throw new OctavoError(
      "payload_too_large",
      `a text of ${longest} characters is too long for chrF, which counts up to ${maxCharacters}`,
    );
  }
  const own = ngramsOf(output, wordOrders);
  let best: ChrfCounts = own.map((): OrderCounts => [0, 0, 0]);
  let bestScore = -1;
  for (const reference of references) {
    const counts = ngramsOf(reference, wordOrders).map((theirs, order): OrderCounts => {
      const mine = own[order]!;
      // an order that the reference lacks says nothing about the output
      return [theirs.size === 0 ? 0 : totalOf(mine), totalOf(theirs), overlapOf(mine, theirs)];
    });
    const score = chrf(counts);
    if (score > bestScore) [best, bestScore] = [counts, score];
  }
  return best;
}

function sumChrfCounts(counts: readonly ChrfCounts[]): ChrfCounts {
  return counts.reduce((all, own) =>
    all.map(([output, reference, matched], order): OrderCounts => {
      const other = own[order]!;
      return [output + other[0], reference + other[1], matched + other[2]];
    }),
  );
}

/**
 * chrF (Popović, 2015), or chrF++ where word orders are among the counts (Popović, 2017), from 0 to 1, as sacreBLEU computes
 * it: F-score of mean precision and mean recall over the orders that both sides have.
 */
export function chrf(counts: ChrfCounts): number {
  let precision = 0;
  let recall = 0;
  let orders = 0;
  for (const [output, reference, matched] of counts) {
    if (output === 0 || reference === 0) continue;
    precision += matched / output;
    recall += matched / reference;
    orders++;
  }
  if (orders === 0 || precision + recall <= epsilon) return 0;
  const [p, r] = [precision / orders, recall / orders];
  return ((1 + beta ** 2) * p * r) / (beta ** 2 * p + r);
}

/** chrF of a whole corpus, or chrF++ with two word orders: not the mean of its sentences'. */
export function corpusChrf(
  segments: readonly { readonly output: string; readonly references: readonly string[] }[],
  wordOrders = 0,
): number {
  if (segments.length === 0) return 0;
  return chrf(
    sumChrfCounts(segments.map(({ output, references }) => chrfCounts(output, references, wordOrders))),
  );
}
