import { partialPattern } from "./partial-pattern.js";
import { aroundCharacters, isConfirmed, mayMatch, type PatternDetector } from "./detect.js";

/** What a scanner looks for. Engines of patterns differ; what they tell is the same. */
export interface StreamPattern {
  readonly detector: PatternDetector;
  /** The first match that begins at `from` or later. */
  find(text: string, from: number): { readonly start: number; readonly end: number } | undefined;
}

/** The first place from `from` on where one of some patterns might still match if the text went on. */
export type FindOpen = (text: string, from: number) => number | undefined;

export interface StreamPatterns {
  readonly patterns: readonly StreamPattern[];
  readonly open: readonly FindOpen[];
}

/** A piece of the scanned text, in order: clean text, or a finding. */
export interface ScannedPiece {
  readonly text: string;
  /** Which pattern found it, as an index; undefined for other text. */
  readonly found: number | undefined;
}

/** Detectors, to be followed in a stream. */
export function streamPatterns(detectors: readonly PatternDetector[]): StreamPatterns {
  const partials = new Map<string, string[]>();
  const patterns = detectors.map((detector): StreamPattern => {
    const { source, flags } = detector.pattern;
    partials.set(flags, [...(partials.get(flags) ?? []), partialPattern(source)]);
    const pattern = new RegExp(source, flags);
    return {
      detector,
      find(text, from) {
        if (!mayMatch(detector, text, from)) return undefined;
        pattern.lastIndex = from;
        const match = pattern.exec(text);
        return match === null ? undefined : { start: match.index, end: match.index + match[0].length };
      },
    };
  });
  const open = [...partials].map(([flags, sources]): FindOpen => {
    const pattern = new RegExp(sources.join("|"), flags);
    return (text, from) => {
      pattern.lastIndex = from;
      return pattern.exec(text)?.index;
    };
  });
  return { patterns, open };
}

interface Match {
  readonly start: number;
  readonly end: number;
  readonly pattern: number;
}

/** Text before what is left that patterns and checks look back at. */
const keptBehind = 64 + aroundCharacters;
const cutAfter = 8192;

/**
 * Looks for patterns in a text that arrives in pieces, and finds what it would find in the whole, however it is cut: text is
 * handed on once nothing that follows can make it part of a finding. Findings do not overlap; the one that begins first counts,
 * of those that begin together the one of the first pattern.
 */
export class StreamScanner {
  readonly #patterns: readonly StreamPattern[];
  readonly #open: readonly FindOpen[];
  /** What is not handed on, and some before it. */
  #text = "";
  /** Up to where it is handed on. */
  #cursor = 0;
  /** What begins before is known. */
  #decided = 0;
  /** Where each pattern goes on. */
  readonly #next: number[];
  /** Known and not handed on, by start, then by pattern. */
  #matches: Match[] = [];

  constructor({ patterns, open }: StreamPatterns) {
    this.#patterns = patterns;
    this.#open = open;
    this.#next = patterns.map(() => 0);
  }

  /** Characters that are held back. */
  get held(): number {
    return this.#text.length - this.#cursor;
  }

  /** The text that is held back. */
  get waiting(): string {
    return this.#text.slice(this.#cursor);
  }

  push(text: string): ScannedPiece[] {
    this.#text += text;
    let open = this.#lastWhole();
    for (const find of this.#open) open = Math.min(open, find(this.#text, this.#decided) ?? open);
    return this.#handOn(Math.max(open, this.#decided), false);
  }

  /** The text is complete, with this as its last piece: hands on the rest. */
  end(last = ""): ScannedPiece[] {
    this.#text += last;
    return this.#handOn(this.#text.length, true);
  }

  /** A character of two halves may be cut between them. */
  #lastWhole(): number {
    const last = this.#text.charCodeAt(this.#text.length - 1);
    return last >= 0xd800 && last <= 0xdbff ? this.#text.length - 1 : this.#text.length;
  }

  #handOn(decided: number, isComplete: boolean): ScannedPiece[] {
    this.#collect(decided);
    this.#decided = decided;
    const pieces: ScannedPiece[] = [];
    let limit = decided;
    let checked = 0;
    for (const { start, end, pattern } of this.#matches) {
      if (start >= this.#cursor) {
        const { detector } = this.#patterns[pattern]!;
        if (detector.confirms !== undefined && !isComplete && end + aroundCharacters > this.#text.length) {
          limit = start;
          break;
        }
        if (isConfirmed(detector, this.#text, start, end)) {
          this.#handOnText(start, pieces);
          pieces.push({ text: this.#text.slice(start, end), found: pattern });
          this.#cursor = end;
        }
      }
      checked++;
    }
    this.#matches = this.#matches.slice(checked);
    this.#handOnText(limit, pieces);
    this.#cut();
    return pieces;
  }

  #handOnText(limit: number, pieces: ScannedPiece[]): void {
    if (limit <= this.#cursor) return;
    pieces.push({ text: this.#text.slice(this.#cursor, limit), found: undefined });
    this.#cursor = limit;
  }

  /** Matches that begin before `decided`. */
  #collect(decided: number): void {
    const found: Match[] = [];
    for (const [pattern, searched] of this.#patterns.entries()) {
      while (this.#next[pattern]! < decided) {
        const match = searched.find(this.#text, this.#next[pattern]!);
        if (match === undefined || match.start >= decided) {
          this.#next[pattern] = decided;
          break;
        }
        found.push({ ...match, pattern });
        this.#next[pattern] = Math.max(match.end, match.start + 1);
      }
    }
    if (found.length === 0) return;
    found.sort((a, b) => a.start - b.start || a.pattern - b.pattern);
    this.#matches.push(...found);
  }

  #cut(): void {
    const gone = Math.min(this.#cursor, this.#decided) - keptBehind;
    if (gone < cutAfter) return;
    this.#text = this.#text.slice(gone);
    this.#cursor -= gone;
    this.#decided -= gone;
    for (const index of this.#next.keys()) this.#next[index]! -= gone;
    this.#matches = this.#matches.map((match) => ({
      ...match,
      start: match.start - gone,
      end: match.end - gone,
    }));
  }
}
