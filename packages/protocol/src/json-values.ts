import { isRecord } from "./validation.js";

/** Reads JSON of any form: a value of another type than the expected one reads as absent. */
export type JsonFields = Readonly<Record<string, unknown>>;

export function asObject(value: unknown): JsonFields | undefined {
  return isRecord(value) ? value : undefined;
}

/** The fields of an object; no fields where it is something else. */
export function asRecord(value: unknown): JsonFields {
  return asObject(value) ?? {};
}

export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The objects of an array; its other entries are left out. */
export function asObjects(value: unknown): readonly JsonFields[] {
  return asArray(value).filter(isRecord);
}

export function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Finite numbers only. */
export function asNumber(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** Undefined where the text is not JSON. */
export function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** Without the fields that are undefined, as optional properties may be absent but not undefined. */
export function definedFields<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: Exclude<Fields[Name], undefined>;
  };
}
