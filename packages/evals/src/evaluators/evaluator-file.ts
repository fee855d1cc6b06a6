import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { isRecord, OctavoError, systemProblem } from "@octavo/protocol";
import { YamlSource } from "@octavo/protocol/yaml";
import type { EvaluatorSpec } from "./evaluator.js";

/** Format of a file that holds one evaluator, in YAML or JSON. */
export const evaluatorFileFormat = "octavo.evaluator/1";

/**
 * The spec that a file holds; what else stands in it (where it came from, how it was measured) is for people and for the
 * commands that write it.
 * @throws OctavoError `invalid_option` that names the file
 */
export function readEvaluatorFile(path: string): EvaluatorSpec {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new OctavoError("invalid_option", `the evaluator ${path} cannot be read: ${systemProblem(cause)}`, {
      cause,
    });
  }
  const source = new YamlSource(path, text);
  const { value } = source;
  if (!isRecord(value) || value["format"] !== evaluatorFileFormat || typeof value["name"] !== "string")
    throw source.problem([], `expected an evaluator: format: ${evaluatorFileFormat}, name, options`);
  const kept = ["name", "as", "options", "threshold", "not", "tags"].filter(
    (key) => value[key] !== undefined,
  );
  return Object.fromEntries(kept.map((key) => [key, value[key]])) as unknown as EvaluatorSpec;
}

/** Specs of a configuration, with what `{file: PATH}` holds in their place. */
export function withEvaluatorFiles(specs: readonly unknown[], folder: string): unknown[] {
  return specs.map((spec) => {
    if (!isRecord(spec) || typeof spec["file"] !== "string") return spec;
    const { file, ...own } = spec as Readonly<Record<string, unknown>> & { readonly file: string };
    return { ...readEvaluatorFile(resolve(folder, file)), ...own };
  });
}
