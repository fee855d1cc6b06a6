import { InvalidArgumentError } from "commander";

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90s`, `5m`, `1h30m`, `2d`: milliseconds. */
export function parseDuration(text: string): number {
  const pattern = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/gy;
  let total = 0;
  let end = 0;
  for (const match of text.trim().matchAll(pattern)) {
    total += Number(match[1]) * (unitsMs[match[2] ?? ""] ?? Number.NaN);
    end = match.index + match[0].length;
  }
  if (end === 0 || end !== text.trim().length || !(total > 0))
    throw new InvalidArgumentError(`expected a time span such as 90s, 5m or 1h30m, not "${text}".`);
  return total;
}

/** A time span before `nowMs`, `now`, or a date and time as ISO 8601 has it: ms since 1970. */
export function parsePast(text: string, nowMs: number = Date.now()): number {
  if (text.trim() === "now") return nowMs;
  if (/^\d{4}-\d{2}-\d{2}/.test(text.trim())) {
    const at = Date.parse(text);
    if (!Number.isNaN(at)) return at;
  } else {
    try {
      return nowMs - parseDuration(text);
    } catch {
      // said below, with both forms
    }
  }
  throw new InvalidArgumentError(`expected a time span back from now such as 24h, or a date, not "${text}".`);
}
