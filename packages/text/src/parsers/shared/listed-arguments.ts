import type { GrammarSpec, JsonObject, JsonValue } from "../../structured/grammar.js";
import { atMostOne, eitherOf, inSequence, literalSpec } from "./grammar-specs.js";
import { type ChatTool, OctavoError } from "@octavo/protocol";
import { toolSchemas, valueKind } from "./tool-schemas.js";

/** How a format writes arguments that it lists one by one. */
export interface ArgumentNotation {
  /** Before and behind a value; `kind` as in `valueKind`. */
  readonly before: (key: string, kind: "text" | "json" | "either") => string;
  readonly after: string;
  readonly separator: string;
  /** Markup that ends a value that is plain text. Left out where values are JSON, strings in quotes. */
  readonly textEnds?: readonly string[];
  /** Markup on both sides of a value that is plain text. */
  readonly textQuote?: string;
  /** Arguments of a tool that is not held to its schema. */
  readonly any: GrammarSpec;
}

/** Keywords that constrain several arguments together, which formats that list them one by one cannot enforce. */
const combiningKeywords: readonly string[] = [
  ..."$ref $dynamicRef allOf anyOf oneOf not if enum const minProperties maxProperties".split(" "),
  ..."patternProperties propertyNames unevaluatedProperties".split(" "),
  ..."dependencies dependentRequired dependentSchemas".split(" "),
];
/** When all arguments are optional, any of them may come first: the grammar grows with the square of their number. */
const maxOptional = 24;

/**
 * A tool's arguments in declaration order, each under its own schema. Throws `invalid_request` for schemas that constrain
 * several arguments together.
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
  const items = keys.map((key) => {
    const kind = valueKind(schemas, name, key);
    const before = literalSpec(notation.before(key, kind));
    const value = valueSpec(schema, key, kind, notation);
    return {
      isRequired: required.includes(key),
      spec: inSequence(before, value, literalSpec(notation.after)),
    };
  });
  return joined(items, notation.separator, at);
}

interface Item {
  readonly isRequired: boolean;
  readonly spec: GrammarSpec;
}

function joined(items: readonly Item[], separator: string, at: string): GrammarSpec {
  const lead = (item: Item): GrammarSpec => inSequence(literalSpec(separator), item.spec);
  if (separator === "")
    return inSequence(...items.map((item) => (item.isRequired ? item.spec : atMostOne(item.spec))));
  const following = (rest: readonly Item[]): GrammarSpec[] =>
    rest.map((item) => (item.isRequired ? lead(item) : atMostOne(lead(item))));
  const first = items.findIndex(({ isRequired }) => isRequired);
  if (first >= 0) {
    const before = items
      .slice(0, first)
      .map((item) => atMostOne(inSequence(item.spec, literalSpec(separator))));
    return inSequence(...before, items[first]!.spec, ...following(items.slice(first + 1)));
  }
  if (items.length > maxOptional)
    throw invalid(
      `${at} are ${items.length}, all optional; at most ${maxOptional} are supported, or make one required`,
    );
  const starts = items.map((item, index) => inSequence(item.spec, ...following(items.slice(index + 1))));
  return eitherOf(...starts, literalSpec(""));
}

/** A value as the parser reads it back: text, JSON, or either where the two cannot be confused. */
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
  const quoted =
    textQuote === undefined ? undefined : inSequence(literalSpec(textQuote), bare, literalSpec(textQuote));
  if (kind === "text") return quoted ?? bare;
  const json: GrammarSpec = { kind: "json_schema", schema, at, layout, withoutStrings: true };
  return kind === "json" ? json : eitherOf(json, quoted ?? { ...bare, isNotJson: true });
}

function isRecord(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(message: string): OctavoError {
  return new OctavoError("invalid_request", `${message}.`, { param: "tools" });
}
