import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { systemProblem } from "@octavo/protocol";
import { invalidFile } from "../place.js";

/** A prompt that a benchmark publishes, as the user brings it. */
export interface BenchmarkPrompt {
  /** For reports: the file's name and the start of its digest. */
  readonly label: string;
  readonly text: string;
}

/** What reports say of cases that are asked in Octavo's own words. */
export const ownPrompt = "Octavo's own prompt, not comparable with published figures";

/**
 * Reads a benchmark's prompt.
 * @param placeholders of which it must have at least one
 * @throws OctavoError `dataset_invalid`
 */
export async function readBenchmarkPrompt(
  path: string,
  placeholders: readonly string[],
): Promise<BenchmarkPrompt> {
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw invalidFile(path, `cannot be read: ${systemProblem(cause)}`, cause);
  });
  if (text.trim() === "") throw invalidFile(path, "is empty; expected a benchmark's prompt");
  if (placeholders.length > 0 && !placeholders.some((name) => text.includes(name)))
    throw invalidFile(path, `is no prompt of this benchmark: it has none of ${placeholders.join(", ")}`);
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 12);
  return { label: `prompt ${basename(path)} (sha256 ${digest})`, text };
}

/** Puts values for placeholders, in one pass: a document that has a placeholder's name in it stays as it is. */
export function filledPrompt({ text }: BenchmarkPrompt, values: Readonly<Record<string, string>>): string {
  const names = Object.keys(values).map((name) => name.replaceAll(/[$(){}]/g, String.raw`\$&`));
  return text.replaceAll(new RegExp(names.join("|"), "g"), (name) => values[name] ?? name);
}
