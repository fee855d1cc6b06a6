const segmenter = new Intl.Segmenter("en", { granularity: "sentence" });

/** Sentences of a text by Unicode's rules (UAX 29), which know scripts without spaces; a line's end ends one too. */
export function sentencesOf(text: string): string[] {
  return text
    .split(/[\n\r\u2028\u2029]/)
    .filter(hasWords)
    .flatMap((line) => Array.from(segmenter.segment(line), ({ segment }) => segment.trim()))
    .filter(hasWords);
}

function hasWords(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text);
}
