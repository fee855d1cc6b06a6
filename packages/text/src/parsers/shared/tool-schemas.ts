import type { ChatTool } from "@octavo/protocol";
import { isRecord } from "@octavo/protocol";

/** Parameters' schemas by tool and name. */
export type ToolSchemas = ReadonlyMap<string, ReadonlyMap<string, unknown>>;

export function toolSchemas(tools: readonly ChatTool[]): ToolSchemas {
  return new Map(
    tools.map((tool) => {
      const properties = tool.function.parameters?.["properties"];
      const entries = isRecord(properties) ? Object.entries(properties) : [];
      return [tool.function.name, new Map(entries)];
    }),
  );
}

/**
 * How to read a value written without its type: `text` where the schema allows only strings or lacks the parameter, as in
 * vLLM; `either` where strings are one possibility.
 */
export function valueKind(schemas: ToolSchemas, tool: string, parameter: string): "text" | "json" | "either" {
  const properties = schemas.get(tool);
  if (properties === undefined || !properties.has(parameter)) return "text";
  return schemaKind(properties.get(parameter));
}

/** As `valueKind`, for the value's own schema. */
export function schemaKind(schema: unknown): "text" | "json" | "either" {
  const types = typesOf(schema, 0);
  if (types.size === 0) return "either";
  if (!types.has("string")) return "json";
  return types.size === 1 ? "text" : "either";
}

function typesOf(schema: unknown, depth: number): ReadonlySet<string> {
  if (!isRecord(schema) || depth > 4) return new Set();
  const types = new Set<string>();
  for (const type of listOf(schema["type"])) if (typeof type === "string") types.add(type);
  for (const key of ["anyOf", "oneOf", "allOf"])
    for (const branch of Array.isArray(schema[key]) ? (schema[key] as unknown[]) : [])
      for (const type of typesOf(branch, depth + 1)) types.add(type);
  const values = Array.isArray(schema["enum"]) ? (schema["enum"] as unknown[]) : [];
  if (types.size === 0) for (const value of values) types.add(typeof value === "string" ? "string" : "value");
  return types;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [value];
}
