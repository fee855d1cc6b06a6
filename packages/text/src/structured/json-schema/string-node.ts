import { all, type Node, not, repeat, sequence, text } from "../node.js";
import { lowerRegex } from "../lower-regex.js";
import { parseRegex } from "../../regex/parse-regex.js";
import { anyOf } from "../text-choice.js";
import { formatPatterns, unenforcedFormats } from "./formats.js";
import { jsonWriting, type StringWriting } from "./json-text.js";
import type { Conjunction } from "./conjunction.js";
import { countKeyword, type Located, stringKeyword } from "./keywords.js";
import { restrictionOf } from "./restriction.js";
import type { SchemaContext } from "./schema-context.js";
import { pathOf, schemaError } from "./schema-error.js";
import { OctavoError } from "@octavo/protocol/errors";

/** Counted states are made one by one as they are reached; longer bounds are refused. */
const maxStringLength = 1_000_000;

/** A string, quotes included, under all of the schemas. */
export function stringNode(conjunction: Conjunction, compiler: SchemaContext): Node {
  const key = JSON.stringify(
    conjunction.map(({ schema }) => [
      schema["minLength"],
      schema["maxLength"],
      schema["pattern"],
      schema["format"],
      restrictionOf(schema),
    ]),
  );
  return compiler.rules.rule(`string ${compiler.layout.escapes ?? "any"}:${key}`, "string", () =>
    sequence(text('"'), stringContent(conjunction, compiler.writing), text('"')),
  );
}

/** The content of a string under all of the schemas. */
export function stringContent(conjunction: Conjunction, writing = jsonWriting): Node {
  let least = 0;
  let most = Infinity;
  const conditions: Node[] = [];
  for (const located of conjunction) {
    least = Math.max(least, countKeyword(located, "minLength") ?? 0);
    most = Math.min(most, countKeyword(located, "maxLength") ?? most);
    if (least > maxStringLength)
      throw schemaError(pathOf(located.path, "minLength"), `must be at most ${maxStringLength}`);
    const pattern = stringKeyword(located, "pattern");
    if (pattern !== undefined)
      conditions.push(patternNode(pattern, pathOf(located.path, "pattern"), true, writing));
    const format = stringKeyword(located, "format");
    if (format !== undefined) conditions.push(...formatNode(format, located, writing));
    const { strings = [], pattern: absent } = restrictionOf(located.schema) ?? {};
    if (strings.length > 0) conditions.push(not(anyOf(strings.map((item) => text(writing.write(item))))));
    if (absent !== undefined) conditions.push(not(patternNode(absent.pattern, absent.path, true, writing)));
  }
  if (most > maxStringLength) most = Infinity;
  const hasLength = least > 0 || most !== Infinity;
  if (conditions.length === 0) return repeat(writing.anyCharacter, least, most);
  const lengths = hasLength ? repeat(writing.character, least, most) : writing.anything;
  return all(lengths, ...conditions);
}

/** A pattern over the content of a string, found anywhere (`search`) or taking all of it. */
export function patternNode(pattern: string, path: string, search: boolean, writing = jsonWriting): Node {
  try {
    return lowerRegex(parseRegex(pattern), writing.encoding, search);
  } catch (thrown) {
    if (thrown instanceof OctavoError && thrown.code === "invalid_request")
      throw schemaError(path, `cannot be used: ${thrown.message.replace(/\.$/, "")}`);
    throw thrown;
  }
}

function formatNode(format: string, { path }: Located, writing: StringWriting): Node[] {
  const pattern = formatPatterns.get(format);
  if (pattern !== undefined) return [patternNode(pattern, path, false, writing)];
  if (!unenforcedFormats.has(format)) return [];
  throw schemaError(
    pathOf(path, "format"),
    `names ${JSON.stringify(format)}, which cannot be enforced; known are ${[...formatPatterns.keys()].join(", ")}`,
  );
}
