import { describeValue, OctavoError } from "@octavo/protocol";
import { type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { JsonSchema } from "../../cases/eval-case.js";
import { withinTime } from "../within-time.js";

const maxSchemaBytes = 256 << 10;
const compileTimeoutMs = 2000;
/** A schema's patterns meet a model's output here: they are cut off like any other pattern. */
const validateTimeoutMs = 500;
/** Schemas that are kept compiled; the one that was used longest ago goes first. */
const maxKept = 256;

/** Why a value is not as a schema wants it, or undefined. */
type SchemaCheck = (value: unknown) => string | undefined;

type Compiler = Ajv | Ajv2020;
type Draft = "2020-12" | "draft-07";

const compilers = new Map<Draft, Compiler>();
const kept = new Map<string, SchemaCheck>();

/**
 * Compiles a JSON Schema of draft 2020-12 (the default) or draft-07 (by its `$schema`). Formats are annotations, as 2020-12
 * says; nothing is fetched for a `$ref`. Ajv refuses schemas that cannot be used; values are judged by an interpreter, since
 * what ajv 8 generates accepts empty arrays after `prefixItems` whatever follows.
 *
 * @throws OctavoError `dataset_invalid` for a schema that is none, or too large, or takes too long to compile
 */
export function schemaCheck(schema: JsonSchema): SchemaCheck {
  const text = JSON.stringify(schema);
  const known = kept.get(text);
  if (known !== undefined) {
    kept.delete(text);
    kept.set(text, known);
    return known;
  }
  const check = compile(schema, text.length);
  kept.set(text, check);
  if (kept.size > maxKept) kept.delete(kept.keys().next().value!);
  return check;
}

function compile(schema: JsonSchema, size: number): SchemaCheck {
  if (size > maxSchemaBytes)
    throw invalid(`it has ${size} characters, at most ${maxSchemaBytes} are compiled`);
  if (schema["$async"] === true) throw invalid("asynchronous schemas are not JSON Schema");
  const draft = draftOf(schema["$schema"]);
  const { $schema: _, ...rest } = schema;
  let compiler: Compiler | undefined;
  try {
    withinTime(compileTimeoutMs, "compiling the schema", () => {
      // begun again: what was interrupted may be half done
      if (compiler !== undefined) compilers.delete(draft);
      compiler = compilerOf(draft);
      compiler.compile(rest);
    });
  } catch (thrown) {
    compilers.delete(draft);
    throw invalid(OctavoError.from(thrown).message, thrown);
  }
  compiler?.removeSchema(rest);
  const validator = new Validator(withoutFormats(rest) as Schema, draft === "draft-07" ? "7" : draft);
  return (value) =>
    withinTime(validateTimeoutMs, "validating against the schema", () => {
      const { valid, errors } = validator.validate(value);
      return valid ? undefined : describe(errors);
    });
}

/** Names whose values are data, in which nothing is a keyword. */
const dataKeywords = new Set(["const", "enum", "default", "examples"]);

function withoutFormats(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutFormats);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([name, value]) => name !== "format" || typeof value !== "string")
      .map(([name, value]) => [name, dataKeywords.has(name) ? value : withoutFormats(value)]),
  );
}

function compilerOf(draft: Draft): Compiler {
  const known = compilers.get(draft);
  if (known !== undefined) return known;
  const options = { strict: false, validateFormats: false, addUsedSchema: false, logger: false } as const;
  const compiler = draft === "draft-07" ? new Ajv(options) : new Ajv2020(options);
  compilers.set(draft, compiler);
  return compiler;
}

function draftOf(uri: unknown): Draft {
  if (uri === undefined) return "2020-12";
  const text = typeof uri === "string" ? uri : describeValue(uri);
  if (text.includes("/2020-12/")) return "2020-12";
  if (text.includes("draft-07") || text.includes("draft-06")) return "draft-07";
  throw invalid(`its $schema is ${text.slice(0, 80)}; draft 2020-12, draft-07 and draft-06 are understood`);
}

/** The innermost cause of the first error: units come from the outside in. */
function describe(errors: readonly OutputUnit[]): string {
  let [error] = errors;
  if (error === undefined) return "it does not validate";
  for (const unit of errors) {
    const isInside = unit.keywordLocation.startsWith(`${error.keywordLocation}/`);
    if (isInside && unit.keyword !== "false") error = unit;
  }
  return `${error.instanceLocation.slice(1) || "the value"}: ${error.error}`.slice(0, 300);
}

function invalid(problem: string, cause?: unknown): OctavoError {
  return new OctavoError("dataset_invalid", `the schema cannot be used: ${problem}`, { cause });
}
