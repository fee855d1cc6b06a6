/**
 * Something that a pattern finds and a check confirms. Patterns are global and bounded on every side, so that a scan takes
 * time linear in the text: no quantifier without an upper limit where a match can begin anywhere.
 */
export interface PatternDetector {
  /** Kind of the finding, in snake_case. */
  readonly kind: string;
  readonly pattern: RegExp;
  /** What every match has in it or close by: texts without it are not searched. */
  readonly needs?: string | RegExp;
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
export const aroundCharacters = 48;

/** Whether a text may have a match that begins at `from` or later; looking for what matches need is faster than looking for them. */
export function mayMatch({ needs }: PatternDetector, text: string, from: number): boolean {
  if (needs === undefined) return true;
  return typeof needs === "string" ? text.includes(needs, from) : needs.test(text);
}

/** Whether the check of a detector agrees that these characters of a text are one. */
export function isConfirmed(
  { confirms }: PatternDetector,
  text: string,
  start: number,
  end: number,
): boolean {
  if (confirms === undefined) return true;
  const around = text.slice(Math.max(0, start - aroundCharacters), end + aroundCharacters);
  return confirms(text.slice(start, end), around);
}

/** What the detectors find, first detectors first; what overlaps an earlier finding is the same thing. */
export function detect(
  text: string,
  detectors: readonly PatternDetector[],
  maxFindings = Number.POSITIVE_INFINITY,
): readonly Finding[] {
  const findings: Finding[] = [];
  const isTaken = new Uint8Array(text.length);
  for (const detector of detectors) {
    if (!mayMatch(detector, text, 0)) continue;
    for (const match of text.matchAll(detector.pattern)) {
      const start = match.index;
      const end = start + match[0].length;
      if (isTaken.subarray(start, end).includes(1)) continue;
      if (!isConfirmed(detector, text, start, end)) continue;
      isTaken.fill(1, start, end);
      findings.push({ kind: detector.kind, start, end });
      if (findings.length >= maxFindings) return findings;
    }
  }
  return findings;
}
