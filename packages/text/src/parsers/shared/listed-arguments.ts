import type { GrammarSpec, JsonObject, JsonValue } from "../../structured/grammar.js";
import { type ChatTool, OctavoError } from "@octavo/protocol";
import { toolSchemas, valueKind } from "./tool-schemas.js";

/** How a format that lists its arguments one by one writes them. */
export interface ArgumentNotation {
  /** Before and behind a value. */
  readonly before: (key: string) => string;
  readonly after: string;
  readonly separator: string;
  /** Markup that ends a value that is plain text. Left out where values are JSON, strings in quotes. */
  readonly textEnds?: readonly string[];
  /** Markup on both sides of a value that is plain text. */
  readonly textQuote?: string;
  /** Arguments of a tool that is not held to its schema. */
  readonly any: GrammarSpec;
}

/** Keywords that look at several arguments, which are written apart here. */
const combiningKeywords: readonly string[] = [
  ..."$ref $dynamicRef allOf anyOf oneOf not if enum const minProperties maxProperties".split(" "),
  ..."patternProperties propertyNames unevaluatedProperties".split(" "),
  ..."dependencies dependentRequired dependentSchemas".split(" "),
];
/** Arguments that may all be left out need a way for each that may be the first and the next. */
const maxOptional = 24;

/**
 * A tool's arguments in the order of their declaration, each under its schema. Throws `invalid_request` for schemas that say
 * more than which arguments there are.
 */
export function listedArguments(tool: ChatTool, schema: JsonObject, notation: ArgumentNotation): GrammarSpec {
  const { name } = tool.function;
  const at = `tools: the parameters of ${JSON.stringify(name)}`;
  const keyword = combiningKeywords.find((word) => schema[word] !== undefined);
  if (keyword !== undefined)
    throw invalid(
      `${at} have ${keyword}, which cannot be kept to in the form in which this model writes calls`,
    );
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? (schema["required"] as readonly JsonValue[]) : [];
  const keys = Object.keys(properties);
  const odd = keys.find((key) => !/^[\p{L}\p{N}_.-]+$/u.test(key));
  if (odd !== undefined)
    throw invalid(
      `${at} include ${JSON.stringify(odd.slice(0, 64))}, a name that this model's calls cannot hold`,
    );
  const undeclared = required.find((key) => typeof key !== "string" || !keys.includes(key));
  if (undeclared !== undefined)
    throw invalid(
      `${at} require ${JSON.stringify(undeclared).slice(0, 64)}, which is not among their properties`,
    );
  const schemas = toolSchemas([tool]);
  const items = keys.map((key) => ({
    isRequired: required.includes(key),
    spec: sequence(
      literal(notation.before(key)),
      valueSpec(schema, key, valueKind(schemas, name, key), notation),
      literal(notation.after),
    ),
  }));
  return joined(items, notation.separator, at);
}

interface Item {
  readonly isRequired: boolean;
  readonly spec: GrammarSpec;
}

function joined(items: readonly Item[], separator: string, at: string): GrammarSpec {
  const lead = (item: Item): GrammarSpec => sequence(literal(separator), item.spec);
  if (separator === "")
    return sequence(...items.map((item) => (item.isRequired ? item.spec : optional(item.spec))));
  const following = (rest: readonly Item[]): GrammarSpec[] =>
    rest.map((item) => (item.isRequired ? lead(item) : optional(lead(item))));
  const first = items.findIndex(({ isRequired }) => isRequired);
  if (first >= 0) {
    const before = items.slice(0, first).map((item) => optional(sequence(item.spec, literal(separator))));
    return sequence(...before, items[first]!.spec, ...following(items.slice(first + 1)));
  }
  if (items.length > maxOptional)
    throw invalid(
      `${at} are ${items.length}, all optional; at most ${maxOptional} are supported, or make one required`,
    );
  const starts = items.map((item, index) => sequence(item.spec, ...following(items.slice(index + 1))));
  return { kind: "any_of", options: [...starts, literal("")] };
}

/** A value as the parser will read it back: text, JSON, or what can be told apart. */
function valueSpec(
  schema: JsonObject,
  key: string,
  kind: "text" | "json" | "either",
  { textEnds, textQuote }: ArgumentNotation,
): GrammarSpec {
  const at = `/properties/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  if (textEnds === undefined) return { kind: "json_schema", schema, at, layout: { escapes: "needed" } };
  const layout = { escapes: "needed and markup" } as const;
  const bare = { kind: "schema_text", schema, at, without: textEnds } as const;
  const quoted = textQuote === undefined ? undefined : sequence(literal(textQuote), bare, literal(textQuote));
  if (kind === "text") return quoted ?? bare;
  const json: GrammarSpec = { kind: "json_schema", schema, at, layout, withoutStrings: true };
  return kind === "json" ? json : { kind: "any_of", options: [json, quoted ?? { ...bare, isNotJson: true }] };
}

function sequence(...parts: readonly GrammarSpec[]): GrammarSpec {
  return { kind: "sequence", parts };
}

function optional(item: GrammarSpec): GrammarSpec {
  return { kind: "repeat", item, min: 0, max: 1 };
}

function literal(text: string): GrammarSpec {
  return { kind: "literal", text };
}

function isRecord(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(message: string): OctavoError {
  return new OctavoError("invalid_request", `${message}.`, { param: "tools" });
}
