import type { TestRandom } from "../../../testing/random.js";
import type { JsonObject, JsonValue } from "../../grammar.js";

/** What tells the schemas of one source from those of another: generators of schemas and people have habits. */
interface Dialect {
  readonly uri?: string;
  /** Path to the definitions. */
  readonly definitions: readonly string[];
  readonly isClosed: boolean;
  /** What may be left out is null instead. */
  readonly requiresAll: boolean;
  readonly nulls: "type list" | "anyOf" | "nullable";
  readonly unions: "oneOf" | "anyOf";
  readonly tuples: "prefixItems" | "items";
  readonly annotates: boolean;
}

const latest = "https://json-schema.org/draft/2020-12/schema";
const draft7 = "http://json-schema.org/draft-07/schema#";

/** As zod, Pydantic, generators from TypeScript, OpenAPI documents, OpenAI's strict mode and people write them. */
const dialects: readonly Dialect[] = [
  {
    uri: latest,
    definitions: ["$defs"],
    isClosed: true,
    requiresAll: false,
    nulls: "anyOf",
    unions: "anyOf",
    tuples: "prefixItems",
    annotates: false,
  },
  {
    definitions: ["$defs"],
    isClosed: false,
    requiresAll: false,
    nulls: "anyOf",
    unions: "oneOf",
    tuples: "prefixItems",
    annotates: true,
  },
  {
    uri: draft7,
    definitions: ["definitions"],
    isClosed: true,
    requiresAll: false,
    nulls: "type list",
    unions: "anyOf",
    tuples: "items",
    annotates: false,
  },
  {
    definitions: ["components", "schemas"],
    isClosed: false,
    requiresAll: false,
    nulls: "nullable",
    unions: "oneOf",
    tuples: "prefixItems",
    annotates: true,
  },
  {
    definitions: ["$defs"],
    isClosed: true,
    requiresAll: true,
    nulls: "type list",
    unions: "anyOf",
    tuples: "prefixItems",
    annotates: false,
  },
  {
    uri: latest,
    definitions: ["$defs"],
    isClosed: false,
    requiresAll: false,
    nulls: "type list",
    unions: "oneOf",
    tuples: "prefixItems",
    annotates: false,
  },
];

/** Writes the parts of one schema document in one dialect, drawn by chance. */
export class SchemaWriter {
  readonly #random: TestRandom;
  readonly #dialect: Dialect;
  readonly #definitions = new Map<string, JsonObject>();

  constructor(random: TestRandom) {
    this.#random = random;
    this.#dialect = this.pick(dialects);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.#random.below(items.length)]!;
  }

  /** A few of the items, at least `min`, in their order. */
  some<T>(items: readonly T[], min: number): T[] {
    const kept = items.filter(() => this.#random.next() < 0.6);
    return kept.length >= min ? kept : items.slice(0, min);
  }

  between(min: number, max: number): number {
    return min + this.#random.below(max - min + 1);
  }

  chance(probability: number): boolean {
    return this.#random.next() < probability;
  }

  /** A record; `optional` may be left out. */
  object(properties: Readonly<Record<string, JsonObject>>, optional: readonly string[] = []): JsonObject {
    const { isClosed, requiresAll, annotates } = this.#dialect;
    const entries = Object.entries(properties).map(([name, schema]): [string, JsonObject] => {
      const value = requiresAll && optional.includes(name) ? this.nullable(schema) : schema;
      return [name, annotates && schema["$ref"] === undefined ? { title: titleOf(name), ...value } : value];
    });
    const required = Object.keys(properties).filter((name) => requiresAll || !optional.includes(name));
    return {
      type: "object",
      properties: Object.fromEntries(entries),
      ...(required.length > 0 && { required }),
      ...(isClosed && { additionalProperties: false }),
    };
  }

  text(maxLength?: number): JsonObject {
    const bound = maxLength ?? (this.chance(0.5) ? this.between(6, 60) : undefined);
    return {
      type: "string",
      ...(this.chance(0.3) && { minLength: 1 }),
      ...(bound !== undefined && { maxLength: bound }),
      ...this.#described(),
    };
  }

  pattern(pattern: string): JsonObject {
    return { type: "string", pattern };
  }

  format(format: string): JsonObject {
    return { type: "string", format };
  }

  options(values: readonly string[]): JsonObject {
    const listed = this.some(values, 2);
    return this.chance(0.8) ? { type: "string", enum: listed } : { enum: listed };
  }

  integer(minimum: number, maximum: number): JsonObject {
    const isExclusive = this.chance(0.2);
    return {
      type: "integer",
      ...(isExclusive ? { exclusiveMinimum: minimum - 1 } : { minimum }),
      ...(this.chance(0.8) && { maximum }),
    };
  }

  number(minimum: number, maximum: number): JsonObject {
    return { type: "number", minimum, ...(this.chance(0.8) && { maximum }) };
  }

  boolean(): JsonObject {
    return { type: "boolean", ...(this.chance(0.3) && { default: false }) };
  }

  list(items: JsonObject, minItems = 0): JsonObject {
    return {
      type: "array",
      items,
      ...(minItems > 0 && { minItems }),
      ...(this.chance(0.5) && { maxItems: minItems + this.between(1, 4) }),
    };
  }

  tuple(items: readonly JsonObject[]): JsonObject {
    const bounds = { minItems: items.length, maxItems: items.length };
    return this.#dialect.tuples === "items"
      ? { type: "array", items, ...bounds }
      : { type: "array", prefixItems: items, ...bounds };
  }

  /** Names to values. */
  map(values: JsonObject, names?: string): JsonObject {
    return {
      type: "object",
      additionalProperties: values,
      ...(names !== undefined && { propertyNames: { pattern: names } }),
      ...(this.chance(0.4) && { maxProperties: this.between(2, 5) }),
    };
  }

  nullable(schema: JsonObject): JsonObject {
    const { nulls } = this.#dialect;
    const { type } = schema;
    const isPlain = typeof type === "string" && schema["enum"] === undefined && schema["const"] === undefined;
    if (isPlain && nulls === "type list") return { ...schema, type: [type, "null"] };
    if (isPlain && nulls === "nullable") return { ...schema, nullable: true };
    return { anyOf: [schema, { type: "null" }] };
  }

  /** One of several records, identified by the value of `tag`. */
  variants(tag: string, cases: Readonly<Record<string, Readonly<Record<string, JsonObject>>>>): JsonObject {
    const { unions } = this.#dialect;
    const branches = Object.entries(cases).map(([value, properties]) =>
      this.object({ [tag]: { type: "string", const: value }, ...properties }),
    );
    return {
      [unions]: branches,
      ...(unions === "oneOf" && this.#dialect.annotates && { discriminator: { propertyName: tag } }),
    };
  }

  either(...schemas: readonly JsonObject[]): JsonObject {
    return { anyOf: schemas };
  }

  /** A definition by its name, made once; may refer to itself. */
  reference(name: string, make: () => JsonObject): JsonObject {
    if (!this.#definitions.has(name)) {
      this.#definitions.set(name, {});
      this.#definitions.set(name, make());
    }
    return { $ref: `#/${[...this.#dialect.definitions, name].join("/")}` };
  }

  document(name: string, root: JsonObject): JsonObject {
    const { uri, definitions, annotates } = this.#dialect;
    const defined = definitions.reduceRight<JsonValue>(
      (inner, key) => ({ [key]: inner }),
      Object.fromEntries(this.#definitions),
    ) as JsonObject;
    return {
      ...(uri !== undefined && { $schema: uri }),
      ...(annotates && { title: titleOf(name), description: `The ${name} that was asked for.` }),
      ...root,
      ...(this.#definitions.size > 0 && defined),
    };
  }

  #described(): JsonObject {
    return this.#dialect.annotates && this.chance(0.3) ? { description: "In the user's own words." } : {};
  }
}

function titleOf(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
}
