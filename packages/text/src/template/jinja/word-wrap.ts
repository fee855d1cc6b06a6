import type { Arguments } from "./arguments.js";
import { boundedText } from "./printing.js";
import { templateError } from "./template-error.js";
import { splitLines } from "./white-space.js";

const letter = /^[\p{L}\p{M}_]$/u;
const wordCharacter = /^[\p{L}\p{N}_]$/u;
const beforeDashes = /^[\p{L}\p{N}_!"'&.,?]$/u;

/** Words and white space in turn, as characters; words also end where a hyphen or a run of dashes lets them break. */
function chunksOf(line: string, breaksHyphens: boolean): string[][] {
  return (line.match(/[\t\n\v\f\r ]+|[^\t\n\v\f\r ]+/g) ?? []).flatMap((run) => {
    const characters = Array.from(run);
    if (!breaksHyphens || !run.includes("-")) return [characters];
    const ends = characters.flatMap((_, at) => (at > 0 && breaksAt(characters, at) ? [at] : []));
    return [0, ...ends].map((start, index) => characters.slice(start, ends[index]));
  });
}

function breaksAt(word: readonly string[], at: number): boolean {
  const is = (pattern: RegExp, index: number): boolean => pattern.test(word[index] ?? "");
  const isDash = (index: number): boolean => word[index] === "-";
  // behind the hyphen of a compound: letters on both sides of it
  if (isDash(at - 1) && is(letter, at)) {
    const before = is(letter, at - 2) && (is(letter, at - 3) || (isDash(at - 3) && is(letter, at - 4)));
    if (before && (is(letter, at + 1) || (isDash(at + 1) && is(letter, at + 2)))) return true;
  }
  // on either side of dashes between words
  const isInside = isDash(at - 1) && isDash(at);
  if (isInside || !(isDash(at - 1) || isDash(at))) return false;
  let [start, end] = [at, at];
  while (isDash(start - 1)) start--;
  while (isDash(end)) end++;
  return end - start >= 2 && is(beforeDashes, start - 1) && is(wordCharacter, end);
}

/** Breaks lines that are longer than the width, each for itself, at white space, hyphens and, at need, within words. */
export function wordWrap(text: string, args: Arguments): string {
  const width = args.integer(0, "width", 79);
  if (width <= 0) throw templateError(`wordwrap: the width must be above 0, but is ${width}`);
  const breaksWords = args.boolean(1, "break_long_words", true);
  const newline = args.optionalString(2, "wrapstring") ?? "\n";
  const breaksHyphens = args.boolean(3, "break_on_hyphens", true);
  const lines = splitLines(text).map(({ line }) => {
    const chunks = chunksOf(line, breaksHyphens);
    return wrapLine(chunks, width, breaksWords, breaksHyphens).join(newline);
  });
  return boundedText(lines.join(newline));
}

/** Greedy lines of chunks, which are given as characters; white space at a break is dropped. */
function wrapLine(
  chunks: readonly (readonly string[])[],
  width: number,
  breaksWords: boolean,
  breaksHyphens: boolean,
): string[] {
  const isSpace = (text: string | undefined): boolean => text !== undefined && /^\s+$/.test(text);
  const lines: string[] = [];
  let at = 0;
  // what of the current chunk is on lines already
  let from = 0;
  while (at < chunks.length) {
    if (lines.length > 0 && isSpace(chunks[at]![0])) {
      at++;
      from = 0;
    }
    const line: string[] = [];
    let length = 0;
    while (at < chunks.length && length + chunks[at]!.length - from <= width) {
      length += chunks[at]!.length - from;
      line.push(chunks[at]!.slice(from).join(""));
      at++;
      from = 0;
    }
    const long = chunks[at];
    if (long !== undefined && long.length - from > width) {
      const room = long.slice(from, from + width - length);
      if (breaksWords) {
        const taken = room.slice(0, breaksHyphens ? breakAt(room) : undefined);
        line.push(taken.join(""));
        from += taken.length;
      } else if (line.length === 0) {
        line.push(long.join(""));
        at++;
      }
    }
    if (isSpace(line.at(-1))) line.pop();
    if (line.length > 0) lines.push(line.join(""));
  }
  return lines;
}

/** Behind the last hyphen of a word's beginning, if there is one after something else; its end otherwise. */
function breakAt(beginning: readonly string[]): number {
  const hyphen = beginning.lastIndexOf("-");
  const isInside = hyphen > 0 && beginning.slice(0, hyphen).some((character) => character !== "-");
  return isInside ? hyphen + 1 : beginning.length;
}
