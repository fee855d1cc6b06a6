import type { Value } from "./values.js";

/** Variables by name, innermost scope first. */
export class Scope {
  readonly #variables = new Map<string, Value>();
  readonly #parent: Scope | undefined;

  constructor(parent: Scope | undefined, variables: Iterable<readonly [string, Value]> = []) {
    this.#parent = parent;
    for (const [name, value] of variables) this.#variables.set(name, value);
  }

  get(name: string): Value | undefined {
    const value = this.#variables.get(name);
    return value === undefined ? this.#parent?.get(name) : value;
  }

  set(name: string, value: Value): void {
    this.#variables.set(name, value);
  }
}
