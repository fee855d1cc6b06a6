import { templateError } from "./template-error.js";
import {
  Callable,
  Float,
  isTrue,
  Undefined,
  plain,
  typeName,
  type NamedValues,
  type Value,
} from "./values.js";

/** A function that templates call by this name. */
export function callable(name: string, call: (args: Arguments) => Value): Callable {
  return new Callable(name, (positional, named) => call(new Arguments(name, positional, named)));
}

/** The arguments of one call, looked up by place or name as Python does. */
export class Arguments {
  readonly #callee: string;

  constructor(
    callee: string,
    readonly positional: readonly Value[],
    readonly named: NamedValues,
  ) {
    this.#callee = callee;
  }

  /** Refuses arguments beyond the named parameters. */
  allow(...names: readonly string[]): this {
    if (this.positional.length > names.length) {
      throw templateError(
        `${this.#callee}() takes at most ${names.length} arguments, but got ${this.positional.length}`,
      );
    }
    for (const name of this.named.keys()) {
      if (!names.includes(name))
        throw templateError(`${this.#callee}() got an unexpected keyword argument '${name}'`);
    }
    return this;
  }

  get(index: number, name: string): Value | undefined {
    const value = this.positional[index];
    return value === undefined ? this.named.get(name) : value;
  }

  need(index: number, name: string): Value {
    const value = this.get(index, name);
    if (value === undefined) throw templateError(`${this.#callee}() needs the argument '${name}'`);
    return value;
  }

  string(index: number, name: string, fallback?: string): string {
    const given = this.get(index, name);
    if (given === undefined && fallback !== undefined) return fallback;
    const value = given === undefined ? given : plain(given);
    if (typeof value === "string") return value;
    throw this.#wrong(name, "a string", value);
  }

  /** undefined for a missing argument and for None. */
  optionalString(index: number, name: string): string | undefined {
    const value = this.get(index, name);
    if (value === undefined || value === null) return undefined;
    return this.string(index, name);
  }

  integer(index: number, name: string, fallback?: number): number {
    const value = this.get(index, name);
    if (value === undefined && fallback !== undefined) return fallback;
    if (typeof value === "number") return value;
    if (typeof value === "boolean") return Number(value);
    throw this.#wrong(name, "an integer", value);
  }

  /** Whether a value is true, as Python's functions take flags. */
  boolean(index: number, name: string, fallback: boolean): boolean {
    const value = this.get(index, name);
    return value === undefined ? fallback : isTrue(value);
  }

  #wrong(name: string, wanted: string, value: Value | undefined): ReturnType<typeof templateError> {
    const found =
      value === undefined
        ? "missing"
        : value instanceof Undefined
          ? "undefined"
          : value instanceof Float
            ? "a float"
            : typeName(value);
    return templateError(`${this.#callee}(): '${name}' must be ${wanted}, but is ${found}`);
  }
}
