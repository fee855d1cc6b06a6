import { isRecord } from "@octavo/protocol";
import { invalidRecord, type Place, quoted } from "./place.js";

export type FieldRecord = Readonly<Record<string, unknown>>;

interface Field {
  /** As the record spells it. */
  readonly name: string;
  readonly value: unknown;
}

/**
 * Takes the fields of a record one by one, each under any of its accepted names, and reports the ones that were not taken. Null counts
 * as absent.
 */
export class FieldReader {
  readonly place: Place;
  readonly #record: FieldRecord;
  readonly #taken = new Set<string>();

  constructor(record: FieldRecord, place: Place) {
    this.#record = record;
    this.place = place;
  }

  take(...names: readonly string[]): Field | undefined {
    for (const name of names) {
      if (!Object.hasOwn(this.#record, name)) continue;
      this.#taken.add(name);
      const value = this.#record[name];
      if (value !== undefined && value !== null) return { name, value };
    }
    return undefined;
  }

  text(...names: readonly string[]): string | undefined {
    const field = this.take(...names);
    if (field === undefined) return undefined;
    if (typeof field.value === "string") return field.value;
    throw this.fail(field.name, `must be text, but is ${quoted(field.value)}`);
  }

  number(...names: readonly string[]): number | undefined {
    const field = this.take(...names);
    if (field === undefined) return undefined;
    if (typeof field.value === "number" && Number.isFinite(field.value)) return field.value;
    throw this.fail(field.name, `must be a number, but is ${quoted(field.value)}`);
  }

  record(...names: readonly string[]): FieldRecord | undefined {
    const field = this.take(...names);
    if (field === undefined) return undefined;
    if (isRecord(field.value)) return field.value;
    throw this.fail(field.name, `must be an object, but is ${quoted(field.value)}`);
  }

  /** A list of texts, or one text. */
  texts(...names: readonly string[]): readonly string[] | undefined {
    const field = this.take(...names);
    if (field === undefined) return undefined;
    const { name, value } = field;
    if (typeof value === "string") return [value];
    if (!Array.isArray(value)) throw this.fail(name, `must be a list of texts, but is ${quoted(value)}`);
    return value.map((one: unknown, index) => {
      if (typeof one === "string") return one;
      throw this.fail(`${name}[${index}]`, `must be text, but is ${quoted(one)}`);
    });
  }

  /** Fields that were not taken. */
  rest(): FieldRecord {
    return Object.fromEntries(Object.entries(this.#record).filter(([name]) => !this.#taken.has(name)));
  }

  fail(field: string | undefined, problem: string): Error {
    return invalidRecord(this.place, field, problem);
  }
}
