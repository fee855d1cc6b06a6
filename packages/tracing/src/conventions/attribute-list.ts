import type { Attributes, AttributeValue } from "../span/llm-span.js";

/** Collects attributes; what is undefined or an empty list is left out. */
export class AttributeList {
  readonly #values: Record<string, AttributeValue> = {};

  set(name: string, value: AttributeValue | undefined): this {
    if (value === undefined || (Array.isArray(value) && value.length === 0)) return this;
    this.#values[name] = value;
    return this;
  }

  /** Milliseconds as seconds. */
  setSeconds(name: string, milliseconds: number | undefined): this {
    return this.set(name, milliseconds === undefined ? undefined : milliseconds / 1000);
  }

  setJson(name: string, value: unknown): this {
    return this.set(name, value === undefined ? undefined : jsonText(value));
  }

  build(): Attributes {
    return this.#values;
  }
}

/** JSON of a caller's value; what JSON cannot hold (cycles, bigints) becomes its description. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

/** JSON that a model wrote, as a value where it is whole. */
export function parsedOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
