/** Marks after which answers of chains of thought stand: GSM8K's, LaTeX's, and plain words. */
const marks = /####|\\boxed\{|\b(?:final answer|answer)(?: is)?\s*[:=]|\banswer is\b/gi;

/** What follows the last mark of a final answer; undefined where there is none. */
export function markedAnswer(text: string): string | undefined {
  let end: number | undefined;
  for (const match of text.matchAll(marks)) end = match.index + match[0].length;
  return end === undefined ? undefined : text.slice(end);
}
