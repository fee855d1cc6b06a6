import type { z } from "zod";
import { effectOf, type FieldEffect, wireFormOf } from "./fields.js";
import { isRecord } from "./validation.js";

/** Most fields that are named. */
const mostNamed = 16;

/**
 * Paths of fields that a schema did not know: those of a value that its parsed form has dropped, at any depth
 * (`tools[0].colour`). At most 16.
 */
export function unknownFields(value: unknown, parsed: unknown): readonly string[] {
  const found: string[] = [];
  addDropped(value, parsed, "", found);
  return found;
}

function addDropped(value: unknown, parsed: unknown, path: string, found: string[]): void {
  if (value === parsed || found.length >= mostNamed) return;
  if (Array.isArray(value) && Array.isArray(parsed)) {
    const items: readonly unknown[] = value;
    for (const [index, item] of items.entries()) addDropped(item, parsed[index], `${path}[${index}]`, found);
    return;
  }
  // a part that was translated into one of another type has other fields
  if (!isRecord(value) || !isRecord(parsed) || value["type"] !== parsed["type"]) return;
  for (const [name, field] of Object.entries(value)) {
    const at = path === "" ? name : `${path}.${name}`;
    if (Object.hasOwn(parsed, name)) addDropped(field, parsed[name], at, found);
    else if (found.length < mostNamed && field !== null) found.push(at);
  }
}

/** Paths of the fields of a request schema that are refused, or have no effect; entries of lists as `tools[].name`. */
export function fieldsWithEffect(schema: z.ZodType, effect: FieldEffect): readonly string[] {
  const found = new Set<string>();
  addFields(schema, effect, "", found);
  return [...found];
}

function addFields(schema: z.ZodType, effect: FieldEffect, path: string, found: Set<string>): void {
  if (effectOf(schema) === effect) found.add(path);
  const form = wireFormOf(schema);
  if (form?.items !== undefined) addFields(form.items, effect, `${path}[]`, found);
  for (const option of form?.anyOf ?? []) addFields(option, effect, path, found);
  const def: Inner & z.core.$ZodTypeDef = schema.def;
  for (const inner of [def.innerType, def.in, ...(def.options ?? [])])
    if (inner !== undefined) addFields(inner, effect, path, found);
  for (const [name, field] of Object.entries(def.shape ?? {}))
    addFields(field, effect, path === "" ? name : `${path}.${name}`, found);
}

/** Where zod's types keep the types that they are made of. */
interface Inner {
  readonly innerType?: z.ZodType;
  readonly in?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  readonly shape?: Readonly<Record<string, z.ZodType>>;
}
