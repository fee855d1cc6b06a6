import { isRecord } from "@octavo/protocol";
import type { JsonSchema, ToolDefinition } from "../../cases/eval-case.js";
import { invalidRecord, type Place, quoted } from "../place.js";

/** The leaderboard writes Python's, Java's and JavaScript's names of types; values of the latter two are passed as text. */
const foreignTypes = {
  object: "dict HashMap Hashtable",
  number: "float double",
  integer: "long short byte bigint Bigint",
  array: "tuple list Array ArrayList Queue Stack Set",
  string: "String char",
  boolean: "Boolean",
} as const;

/** `any` is no restriction. */
const jsonTypes: ReadonlyMap<string, string | undefined> = new Map([
  ["any", undefined],
  ...Object.entries(foreignTypes).flatMap(([type, names]) =>
    names.split(" ").map((name) => [name, type] as const),
  ),
]);

/** Names as OpenAI's API takes them: the leaderboard's dots become underscores, in tools and golds alike. */
export function wireName(name: string): string {
  return name.replaceAll(/[^\w-]/g, "_");
}

/** Function documents of the leaderboard, one or a list, as tools. */
export function bfclTools(value: unknown, place: Place): ToolDefinition[] {
  const documents = Array.isArray(value) ? value : [value];
  return documents.map((document: unknown, index): ToolDefinition => {
    const at = `function[${index}]`;
    if (!isRecord(document)) throw invalidRecord(place, at, `must be an object, but is ${quoted(document)}`);
    const { name, description, parameters } = document;
    if (typeof name !== "string" || name === "") {
      throw invalidRecord(place, `${at}.name`, `must be the name of a function, but is ${quoted(name)}`);
    }
    return {
      type: "function",
      function: {
        name: wireName(name),
        ...(typeof description === "string" && { description }),
        ...(isRecord(parameters) && { parameters: jsonSchema(parameters) }),
      },
    };
  });
}

/** A schema in the leaderboard's names of types as a JSON schema. */
function jsonSchema(schema: JsonSchema): JsonSchema {
  const entries = Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
    if (key === "type" && typeof value === "string") {
      const type = jsonTypes.has(value) ? jsonTypes.get(value) : value;
      return type === undefined ? [] : [[key, type]];
    }
    if (key === "properties" && isRecord(value)) {
      const properties = Object.entries(value).map(([name, property]) => [
        name,
        isRecord(property) ? jsonSchema(property) : property,
      ]);
      return [[key, Object.fromEntries(properties)]];
    }
    if ((key === "items" || key === "additionalProperties") && isRecord(value)) {
      return [[key, jsonSchema(value)]];
    }
    return [[key, value]];
  });
  return Object.fromEntries(entries);
}
