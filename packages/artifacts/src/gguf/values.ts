import { artifactInvalid } from "@octavo/text/files/artifact-file";
import type { GgufMetadata } from "./file.js";

/** Typed look-ups under one prefix of a GGUF file's metadata, with errors that name the full key. */
export class GgufValues {
  readonly path: string;
  readonly #metadata: GgufMetadata;
  readonly #prefix: string;

  constructor(path: string, metadata: GgufMetadata, prefix: string) {
    this.path = path;
    this.#metadata = metadata;
    this.#prefix = prefix;
  }

  /** The same file's values under another prefix. */
  under(prefix: string): GgufValues {
    return new GgufValues(this.path, this.#metadata, prefix);
  }

  string(key: string): string | undefined {
    return this.#typed(key, "string");
  }

  boolean(key: string): boolean | undefined {
    return this.#typed(key, "boolean");
  }

  number(key: string): number | undefined {
    return this.#typed(key, "number");
  }

  needNumber(key: string): number {
    return this.number(key) ?? this.#missing(key);
  }

  /** A number, or an array of one number per layer whose entries are all equal, but for zeros of layers that have none. */
  uniform(key: string): number | undefined {
    const name = `${this.#prefix}.${key}`;
    const value = this.#metadata.get(name);
    if (!ArrayBuffer.isView(value) && !Array.isArray(value)) return this.number(key);
    const items = value as unknown as ArrayLike<unknown>;
    const first = Array.from(items).find((item) => item !== 0) ?? items[0];
    if (typeof first !== "number") throw artifactInvalid(this.path, `${name} is an array without numbers`);
    for (let i = 0; i < items.length; i++) {
      if (items[i] !== first && items[i] !== 0)
        throw artifactInvalid(this.path, `${name} differs between layers, which this architecture cannot do`);
    }
    return first;
  }

  needUniform(key: string): number {
    return this.uniform(key) ?? this.#missing(key);
  }

  /** A number for every layer. */
  numbers(key: string): readonly number[] | undefined {
    const value = this.#metadata.get(this.keyOf(key));
    if (!ArrayBuffer.isView(value) && !Array.isArray(value)) return undefined;
    const items = Array.from(value as unknown as ArrayLike<unknown>);
    return items.every((item) => typeof item === "number") ? items : undefined;
  }

  /** One for every layer. */
  booleans(key: string): readonly boolean[] | undefined {
    const value = this.#metadata.get(this.keyOf(key));
    return Array.isArray(value) && value.every((item) => typeof item === "boolean") ? value : undefined;
  }

  /** The full key. */
  keyOf(key: string): string {
    return `${this.#prefix}.${key}`;
  }

  #missing(key: string): never {
    throw artifactInvalid(this.path, `has no ${this.#prefix}.${key}`);
  }

  #typed(key: string, type: "string"): string | undefined;
  #typed(key: string, type: "boolean"): boolean | undefined;
  #typed(key: string, type: "number"): number | undefined;
  #typed(key: string, type: "string" | "boolean" | "number"): unknown {
    const value = this.#metadata.get(`${this.#prefix}.${key}`);
    if (value === undefined || typeof value === type) return value;
    throw artifactInvalid(this.path, `${this.#prefix}.${key} is not a ${type}`);
  }
}
