import { sentencesOf } from "../text/sentences.js";

/** Brackets that can hold citations: at most 40 characters, no nesting. */
const bracketed = /[[【]([^[\]【】\n]{1,40})[\]】]/g;
/** Limit of a range in citations such as `[1, 3-5]`; the rest of a longer one is ignored. */
const maxRange = 50;

/** Ids of the sources in a context: in brackets, after the word for one, or as an attribute. */
export function sourceIds(context: string): Set<string> {
  const ids = new Set<string>();
  for (const match of context.matchAll(bracketed)) ids.add(normalised(match[1]!));
  const named =
    /\b(?:document|doc|source|passage|reference|chunk|context)\s{0,3}#?\s{0,3}([\w.-]{1,40})\s{0,3}[:\])]|\bid\s{0,3}=\s{0,3}["']([^"'\n]{1,40})["']/gi;
  for (const match of context.matchAll(named)) ids.add(normalised(match[1] ?? match[2] ?? ""));
  ids.delete("");
  return ids;
}

/** What a text cites, in order. */
export function citationsIn(text: string): string[] {
  return Array.from(text.matchAll(bracketed), ([, inner]) => inner!).flatMap(idsOf);
}

/** Sentences of a text with what each cites; a citation after a full stop belongs to the sentence before it. */
export function citedSentences(
  text: string,
): { readonly sentence: string; readonly ids: readonly string[] }[] {
  const moved = text.replaceAll(/([.!?。])((?:[ \t]{0,3}[[【][^[\]【】\n]{1,40}[\]】]){1,20})/g, "$2$1");
  return sentencesOf(moved)
    .filter((sentence) => /\p{L}/u.test(sentence.replaceAll(bracketed, "")))
    .map((sentence) => ({ sentence, ids: citationsIn(sentence) }));
}

function idsOf(inner: string): string[] {
  return inner.split(/[,;]/).flatMap((part) => {
    const id = normalised(part);
    const range = /^(\d{1,6})\s?[-–]\s?(\d{1,6})$/.exec(id);
    if (range === null) return id === "" ? [] : [id];
    const [from, to] = [Number(range[1]), Number(range[2])];
    if (to < from || to - from >= maxRange) return [id];
    return Array.from({ length: to - from + 1 }, (_, index) => String(from + index));
  });
}

/** `Source 3`, `^3` and `3†` are all 3. */
function normalised(id: string): string {
  return id
    .trim()
    .toLowerCase()
    .replace(/^(?:\^|#|(?:document|doc|source|passage|reference|ref|chunk)\.?\s{1,3}#?)/, "")
    .replace(/†.*$/, "")
    .trim();
}
