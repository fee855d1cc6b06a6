import { isDeepStrictEqual } from "node:util";
import { isRecord } from "@octavo/protocol";

/** An accepted value that makes its argument optional. */
const optional = "";

export function isOptional(accepted: readonly unknown[]): boolean {
  return accepted.includes(optional);
}

/** Strings are compared in lower case without spaces and `,./-_*^`; quotation marks are all alike. */
function standardised(text: string): string {
  return text
    .replaceAll(/[ ,./\-_*^]/g, "")
    .toLowerCase()
    .replaceAll("'", '"');
}

/**
 * Whether one of the accepted values allows this one, by the leaderboard's rules: strings standardised, also in arrays;
 * objects key by key, where each key has a list of accepted values of its own and `""` in it makes the key optional.
 */
export function isAccepted(value: unknown, accepted: readonly unknown[]): boolean {
  // the leaderboard takes an empty array for an optional argument that is left out
  if (Array.isArray(value) && value.length === 0 && isOptional(accepted)) return true;
  return accepted.some((candidate) => allows(candidate, value));
}

function allows(candidate: unknown, value: unknown): boolean {
  if (typeof candidate === "string") {
    return typeof value === "string" && standardised(candidate) === standardised(value);
  }
  if (Array.isArray(candidate)) {
    return (
      Array.isArray(value) &&
      candidate.length === value.length &&
      candidate.every((item, index) => allows(item, value[index]))
    );
  }
  if (isRecord(candidate)) return isRecord(value) && allowsObject(candidate, value);
  return Object.is(candidate, value) || candidate === value;
}

function allowsObject(
  candidate: Readonly<Record<string, unknown>>,
  value: Readonly<Record<string, unknown>>,
): boolean {
  for (const key of Object.keys(value)) {
    if (!Object.hasOwn(candidate, key)) return false;
    const own = candidate[key];
    // a plain value in place of a list is the only one that is accepted
    const isAllowed = (Array.isArray(own) && isAccepted(value[key], own)) || allows(own, value[key]);
    if (!isAllowed) return false;
  }
  return Object.keys(candidate).every((key) => {
    const own = candidate[key];
    return Object.hasOwn(value, key) || (Array.isArray(own) && isOptional(own));
  });
}

/** Equal to an accepted value in every character; lists inside objects are taken as they are or as lists of accepted values. */
export function isExactly(value: unknown, accepted: readonly unknown[]): boolean {
  return accepted.some((candidate) => isSame(candidate, value));
}

function isSame(candidate: unknown, value: unknown): boolean {
  if (isDeepStrictEqual(candidate, value)) return true;
  if (!isRecord(candidate) || !isRecord(value)) return false;
  return (
    Object.keys(value).every((key) => {
      const own = candidate[key];
      return Object.hasOwn(candidate, key) && Array.isArray(own) && isExactly(value[key], own);
    }) &&
    Object.keys(candidate).every((key) => {
      const own = candidate[key];
      return Object.hasOwn(value, key) || (Array.isArray(own) && isOptional(own));
    })
  );
}
