import { asRecord, isRecord } from "@octavo/protocol";
import type { JsonSchema, SourceType, ToolDefinition } from "../../cases/eval-case.js";
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

export type SourceLanguage = SourceType["language"];

/**
 * Function documents of the leaderboard, one or a list, as tools. Where they are of Java or JavaScript, arguments are their
 * source text.
 */
export function bfclTools(value: unknown, place: Place, language?: SourceLanguage): ToolDefinition[] {
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
        ...(isRecord(parameters) && {
          parameters: language === undefined ? jsonSchema(parameters) : sourceSchemas(parameters, language),
        }),
      },
    };
  });
}

const languageNames: Readonly<Record<SourceLanguage, string>> = { java: "Java", javascript: "JavaScript" };

function sourceSchemas(parameters: JsonSchema, language: SourceLanguage): JsonSchema {
  const properties = Object.entries(asRecord(parameters["properties"])).map(([name, property]) => {
    const { type, items, description = "" } = asRecord(property);
    const item = asRecord(items)["type"];
    const list = typeof item === "string" ? ` with items of type ${item}` : "";
    const note = `Give ${languageNames[language]} source text of type ${String(type)}${list}.`;
    return [name, { type: "string", description: `${String(description)} ${note}`.trim() }];
  });
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    required: parameters["required"] ?? [],
  };
}

/** The types of a function's parameters, by name. */
export function sourceTypes(
  document: unknown,
  language: SourceLanguage,
): Readonly<Record<string, SourceType>> {
  const properties = asRecord(asRecord(asRecord(document)["parameters"])["properties"]);
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]): [string, SourceType] => {
      const { type, items } = asRecord(property);
      const itemType = asRecord(items)["type"];
      return [name, { language, type: String(type), ...(typeof itemType === "string" && { itemType }) }];
    }),
  );
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
