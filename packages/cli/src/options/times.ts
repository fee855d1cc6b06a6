import { OctavoError } from "@octavo/protocol/errors";
import type { OptionType } from "@octavo/protocol/options";

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
  if (end > 0 && end === text.trim().length && total > 0) return total;
  throw invalid(`expected a time span such as 90s, 5m or 1h30m, not "${text}"`);
}

/** A time span before `nowMs`, `now`, or an ISO 8601 date and time: ms since 1970. */
export function parsePast(text: string, nowMs: number = Date.now()): number {
  if (text.trim() === "now") return nowMs;
  if (/^\d{4}-\d{2}-\d{2}/.test(text.trim())) {
    const at = Date.parse(text);
    if (!Number.isNaN(at)) return at;
  } else {
    try {
      return nowMs - parseDuration(text);
    } catch {
      // Refused below, where both forms are named.
    }
  }
  throw invalid(`expected a time span back from now such as 24h, or a date, not "${text}"`);
}

function time(parse: (text: string) => number): OptionType<number> {
  return { expects: "a time in ms", accepts: Number.isFinite, parse, show: String };
}

export const duration = time(parseDuration);
export const past = time((text) => parsePast(text));

function invalid(message: string): OctavoError {
  return new OctavoError("invalid_option", message);
}
