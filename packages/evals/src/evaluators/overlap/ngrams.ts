/** Between tokens of an n-gram's key: no token holds it, since tokenisers split at white space. */
const separator = " ";

/** How often each n-gram of an order comes. */
export function countNgrams(tokens: readonly string[], order: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (let start = 0; start + order <= tokens.length; start++) {
    const key = tokens.slice(start, start + order).join(separator);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** As `countNgrams` of the text's code points; a key is the code points one after the other. */
export function countCharacterNgrams(text: string, order: number): Map<string, number> {
  // where each code point starts, and where the last one ends
  const starts: number[] = [];
  for (let at = 0; at < text.length; at += text.codePointAt(at)! > 0xffff ? 2 : 1) starts.push(at);
  starts.push(text.length);
  const counts = new Map<string, number>();
  for (let first = 0; first + order < starts.length; first++) {
    const key = text.slice(starts[first], starts[first + order]);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** The sum of the lesser counts of what both have. */
export function overlapOf(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const [key, count] of a) sum += Math.min(count, b.get(key) ?? 0);
  return sum;
}

export function totalOf(counts: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const count of counts.values()) sum += count;
  return sum;
}

/** What Python's `str.split()` splits at, so that tokens are those of reference implementations. */
// oxlint-disable-next-line no-control-regex -- Python splits at U+001C to U+001F too
const pythonSpace = /[\t-\r\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;

export function splitAtSpace(text: string): string[] {
  return text.split(pythonSpace).filter((part) => part !== "");
}
