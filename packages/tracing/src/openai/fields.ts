import { isRecord } from "@octavo/protocol";

/** Reads of bodies that may hold anything: what is not of the expected type is not there. */
export type JsonFields = Readonly<Record<string, unknown>>;

export function asFields(value: unknown): JsonFields | undefined {
  return isRecord(value) ? value : undefined;
}

export function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function asNumber(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The objects of a list; everything else in it is left out. */
export function asObjects(value: unknown): readonly JsonFields[] {
  return asList(value).filter(isRecord);
}

/** Without the entries that are undefined. */
export function withoutUndefined<T extends object>(entries: {
  readonly [K in keyof T]: T[K] | undefined;
}): T {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as T;
}
