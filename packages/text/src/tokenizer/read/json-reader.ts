import { OctavoError } from "@octavo/protocol/errors";

/** A value inside tokenizer.json with the path it was reached by; every mismatch throws `artifact_invalid`. */
export class JsonReader {
  readonly value: unknown;
  readonly path: string;

  constructor(value: unknown, path: string) {
    this.value = value;
    this.path = path;
  }

  invalid(expected: string): OctavoError {
    const found =
      this.value === null ? "null" : Array.isArray(this.value) ? "an array" : `a ${typeof this.value}`;
    return this.fail(`must be ${expected}, but is ${this.value === undefined ? "missing" : found}`);
  }

  /** A value that breaks the format's rules, or with `artifact_unsupported` one that is not implemented. */
  fail(what: string, code: "artifact_invalid" | "artifact_unsupported" = "artifact_invalid"): OctavoError {
    return new OctavoError(code, `${this.path} ${what}.`);
  }

  get isAbsent(): boolean {
    return this.value === undefined || this.value === null;
  }

  get(key: string): JsonReader {
    const object = this.object();
    return new JsonReader(Object.hasOwn(object, key) ? object[key] : undefined, `${this.path}.${key}`);
  }

  object(): Record<string, unknown> {
    if (typeof this.value !== "object" || this.value === null || Array.isArray(this.value))
      throw this.invalid("an object");
    return this.value as Record<string, unknown>;
  }

  array(): readonly unknown[] {
    if (!Array.isArray(this.value)) throw this.invalid("an array");
    return this.value as readonly unknown[];
  }

  items(): JsonReader[] {
    return this.array().map((item, index) => new JsonReader(item, `${this.path}[${index}]`));
  }

  string(fallback?: string): string {
    if (this.isAbsent && fallback !== undefined) return fallback;
    if (typeof this.value !== "string") throw this.invalid("a string");
    return this.value;
  }

  boolean(fallback?: boolean): boolean {
    if (this.isAbsent && fallback !== undefined) return fallback;
    if (typeof this.value !== "boolean") throw this.invalid("true or false");
    return this.value;
  }

  /** An integer within [0, limit). */
  index(limit: number): number {
    if (
      typeof this.value !== "number" ||
      !Number.isInteger(this.value) ||
      this.value < 0 ||
      this.value >= limit
    ) {
      throw this.invalid(`an integer from 0 to ${limit - 1}`);
    }
    return this.value;
  }

  /** One of the listed strings. */
  oneOf<Choice extends string>(choices: readonly Choice[], fallback?: Choice): Choice {
    const text = this.string(fallback);
    const choice = choices.find((candidate) => candidate === text);
    if (choice === undefined)
      throw this.fail(
        `is ${JSON.stringify(text)}; supported are ${choices.join(", ")}`,
        "artifact_unsupported",
      );
    return choice;
  }
}
