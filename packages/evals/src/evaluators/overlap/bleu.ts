import { countNgrams, splitAtSpace } from "./ngrams.js";

const maxOrder = 4;

/** Sums over segments, of which BLEU is a function: of each order the clipped matches and all n-grams, and the lengths. */
interface BleuCounts {
  readonly matched: readonly number[];
  readonly total: readonly number[];
  readonly outputLength: number;
  readonly referenceLength: number;
}

/** The tokeniser `13a` of mteval-v13a, as sacreBLEU has it. */
export function tokenize13a(text: string): string[] {
  let line = text.replaceAll("<skipped>", "").replaceAll("-\n", "").replaceAll("\n", " ");
  line = line
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">");
  line = ` ${line} `
    .replaceAll(/([{-~[-` -&(-+:-@/])/gu, " $1 ")
    .replaceAll(/([^0-9])([.,])/gu, "$1 $2 ")
    .replaceAll(/([.,])([^0-9])/gu, " $1 $2")
    .replaceAll(/([0-9])(-)/gu, "$1 $2 ");
  return splitAtSpace(line);
}

/** One segment against its references; the reference length is that nearest to the output's, the shorter of two as near. */
export function bleuCounts(output: string, references: readonly string[], ignoreCase = false): BleuCounts {
  const tokenized = (text: string): string[] => tokenize13a(ignoreCase ? text.toLowerCase() : text);
  const tokens = tokenized(output);
  const others = references.map(tokenized);
  const matched: number[] = [];
  const total: number[] = [];
  for (let order = 1; order <= maxOrder; order++) {
    const most = new Map<string, number>();
    for (const reference of others) {
      for (const [key, count] of countNgrams(reference, order)) {
        most.set(key, Math.max(count, most.get(key) ?? 0));
      }
    }
    let hits = 0;
    for (const [key, count] of countNgrams(tokens, order)) hits += Math.min(count, most.get(key) ?? 0);
    matched.push(hits);
    total.push(Math.max(0, tokens.length - order + 1));
  }
  const lengths = others
    .map((reference) => reference.length)
    .toSorted((a, b) => Math.abs(a - tokens.length) - Math.abs(b - tokens.length) || a - b);
  return { matched, total, outputLength: tokens.length, referenceLength: lengths[0] ?? 0 };
}

function sumBleuCounts(counts: readonly BleuCounts[]): BleuCounts {
  const zeros = Array.from({ length: maxOrder }, () => 0);
  return counts.reduce<BleuCounts>(
    (all, own) => ({
      matched: all.matched.map((value, order) => value + own.matched[order]!),
      total: all.total.map((value, order) => value + own.total[order]!),
      outputLength: all.outputLength + own.outputLength,
      referenceLength: all.referenceLength + own.referenceLength,
    }),
    { matched: zeros, total: zeros, outputLength: 0, referenceLength: 0 },
  );
}

/**
 * BLEU (Papineni et al., 2002), from 0 to 1, as sacreBLEU computes it (Post, 2018): orders 1 to 4, brevity penalty, orders
 * without a match smoothed exponentially. `effectiveOrder` leaves out orders for which the output is too short, as is done
 * for single sentences.
 */
export function bleu(counts: BleuCounts, effectiveOrder: boolean): number {
  const { matched, total, outputLength, referenceLength } = counts;
  if (!matched.some((count) => count > 0)) return 0;
  let halvings = 1;
  let logs = 0;
  let orders = 0;
  for (let order = 0; order < maxOrder; order++) {
    if (total[order] === 0) break;
    if (matched[order] === 0) halvings *= 2;
    logs += Math.log(matched[order] === 0 ? 1 / (halvings * total[order]!) : matched[order]! / total[order]!);
    orders++;
  }
  if (!effectiveOrder && orders < maxOrder) return 0;
  const brevity = outputLength < referenceLength ? Math.exp(1 - referenceLength / outputLength) : 1;
  return Math.min(1, brevity * Math.exp(logs / orders));
}

/** BLEU of a whole corpus: not the mean of its sentences'. */
export function corpusBleu(
  segments: readonly { readonly output: string; readonly references: readonly string[] }[],
): number {
  return bleu(sumBleuCounts(segments.map(({ output, references }) => bleuCounts(output, references))), false);
}
