import type { Engine, Grammar, GrammarSpec, JsonLayout, JsonValue } from "@octavo/engine";
import type { OutputConstraint } from "@octavo/engine/chat";
import {
  type ConstraintFields,
  OctavoError,
  parseWith,
  structuralTag,
  type StructuralTag,
} from "@octavo/protocol";
import { invalidField } from "@octavo/protocol/refusal";

/**
 * A request's constraint, under any of its field names; undefined if it has none. Throws `invalid_request` for several
 * constraints or a malformed one.
 */
export function outputConstraint(fields: ConstraintFields): OutputConstraint | undefined {
  const found = [...fromResponseFormat(fields), ...fromStructuredOutputs(fields), ...fromGuided(fields)];
  const [first, second] = found;
  if (first !== undefined && second !== undefined)
    throw invalidField(second.param, `the output is already constrained by ${first.param}; send one of them`);
  return first;
}

/** A compiled constraint, and how long compiling took. */
export interface CompiledConstraint {
  readonly grammar: Grammar;
  readonly grammarMs: number;
}

/** Compiles a constraint for a tenant; errors name its field. */
export async function compileConstraint(
  engine: Engine,
  { spec, param }: OutputConstraint,
  tenant: string,
  signal: AbortSignal,
): Promise<CompiledConstraint> {
  const startMs = performance.now();
  try {
    const grammar = await engine.compileGrammar(spec, signal, tenant);
    return { grammar, grammarMs: performance.now() - startMs };
  } catch (thrown) {
    const error = OctavoError.from(thrown);
    if (error.code !== "invalid_request") throw error;
    throw new OctavoError(error.code, `${param}: ${error.message}`, { param, cause: thrown });
  }
}

function fromResponseFormat({ response_format: format }: ConstraintFields): OutputConstraint[] {
  if (!format || format.type === "text") return [];
  const param = "response_format";
  if (format.type === "json_object") return [{ param, spec: { kind: "json_object" } }];
  if (format.type === "structural_tag") return [{ param, spec: taggedText(format) }];
  const { schema } = format.json_schema;
  return [
    {
      param: "response_format.json_schema.schema",
      spec: { kind: "json_schema", schema: schema as JsonValue },
    },
  ];
}

function fromStructuredOutputs({ structured_outputs: outputs }: ConstraintFields): OutputConstraint[] {
  if (!outputs) return [];
  const layout: JsonLayout = {
    ...(outputs.disable_any_whitespace === true && { whitespace: "compact" }),
    ...(outputs.whitespace_pattern && { whitespacePattern: outputs.whitespace_pattern }),
  };
  const at = (field: string): string => `structured_outputs.${field}`;
  const found: OutputConstraint[] = [];
  const { json, regex, choice, grammar, json_object: anyObject, structural_tag: tag } = outputs;
  if (json !== undefined && json !== null)
    found.push({
      param: at("json"),
      spec: { kind: "json_schema", schema: schemaOf(json, at("json")), layout },
    });
  if (regex) found.push({ param: at("regex"), spec: { kind: "regex", pattern: regex } });
  if (choice) found.push({ param: at("choice"), spec: { kind: "choice", choices: choice } });
  if (grammar) found.push({ param: at("grammar"), spec: { kind: "grammar", source: grammar } });
  if (anyObject === true) found.push({ param: at("json_object"), spec: { kind: "json_object", layout } });
  if (tag) {
    const parsed =
      typeof tag === "string" ? parseWith(structuralTag, parseJson(tag, at("structural_tag"))) : tag;
    found.push({ param: at("structural_tag"), spec: taggedText(parsed) });
  }
  if (found.length === 0)
    throw invalidField(
      "structured_outputs",
      "needs one of json, regex, choice, grammar, json_object and structural_tag",
    );
  return found;
}

function fromGuided(fields: ConstraintFields): OutputConstraint[] {
  const { guided_json: json, guided_regex: regex, guided_choice: choice, guided_grammar: grammar } = fields;
  const { guided_whitespace_pattern: pattern } = fields;
  const layout: JsonLayout = pattern ? { whitespacePattern: pattern } : {};
  const found: OutputConstraint[] = [];
  if (json !== undefined && json !== null)
    found.push({
      param: "guided_json",
      spec: { kind: "json_schema", schema: schemaOf(json, "guided_json"), layout },
    });
  if (regex) found.push({ param: "guided_regex", spec: { kind: "regex", pattern: regex } });
  if (choice) found.push({ param: "guided_choice", spec: { kind: "choice", choices: choice } });
  if (grammar) found.push({ param: "guided_grammar", spec: { kind: "grammar", source: grammar } });
  return found;
}

/** XGrammar's structural tags: text is free until a trigger; between a tag's begin and end is JSON. */
function taggedText({ structures, triggers }: StructuralTag): GrammarSpec {
  return {
    kind: "tagged_text",
    triggers,
    tags: structures.map(({ begin, schema, end }) => ({
      begin,
      content: { kind: "json_schema", schema: (schema ?? true) as JsonValue },
      end,
    })),
  };
}

function schemaOf(given: unknown, param: string): JsonValue {
  return typeof given === "string" ? (parseJson(given, param) as JsonValue) : (given as JsonValue);
}

function parseJson(source: string, param: string): unknown {
  try {
    return JSON.parse(source) as unknown;
  } catch {
    throw invalidField(param, "is a string that is not JSON");
  }
}
