import { InvalidArgumentError } from "commander";

/** What timers can wait in seconds, rounded down to whole days. */
export const longestSeconds = 24 * 86_400;

const binaryUnits: Readonly<Record<string, number>> = {
  "": 1,
  k: 2 ** 10,
  m: 2 ** 20,
  g: 2 ** 30,
  t: 2 ** 40,
};

/** "4GiB", "512MiB", "2g" or plain bytes; units are powers of 1024. */
export function parseBytes(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text.trim());
  const unit = binaryUnits[(match?.[2] ?? "").toLowerCase()];
  if (!match || unit === undefined)
    throw new InvalidArgumentError(`expected a size such as 4GiB or 512MiB, not "${text}".`);
  return Math.floor(Number(match[1]) * unit);
}

/** A whole number of at least `least`; vLLM's shorthands "4k" (1000s) and "4K" (1024s) are understood. */
export function parseCount(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const match = /^(\d+)([kKmM]?)$/.exec(text.trim());
    const factor = { k: 1000, K: 1024, m: 1_000_000, M: 2 ** 20 }[match?.[2] ?? ""] ?? 1;
    const value = match ? Number(match[1]) * factor : Number.NaN;
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
      throw new InvalidArgumentError(`expected a whole number ${range}, not "${text}".`);
    }
    return value;
  };
}

/** A finite number within [low, high]. */
export function parseNumber(low: number, high = Number.POSITIVE_INFINITY): (text: string) => number {
  return (text) => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (!Number.isFinite(value) || value < low || value > high) {
      const range = high === Number.POSITIVE_INFINITY ? `of at least ${low}` : `from ${low} to ${high}`;
      throw new InvalidArgumentError(`expected a number ${range}, not "${text}".`);
    }
    return value;
  };
}

/** Collects a flag given several times, or once with several values after it. */
export function collect(value: string, earlier: readonly string[] | undefined): string[] {
  return [...(earlier ?? []), value];
}

/** `name=value` given once or several times. */
export function parseHeader(
  text: string,
  earlier: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> {
  const at = text.indexOf("=");
  if (at <= 0) throw new InvalidArgumentError(`expected NAME=VALUE, not "${text}".`);
  return { ...earlier, [text.slice(0, at).trim()]: text.slice(at + 1).trim() };
}

/** A JSON object, for flags such as --extra-body. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new InvalidArgumentError("expected a JSON object.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new InvalidArgumentError("expected a JSON object.");
  }
  return { ...value };
}

/** `name=number` given once or several times. */
export function parseThreshold(
  text: string,
  earlier: Readonly<Record<string, number>> | undefined,
): Readonly<Record<string, number>> {
  const [, name, value] = /^([A-Za-z]\w*)=(.+)$/.exec(text.trim()) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError(`expected NAME=NUMBER, not "${text}".`);
  return { ...earlier, [name]: parseNumber(Number.NEGATIVE_INFINITY)(value) };
}
