/**
 * Something that a pattern finds and a check confirms. Patterns are global and bounded on every side, so that a scan takes
 * time linear in the text: no quantifier without an upper limit where a match can begin anywhere.
 */
export interface PatternDetector {
  /** Of the kind of thing, in snake_case. */
  readonly kind: string;
  readonly pattern: RegExp;
  /** Whether a match is one, such as by its checksum; it is given the text around it as well. */
  readonly confirms?: (match: string, around: string) => boolean;
}

/** Where a detector matched, in UTF-16 units. */
interface Finding {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
}

/** Text on either side of a match that a check may read. */
const aroundCharacters = 48;

/** What the detectors find, first detectors first; what overlaps an earlier finding is the same thing. */
export function detect(
  text: string,
  detectors: readonly PatternDetector[],
  maxFindings = Number.POSITIVE_INFINITY,
): readonly Finding[] {
  const findings: Finding[] = [];
  const isTaken = new Uint8Array(text.length);
  for (const { kind, pattern, confirms } of detectors) {
    for (const match of text.matchAll(pattern)) {
      const start = match.index;
      const end = start + match[0].length;
      if (isTaken.subarray(start, end).includes(1)) continue;
      const around = text.slice(Math.max(0, start - aroundCharacters), end + aroundCharacters);
      if (confirms !== undefined && !confirms(match[0], around)) continue;
      isTaken.fill(1, start, end);
      findings.push({ kind, start, end });
      if (findings.length >= maxFindings) return findings;
    }
  }
  return findings;
}
