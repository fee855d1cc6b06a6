import { isRecord, OctavoError } from "@octavo/protocol";

/** Far above any published model. */
const defaultBound = 2 ** 24;

/** Typed look-ups in a config that nobody vouches for; null counts as absent, as transformers takes it. */
export class ConfigFields {
  readonly path: string;
  readonly #record: Readonly<Record<string, unknown>>;

  constructor(path: string, json: unknown) {
    this.path = path;
    if (!isRecord(json)) throw this.invalid("is not a JSON object");
    this.#record = json;
  }

  string(name: string): string | undefined {
    return this.#typed(name, "a string", (value) => typeof value === "string");
  }

  boolean(name: string): boolean | undefined {
    return this.#typed(name, "true or false", (value) => typeof value === "boolean");
  }

  /** A whole number from 0 to `most`. */
  count(name: string, most = defaultBound): number | undefined {
    return this.#typed(
      name,
      `a whole number from 0 to ${most}`,
      (value): value is number =>
        typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= most,
    );
  }

  /** A whole number from 1 to `most`. */
  size(name: string, most = defaultBound): number | undefined {
    const value = this.count(name, most);
    if (value === 0) throw this.invalid(`has ${name} 0`);
    return value;
  }

  need(name: string, most = defaultBound): number {
    const value = this.size(name, most);
    if (value === undefined) throw this.invalid(`has no ${name}`);
    return value;
  }

  invalid(problem: string): OctavoError {
    return new OctavoError("artifact_invalid", `${this.path}: ${problem}`);
  }

  #typed<T>(name: string, expected: string, accepts: (value: unknown) => value is T): T | undefined {
    const value = Object.hasOwn(this.#record, name) ? this.#record[name] : undefined;
    if (value === undefined || value === null) return undefined;
    if (accepts(value)) return value;
    throw this.invalid(`has ${name} ${JSON.stringify(value).slice(0, 80)}; ${expected} is needed`);
  }
}
