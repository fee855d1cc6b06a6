// Writes the list of settings in docs/reference/gateway.md from the schema of gateway.yaml.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { gatewaySchema } from "../packages/gateway/dist/config/schema.js";
import { root } from "./lib/steps.mjs";

export const gatewayPage = join(root, "docs/reference/gateway.md");
const [start, end] = ["<!-- settings -->\n", "<!-- end of settings -->"];

/** The page with its settings as the schema has them. */
export function withSettings(page) {
  const schema = z.toJSONSchema(gatewaySchema, { io: "input", unrepresentable: "any" });
  const rows = settingsOf(schema, schema.$defs ?? {}).map(
    ({ path, type, fallback }) => `| \`${path}\` | ${type.replaceAll("|", "\\|")} | ${fallback} |`,
  );
  const table = ["| setting | value | default |", "| --- | --- | --- |", ...rows].join("\n");
  return `${page.slice(0, page.indexOf(start) + start.length)}\n${table}\n\n${page.slice(page.indexOf(end))}`;
}

function settingsOf(schema, definitions) {
  const settings = [];
  const resolved = ({ $ref, ...rest }) =>
    $ref === undefined ? rest : { ...definitions[$ref.split("/").at(-1)], ...rest };
  const visit = (given, path, isRequired) => {
    const found = resolved(given);
    const branches = [found, ...(found.anyOf ?? []).map(resolved)];
    const [object, map] = ["properties", "additionalProperties"].map((field) =>
      branches.find((branch) => typeof branch[field] === "object"),
    );
    const isPlain = object !== found && map !== found;
    if (path !== "" && isPlain)
      settings.push({ path, type: typeOf(found, resolved), fallback: fallbackOf(found, isRequired) });
    for (const [name, child] of Object.entries(object?.properties ?? {}))
      visit(
        child,
        path === "" ? name : `${path}.${name}`,
        object === found && (object.required ?? []).includes(name),
      );
    if (map !== undefined) visit(map.additionalProperties, `${path}.NAME`, false);
  };
  visit(schema, "", false);
  const seen = new Set();
  return settings.filter(({ path }) => !seen.has(path) && seen.add(path));
}

function typeOf(schema, resolved) {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((choice) => `\`${choice}\``).join(", ");
  if (schema.anyOf !== undefined)
    return [...new Set(schema.anyOf.map((branch) => typeOf(resolved(branch), resolved)))].join(" or ");
  const pattern = schema.pattern ?? "";
  if (pattern.includes("(ms|s|m|h|d)")) return "time, such as 250ms, 30s, 10m";
  if (pattern.includes("KiB")) return "size, such as 64KiB";
  if (pattern.startsWith("^https?")) return "URL";
  if (schema.type === "array") return `list of ${typeOf(resolved(schema.items ?? {}), resolved)}`;
  if (schema.type === "object") return "section";
  return schema.type === "integer" ? "whole number" : (schema.type ?? "anything");
}

function fallbackOf({ default: value }, isRequired) {
  if (value !== undefined) return `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
  return isRequired ? "required" : "";
}

if (process.argv[1] === import.meta.filename)
  writeFileSync(gatewayPage, withSettings(readFileSync(gatewayPage, "utf8")));
