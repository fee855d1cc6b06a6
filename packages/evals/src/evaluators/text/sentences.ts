const segmenter = new Intl.Segmenter("en", { granularity: "sentence" });

/** Sentences of a text by Unicode's rules (UAX 29), which know scripts without spaces; a line's end ends one too. */
export function sentencesOf(text: string): string[] {
  return text
    .split(/\r\n|[\n\r\u2028\u2029]/)
    .flatMap((line) => Array.from(segmenter.segment(line), ({ segment }) => segment.trim()))
    .filter((sentence) => /[\p{L}\p{N}]/u.test(sentence));
}
