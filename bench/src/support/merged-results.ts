import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { isRecord, OctavoError } from "@octavo/protocol";

/** The cases of a file; none where there is no file. Throws `invalid_option` where it holds something else. */
export function readCases(path: string, benchmark: string): readonly unknown[] {
  if (!existsSync(path)) return [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new OctavoError("invalid_option", `${path} is not JSON; move it away`, { cause });
  }
  if (!isRecord(parsed) || parsed["benchmark"] !== benchmark || !Array.isArray(parsed["cases"]))
    throw new OctavoError("invalid_option", `${path} holds no results of this benchmark; move it away`);
  return parsed["cases"];
}

/** Writes results, into a folder that is made where there is none. */
export function writeResults(
  path: string,
  results: { readonly benchmark: string; readonly cases: readonly unknown[] },
): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(results, null, 2)}\n`);
}
