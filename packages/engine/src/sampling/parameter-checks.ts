import { OctavoError } from "@octavo/protocol/errors";

/** A value that callers or JSON may leave out. */
export type Maybe<Value> = Value | null | undefined;

/** A check of a number; `expected` completes the sentence "<param> must be ...". */
export interface NumberRule {
  readonly param: string;
  readonly expected: string;
  readonly isInteger?: boolean;
  readonly accepts: (value: number) => boolean;
}

export function invalidParameter(param: string, expected: string, value: unknown): OctavoError {
  return new OctavoError("invalid_request", `${param} must be ${expected}, not ${describe(value)}.`, {
    param,
  });
}

/** `value` checked, or `fallback` when it is absent. */
export function numberOr<Fallback>(
  value: Maybe<number>,
  fallback: Fallback,
  rule: NumberRule,
): number | Fallback {
  if (value === null || value === undefined) return fallback;
  const isNumber = rule.isInteger === true ? Number.isSafeInteger(value) : Number.isFinite(value);
  if (!isNumber || !rule.accepts(value)) throw invalidParameter(rule.param, rule.expected, value);
  return value;
}

export function booleanOr(value: Maybe<boolean>, fallback: boolean, param: string): boolean {
  if (value === null || value === undefined) return fallback;
  if (typeof value !== "boolean") throw invalidParameter(param, "true or false", value);
  return value;
}

export interface StringListBounds {
  readonly maxItems: number;
  /** Total length of all strings, in UTF-16 units. */
  readonly maxLength: number;
}

/** A list of strings, none empty and all well-formed Unicode. */
export function stringList(
  value: Maybe<string | readonly string[]>,
  param: string,
  { maxItems, maxLength }: StringListBounds,
): readonly string[] {
  if (value === null || value === undefined) return [];
  const items: readonly string[] = typeof value === "string" ? [value] : value;
  checkList(items, param, maxItems);
  for (const [index, item] of items.entries()) {
    const name = typeof value === "string" ? param : `${param}[${index}]`;
    if (typeof item !== "string" || item === "" || item.length > maxStringLength) {
      throw invalidParameter(name, `a string of 1 to ${maxStringLength} characters`, item);
    }
    if (/\p{Surrogate}/u.test(item)) throw invalidParameter(name, "well-formed Unicode", item);
  }
  const length = items.reduce((sum, item) => sum + item.length, 0);
  if (length > maxLength) {
    throw new OctavoError(
      "invalid_request",
      `${param} may have at most ${maxLength} characters in all, not ${length}.`,
      { param },
    );
  }
  return items;
}

/** A list of token ids of the vocabulary; undefined when absent. */
export function tokenIdList(
  value: Maybe<readonly number[]>,
  param: string,
  vocabSize: number,
  maxItems: number,
): readonly number[] | undefined {
  if (value === null || value === undefined) return undefined;
  checkList(value, param, maxItems);
  for (const [index, token] of value.entries()) checkTokenId(token, `${param}[${index}]`, vocabSize);
  return value;
}

export function checkTokenId(token: number, param: string, vocabSize: number): void {
  if (Number.isSafeInteger(token) && token >= 0 && token < vocabSize) return;
  throw invalidParameter(param, `a token id of the vocabulary (0 to ${vocabSize - 1})`, token);
}

const maxStringLength = 1024;

function checkList(value: readonly unknown[], param: string, maxItems: number): void {
  if (!Array.isArray(value)) throw invalidParameter(param, "a list", value);
  if (value.length > maxItems) {
    throw new OctavoError(
      "invalid_request",
      `${param} may have at most ${maxItems} entries, not ${value.length}.`,
      { param },
    );
  }
}

/** A value for an error message, in bounded length. */
function describe(value: unknown): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "bigint") return value.toString().slice(0, 40);
  if (typeof value === "string")
    return value.length > 40 ? `a string of ${value.length} characters` : JSON.stringify(value);
  if (Array.isArray(value)) return "a list";
  return value === null || typeof value === "boolean" ? String(value) : `a value of type ${typeof value}`;
}
