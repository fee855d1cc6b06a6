export type NormalizationForm = "NFC" | "NFD" | "NFKC" | "NFKD";

/** A stretch without a boundary that is longer (UTF-16 units) is normalised here: the platform's time is quadratic in it. */
const longStretch = 256;

/**
 * `text.normalize(form)` in time linear in the text. The platform's own function inserts each combining mark into the run
 * before it, which is quadratic in the run's length.
 */
export function normalizeUnicode(text: string, form: NormalizationForm): string {
  if (text.length <= longStretch) return text.normalize(form);
  let result = "";
  let done = 0;
  let boundary = 0;
  for (let index = 1; index <= text.length; index += 1) {
    if (index < text.length && !startsPiece(text.charCodeAt(index))) continue;
    if (index - boundary > longStretch) {
      result +=
        text.slice(done, boundary).normalize(form) + normalizeStretch(text.slice(boundary, index), form);
      done = index;
    }
    boundary = index;
  }
  return result + text.slice(done).normalize(form);
}

/** Whether nothing before this UTF-16 unit can change what becomes of it: ASCII, Han, Hangul syllables. */
function startsPiece(unit: number): boolean {
  return unit < 0x80 || (unit >= 0x3400 && unit <= 0x9fff) || (unit >= 0xac00 && unit <= 0xd7a3);
}

/** UAX #15: decompose, put marks in canonical order by a stable counting sort, compose. */
function normalizeStretch(text: string, form: NormalizationForm): string {
  const isCompatible = form === "NFKC" || form === "NFKD";
  const decomposed = inCanonicalOrder(decompose(text, isCompatible ? "NFKD" : "NFD"));
  return (form === "NFC" || form === "NFKC" ? compose(decomposed) : decomposed).join("");
}

function decompose(text: string, form: "NFD" | "NFKD"): string[] {
  const known = new Map<string, readonly string[]>();
  const result: string[] = [];
  for (const character of text) {
    let parts = known.get(character);
    if (parts === undefined) {
      parts = Array.from(character.normalize(form));
      known.set(character, parts);
    }
    for (const part of parts) result.push(part);
  }
  return result;
}

function inCanonicalOrder(characters: readonly string[]): string[] {
  const ranks = combiningRanks();
  const result: string[] = [];
  for (let index = 0; index < characters.length;) {
    const character = characters[index]!;
    index += 1;
    if (!ranks.has(character)) {
      result.push(character);
      continue;
    }
    const byRank: (string[] | undefined)[] = [];
    (byRank[ranks.get(character)!] ??= []).push(character);
    for (; index < characters.length; index += 1) {
      const rank = ranks.get(characters[index]!);
      if (rank === undefined) break;
      (byRank[rank] ??= []).push(characters[index]!);
    }
    for (const marks of byRank) for (const mark of marks ?? []) result.push(mark);
  }
  return result;
}

/** Joins each character to the last starter where the two have a composite and nothing between them is in the way. */
function compose(characters: readonly string[]): string[] {
  const ranks = combiningRanks();
  const composites = new Map<string, string | undefined>();
  const result: string[] = [];
  let starterAt = -1;
  /** Rank of the last character kept after the starter; -1 for none, 0 for a starter. */
  let last = -1;
  for (const character of characters) {
    const rank = ranks.get(character) ?? 0;
    if (starterAt >= 0 && last < rank) {
      const pair = result[starterAt]! + character;
      if (!composites.has(pair)) composites.set(pair, singleCharacter(pair.normalize("NFC")));
      const composite = composites.get(pair);
      if (composite !== undefined) {
        result[starterAt] = composite;
        continue;
      }
    }
    if (rank === 0) {
      starterAt = result.length;
      last = -1;
    } else last = rank;
    result.push(character);
  }
  return result;
}

function singleCharacter(text: string): string | undefined {
  return text.length === String.fromCodePoint(text.codePointAt(0)!).length ? text : undefined;
}

/** Combining marks that move stand in the first two planes. */
const firstMark = 0x300;
const lastMarkPlane = 0x1ffff;
let knownRanks: ReadonlyMap<string, number> | undefined;

/**
 * Marks that are moved into canonical order, with ranks from 1 in the order of their combining classes: found out from how
 * the platform orders two of them.
 */
function combiningRanks(): ReadonlyMap<string, number> {
  if (knownRanks !== undefined) return knownRanks;
  const [lowest, highest] = ["\u0334", "\u0345"];
  const swaps = (first: string, second: string): boolean => {
    const pair = first + second;
    return pair.normalize("NFD") !== pair;
  };
  const marks: string[] = [];
  for (let code = firstMark; code <= lastMarkPlane; code += 1) {
    const mark = String.fromCodePoint(code);
    if (!/\p{M}/u.test(mark) || mark.normalize("NFD") !== mark) continue;
    if (swaps(mark, lowest) || swaps(highest, mark)) marks.push(mark);
  }
  const order = (a: string, b: string): number => (swaps(a, b) ? 1 : swaps(b, a) ? -1 : 0);
  const ranks = new Map<string, number>();
  let rank = 0;
  let before: string | undefined;
  for (const mark of marks.toSorted(order)) {
    if (before === undefined || order(before, mark) !== 0) rank += 1;
    ranks.set(mark, rank);
    before = mark;
  }
  return (knownRanks = ranks);
}
