import { readFileSync } from "node:fs";
import { OctavoError, systemProblem } from "@octavo/protocol/errors";
import { checkOptionNames, type OptionRow, type OptionRows } from "@octavo/protocol/options";
import { flagNames } from "./flag-names.js";
import { foreignFlagsByName } from "./vllm/translate-flags.js";

/**
 * The arguments that a YAML file of flags holds, as vLLM's `--config`: `served-model-name: [a, b]`, `max_model_len: 4096`,
 * `enable-lora: true`, `speculative-config: {method: ngram}`.
 * @throws OctavoError `invalid_option` that names the line: of what is no such file, and of keys that no flag has, with the nearest
 */
export async function readConfigFile(rows: OptionRows, path: string): Promise<readonly string[]> {
  const { YamlSource } = await import("@octavo/protocol/yaml");
  const source = new YamlSource(path, textOf(path));
  const { value } = source;
  if (value === null) return [];
  if (typeof value !== "object" || Array.isArray(value))
    throw source.problem([], "expected flags and their values, such as `max-model-len: 4096`");
  const byName = new Map(
    Object.values(rows).flatMap((row) => flagNames(row).map((name) => [name, row] as const)),
  );
  return Object.entries(value).flatMap(([key, setting]: [string, unknown]) => {
    const name = `--${key.replaceAll("_", "-")}`;
    const row = byName.get(name);
    if (name === "--config") throw source.problem([key], "a file of flags cannot name another one");
    if (row === undefined && !foreignFlagsByName.has(name)) {
      const known = [...byName.keys(), ...foreignFlagsByName.keys()].map((flag) => flag.slice(2));
      try {
        checkOptionNames({ [name.slice(2)]: setting }, known, "octavo serve");
      } catch (thrown) {
        throw source.problem([key], OctavoError.from(thrown).message, thrown);
      }
    }
    try {
      return argumentsOf(name, setting, row);
    } catch (thrown) {
      throw source.problem([key], OctavoError.from(thrown).message, thrown);
    }
  });
}

function argumentsOf(name: string, value: unknown, row: OptionRow | undefined): readonly string[] {
  if (typeof value === "boolean" && row?.flag?.includes("<") !== true)
    return [value ? name : `--no-${name.slice(2)}`];
  if (!Array.isArray(value)) return [`${name}=${textOfValue(value)}`];
  if (row !== undefined && row.type.isList !== true)
    throw new OctavoError("invalid_option", `expected ${row.type.expects}, not a list`);
  return value.map((item: unknown) => `${name}=${textOfValue(item)}`);
}

function textOfValue(value: unknown): string {
  if (value === null || value === undefined) throw new OctavoError("invalid_option", "has no value");
  return typeof value === "string" ? value : JSON.stringify(value);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new OctavoError("invalid_option", `--config: ${path} cannot be read: ${systemProblem(cause)}`, {
      param: "config",
      cause,
    });
  }
}
